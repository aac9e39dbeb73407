//! `plumbline compare`: verdicts inside a run or between runs.

use std::process::ExitCode;

use plumbline_record::RunDirectory;
use plumbline_report::compare::{compare, json, parse_limits, render};

use super::{BadUsage, print, report};
use crate::cli::CompareArgs;

pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<ExitCode> {
    let limits = parse_limits(&args.limit).map_err(|error| BadUsage(error.to_string()))?;
    let mut runs = Vec::new();
    for path in &args.runs {
        let (mut run, trials) = RunDirectory::read(path)?;
        // What is typed outranks what the experiment says.
        run.plan.limits.extend(limits.iter().cloned());
        runs.push((run, trials));
    }
    let compared = compare(&runs, args.across_environments)?;
    print(&if args.json {
        json(&compared)
    } else {
        render(&compared, report::terminal_style())
    })?;
    Ok(match (compared.is_broken(), compared.has_undecided()) {
        (true, _) => ExitCode::from(1),
        // A limit that could not be judged must not pass for one that held.
        (false, true) => ExitCode::from(2),
        (false, false) => ExitCode::SUCCESS,
    })
}
