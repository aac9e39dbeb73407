//! `plumbline load --find-max`: the highest rate that holds a limit.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use plumbline_engine::LoadPlan;
use plumbline_generator::{BrokenOff, LoadArgs};
use plumbline_harness::{SearchPlan, at_rate};
use plumbline_record::{SearchOutcome, SearchTrial};
use plumbline_report::load::{self as shown, Search};

use super::live;
use crate::command::{print, print_json};
use crate::progress;

/// Searches with the load of `plan`, whose rate and window are replaced.
pub(super) fn run(
    args: &LoadArgs,
    search: &SearchPlan,
    plan: LoadPlan,
    interrupted: &AtomicBool,
) -> anyhow::Result<ExitCode> {
    let plan = LoadPlan {
        workload: at_rate(&plan.workload, search.bounds.least),
        ..plan
    };
    plan.check()?;
    plumbline_generator::rehearse(&plan, interrupted)?;
    let display = Search {
        limit: search.limit,
        goal: search.recorded_goal(),
        least_rate: search.bounds.least,
        time_limit_s: search.bounds.time_limit,
        seed: plan.seed,
        floor: live::floor(&plan.cpus, interrupted),
    };
    let mut failed = None;
    let mut say = |text: String| {
        if !args.json {
            failed = failed.take().or(print(&text).err());
        }
    };
    say(display.floor.map(shown::floor).unwrap_or_default());
    say(display.heading(&plan.workload, plan.target));
    let mut seen = |trial: &SearchTrial| say(display.line(trial));
    let found = plumbline_generator::find_max(&plan, search, interrupted, &mut seen)?;
    failed.map_or(Ok(()), Err)?;
    conclude(args, &display, found)
}

fn conclude(args: &LoadArgs, display: &Search, found: BrokenOff) -> anyhow::Result<ExitCode> {
    let searched = found.searched;
    let conclusion = display.conclusion(searched.outcome, &searched.trials);
    if args.json {
        print_json(&display.json(searched.outcome, &searched.trials))?;
    } else {
        print(&format!("\n{conclusion}\n"))?;
    }
    if let Some(error) = found.error {
        return Err(error.into());
    }
    if let SearchOutcome::Found { .. } = searched.outcome {
        return Ok(ExitCode::SUCCESS);
    }
    if args.json {
        progress::say(&format!("plumbline: {conclusion}"));
    }
    Ok(ExitCode::from(2))
}
