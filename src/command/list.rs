//! `plumbline list`: experiments, networks, workloads.

use std::process::ExitCode;

use plumbline_experiment::{Experiment, TaskKind, ready_made};
use serde::Serialize;

use super::{linux, print, print_json};
use crate::cli::{ListArgs, Listing};

#[derive(Serialize)]
struct ListRow<'a> {
    name: &'a str,
    description: &'a str,
}

pub(crate) fn run(args: &ListArgs) -> anyhow::Result<ExitCode> {
    match args.what {
        // Experiments and workloads are the same everywhere.
        Listing::Networks => return linux::list(args),
        Listing::Experiments => {
            let mut experiments = Vec::new();
            for (name, text) in ready_made() {
                experiments.push((name, Experiment::parse(text, name)?));
            }
            let rows: Vec<_> = experiments
                .iter()
                .map(|(name, e)| ListRow {
                    name,
                    description: e.question(),
                })
                .collect();
            named(&rows, args.json)?;
        }
        Listing::Workloads => {
            let rows: Vec<_> = TaskKind::all()
                .map(|kind| ListRow {
                    name: kind.name(),
                    description: kind.purpose(),
                })
                .collect();
            named(&rows, args.json)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn named(rows: &[ListRow<'_>], json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(&rows);
    }
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let text: String = rows
        .iter()
        .map(|row| format!("{:<width$} {}\n", row.name, row.description))
        .collect();
    print(&text)
}
