//! `plumbline compare`: verdicts inside a run or between runs.

use std::process::ExitCode;

use anyhow::Context as _;
use plumbline_record::RunDirectory;
use plumbline_report::compare::{Options, compare};

use super::{BadUsage, print, print_json};
use crate::cli::CompareArgs;

pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<ExitCode> {
    let mut runs = Vec::new();
    for path in &args.runs {
        runs.push(RunDirectory::read(path).with_context(|| path.display().to_string())?);
    }
    let limits = args
        .limit
        .iter()
        .map(|text| limit(text))
        .collect::<Result<_, _>>()?;
    let options = Options {
        across_environments: args.across_environments,
        limits,
    };
    let comparison = compare(&runs, &options)?;
    if args.json {
        print_json(&comparison.to_json())?;
    } else {
        print(&comparison.to_text())?;
    }
    Ok(ExitCode::from(u8::from(
        !comparison.broken_limits().is_empty(),
    )))
}

/// `p50=10%` or `p50=0.1`.
fn limit(text: &str) -> Result<(String, f64), BadUsage> {
    let wrong = || {
        BadUsage(format!(
            "--limit {text}: write METRIC=SHARE, such as p50=10%"
        ))
    };
    let (metric, share) = text.split_once('=').ok_or_else(wrong)?;
    let (number, scale) = share
        .strip_suffix('%')
        .map_or((share, 1.0), |percent| (percent, 0.01));
    let share: f64 = number.trim().parse().map_err(|_| wrong())?;
    if !share.is_finite() || !plumbline_experiment::METRICS.contains(&metric.trim()) {
        return Err(BadUsage(format!(
            "--limit {text}: the metric is one of {}",
            plumbline_experiment::METRICS.join(", ")
        )));
    }
    Ok((metric.trim().to_owned(), share * scale))
}
