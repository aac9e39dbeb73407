//! `plumbline compare`: verdicts inside a run or between runs.

use std::process::ExitCode;

use plumbline_experiment::metric;
use plumbline_record::RunDirectory;
use plumbline_report::compare::{compare, json, render};

use super::{BadUsage, print, report};
use crate::cli::CompareArgs;

pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<ExitCode> {
    let limits = args
        .limit
        .iter()
        .map(|text| limit(text))
        .collect::<Result<Vec<_>, _>>()?;
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

/// `p50=10%` or `p50=0.1`.
fn limit(text: &str) -> Result<(String, f64), BadUsage> {
    let wrong = || {
        BadUsage(format!(
            "--limit {text}: write METRIC=SHARE, such as p50=10%"
        ))
    };
    let (name, share) = text.split_once('=').ok_or_else(wrong)?;
    let (number, scale) = share
        .strip_suffix('%')
        .map_or((share, 1.0), |percent| (percent, 0.01));
    let share: f64 = number.trim().parse().map_err(|_| wrong())?;
    let known = metric::names();
    if !share.is_finite() || !known.contains(&name.trim()) {
        return Err(BadUsage(format!(
            "--limit {text}: the metric is one of {}",
            known.join(", ")
        )));
    }
    Ok((name.trim().to_owned(), share * scale))
}
