//! `plumbline report`: a run again, in any format.

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;

use plumbline_record::{Pseudonyms, Run, RunDirectory, Trial, write_atomically};
use plumbline_report::terminal::Style;
use plumbline_report::{Summary, csv, html, json, markdown, terminal};

use super::{BadUsage, print};
use crate::cli::{Format, ReportArgs};

pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let (mut run, mut trials) = RunDirectory::read(&args.run)?;
    if let Some(baseline) = &args.baseline {
        run.plan.compare_with(baseline).map_err(|known| {
            BadUsage(format!(
                "the run has no network `{baseline}` to compare with; it has {}",
                known.join(", ")
            ))
        })?;
    }
    if args.anonymise {
        (run, trials) = Pseudonyms::default().record(&run, &trials)?;
    }
    let format = if args.json { Format::Json } else { args.format };
    let directory = args.output.as_deref().and_then(Path::parent);
    let text = render(&run, &trials, format, directory);
    match &args.output {
        Some(file) => write_atomically(file, text.as_bytes())?,
        None => print(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A run in a format, for a file in this directory.
fn render(run: &Run, trials: &[Trial], format: Format, directory: Option<&Path>) -> String {
    let summary = Summary::new(run, trials);
    match format {
        Format::Terminal => terminal::render(&summary, terminal_style()),
        Format::Html => html::render_in(directory, &summary, run, trials),
        Format::Markdown => markdown::render(&summary),
        Format::Csv => csv::render(&summary),
        Format::Json => json::render(&summary),
    }
}

/// Colour only where a person looks; never wider than 80 columns.
pub(super) fn terminal_style() -> Style {
    Style {
        colour: std::io::stdout().is_terminal(),
        width: 80,
    }
}
