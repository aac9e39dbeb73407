//! `plumbline load --find-max`: the highest rate that holds a limit.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumbline_engine::{EngineError, LoadPlan};
use plumbline_experiment::{Arrival, Limit, WorkloadKind};
use plumbline_harness::{
    FindMaxError, SearchPlan, SearchStep, Searched, SearchedLoad, Thresholds, at_rate, find_max,
};
use plumbline_record::{Floor, SearchOutcome, SearchPurpose, SearchTrial};
use plumbline_report::latency::latency_json;
use plumbline_report::number;
use serde_json::json;

use super::load::{duration, floor, floor_json, floor_text, usage_or_error};
use super::{BadUsage, print, print_json};
use crate::cli::{FindMaxArgs, LoadArgs, Process};
use crate::progress;

/// What to search, from what was typed; touches nothing.
pub(super) fn plan(
    args: &FindMaxArgs,
    limit: Limit,
    kind: WorkloadKind,
) -> Result<SearchPlan, BadUsage> {
    refuse_bulk(kind)?;
    let search = search_plan(args, limit)?;
    search
        .check()
        .map_err(|error| BadUsage(format!("--find-max: {error}")))?;
    Ok(search)
}

/// Searches with the load of `plan`, whose rate and window are replaced.
pub(super) fn run(
    args: &LoadArgs,
    limit: Limit,
    search: &SearchPlan,
    plan: &LoadPlan,
    interrupted: &AtomicBool,
) -> anyhow::Result<ExitCode> {
    let plan = LoadPlan {
        workload: at_rate(&plan.workload, search.bounds.least),
        ..plan.clone()
    };
    let plan = with_gaps(plan, args.arrival);
    let floor = floor(&plan.cpus, interrupted);
    if !args.json {
        print(&floor.map(floor_text).unwrap_or_default())?;
        print(&heading(&plan, search))?;
    }
    let mut failed = None;
    let searched = find_max::<EngineError>(
        search,
        &Thresholds::default(),
        &mut |step| measure(&plan, step, interrupted),
        &mut |trial| {
            if !args.json {
                failed = failed.take().or(print(&line(trial, limit)).err());
            }
        },
    );
    let (searched, broken) = ended(searched)?;
    if let Some(error) = failed {
        return Err(error);
    }
    if args.json {
        print_json(&to_json(search, &searched, plan.seed, floor))?;
    } else {
        print(&format!("\n{}\n", conclusion(search, &searched)))?;
    }
    if let Some(error) = broken {
        return Err(usage_or_error(error));
    }
    if let SearchOutcome::Found { .. } = searched.outcome {
        return Ok(ExitCode::SUCCESS);
    }
    if args.json {
        progress::say(&format!("plumbline: {}", conclusion(search, &searched)));
    }
    Ok(ExitCode::from(2))
}

/// Bulk has no rate to raise, or no answers to count.
fn refuse_bulk(kind: WorkloadKind) -> Result<(), BadUsage> {
    let why = match kind {
        WorkloadKind::Rr | WorkloadKind::Crr | WorkloadKind::Http => return Ok(()),
        WorkloadKind::Stream => "stream has no rate: it sends as fast as the path carries",
        WorkloadKind::Datagram => {
            "datagram gets no answers, and the sender alone cannot tell what arrived; use --workload rr --udp"
        }
    };
    Err(BadUsage(format!("--find-max: {why}")))
}

fn search_plan(args: &FindMaxArgs, limit: Limit) -> Result<SearchPlan, BadUsage> {
    let trial = duration(&args.trial, "--trial")?;
    if !(Duration::from_millis(100)..=Duration::from_secs(600)).contains(&trial) {
        return Err(BadUsage(format!(
            "--trial {}: a trial lasts from 100ms to 10min",
            args.trial
        )));
    }
    if args.up_to.is_nan() || args.up_to > 1e8 {
        return Err(BadUsage(format!(
            "--up-to {}: at most 100,000,000 requests per second can be asked for",
            args.up_to
        )));
    }
    let mut search = SearchPlan::new(limit, args.up_to).with_trials_of(trial.as_secs_f64());
    search.goal.duration_sum = trial.as_secs_f64() * f64::from(args.trials);
    search.goal.width = (args.width / 100.0).max(search.goal.loss_ratio);
    Ok(search)
}

fn with_gaps(mut plan: LoadPlan, process: Option<Process>) -> LoadPlan {
    let arrival = &mut plan.workload.arrival;
    if let (Some(Process::Constant), Arrival::Poisson { rate }) = (process, *arrival) {
        *arrival = Arrival::Constant { rate };
    }
    plan
}

/// One trial: fresh connections, a seed of its own. `None` when interrupted.
fn measure(
    plan: &LoadPlan,
    step: &SearchStep,
    interrupted: &AtomicBool,
) -> Result<Option<SearchedLoad>, EngineError> {
    let trial = LoadPlan {
        workload: at_rate(&plan.workload, step.rate),
        measure: step.measure,
        drain: step.drain,
        seed: plan.seed.wrapping_add(step.index as u64),
        ..plan.clone()
    };
    let load = plumbline_engine::run(&trial, interrupted, &mut ())?;
    // Nobody meters the machine here.
    let disturbed = Vec::new();
    let searched = SearchedLoad { load, disturbed };
    Ok((!interrupted.load(Ordering::SeqCst)).then_some(searched))
}

/// What there is to show, and what broke the search off. The trials before a
/// server went away are as good as any; without them there is only the
/// error.
fn ended(
    searched: Result<Searched, FindMaxError<EngineError>>,
) -> anyhow::Result<(Searched, Option<EngineError>)> {
    match searched {
        Ok(searched) => Ok((searched, None)),
        Err(FindMaxError::Trial { error, trials }) if trials.is_empty() => {
            Err(usage_or_error(error))
        }
        Err(FindMaxError::Trial { error, trials }) => {
            let outcome = SearchOutcome::Failed;
            Ok((Searched { outcome, trials }, Some(error)))
        }
        // Only flags can make a search that contradicts itself.
        Err(FindMaxError::Search(error)) => Err(BadUsage(format!("--find-max: {error}")).into()),
    }
}

fn heading(plan: &LoadPlan, search: &SearchPlan) -> String {
    format!(
        "{} to {}: the highest rate with {}, trials of {} s\n{:<7}{:>12}{:>8}{:>11}{:>12}\n",
        plan.workload.name,
        plan.target,
        search.limit,
        search.goal.final_trial,
        "",
        "rate",
        "length",
        "lost",
        percentile(search.limit),
    )
}

fn line(trial: &SearchTrial, limit: Limit) -> String {
    let latency = number::duration(trial.load.latency.value_at(quantile(limit)) as f64);
    let verdict = match (trial.held, trial.generator.is_empty()) {
        (true, _) => "held",
        (false, true) => "missed",
        (false, false) => "missed, by the generator",
    };
    format!(
        "{:<7}{:>10}/s{:>6.1} s{:>9.4} %{:>12}  {verdict}\n",
        purpose(trial.purpose),
        number::count(trial.rate.round()),
        trial.duration_ns as f64 / 1e9,
        trial.loss_ratio * 100.0,
        number::plain(&latency),
    )
}

fn purpose(purpose: SearchPurpose) -> &'static str {
    match purpose {
        SearchPurpose::Path => "path",
        SearchPurpose::Ramp => "ramp",
        SearchPurpose::Floor => "floor",
        SearchPurpose::Search => "search",
    }
}

/// The percentile that is limited; the 99th where losses are.
fn quantile(limit: Limit) -> f64 {
    match limit {
        Limit::Latency { quantile, .. } => quantile,
        Limit::Loss { .. } => 0.99,
    }
}

fn percentile(limit: Limit) -> String {
    number::percentile_name(quantile(limit))
}

/// What came out, in sentences, with the remedy where there is no number.
fn conclusion(search: &SearchPlan, searched: &Searched) -> String {
    let limit = search.limit;
    let rate = |value: f64| number::count(value.round());
    match searched.outcome {
        SearchOutcome::Interrupted => format!(
            "interrupted after {} trials: no number",
            searched.trials.len()
        ),
        SearchOutcome::Failed => format!(
            "no number: after {} trials the next one could not be run",
            searched.trials.len()
        ),
        SearchOutcome::Found {
            lower_bound,
            upper_bound,
            conditional_throughput,
            generator_limited,
        } => {
            let bounds = match upper_bound {
                Some(upper) => format!("{} held, {} did not", rate(lower_bound), rate(upper)),
                None => format!(
                    "{} held, and more was not offered: raise --up-to",
                    rate(lower_bound)
                ),
            };
            let whose = if generator_limited {
                "\nthe generator was the limit, not the network: more --threads or --spin may go higher"
            } else {
                ""
            };
            format!(
                "maximum with {limit}: {}/s ({bounds}; {} trials){whose}",
                rate(conditional_throughput),
                searched.trials.len()
            )
        }
        SearchOutcome::BrokenPath if is_ours(searched) => format!(
            "no number: {limit} does not hold even at {}/s, because the generator itself was late; \
             quieten the machine, or try --spin",
            rate(search.bounds.least)
        ),
        SearchOutcome::BrokenPath => format!(
            "no number: {limit} does not hold even at {}/s; the path is broken, the limit out of reach, \
             or the rate too high to begin with: longer --trial begins lower",
            rate(search.bounds.least)
        ),
        SearchOutcome::Unfit { rate: low } => format!(
            "no number: at {}/s, a small part of what the path carries, not every request was answered within {limit}; \
             such a path has no lossless rate, look for the loss first",
            rate(low)
        ),
        SearchOutcome::OutOfTime => format!(
            "no number: after {:.0} s of trials the bounds are not within {} %; \
             quieten the machine, or allow a larger --width",
            search.bounds.time_limit,
            search.goal.width * 100.0
        ),
    }
}

/// Whether most misses are the generator's.
fn is_ours(searched: &Searched) -> bool {
    let misses = searched.trials.iter().filter(|trial| !trial.held);
    let ours = misses.clone().filter(|trial| !trial.generator.is_empty());
    ours.count() * 2 > misses.count()
}

fn to_json(
    search: &SearchPlan,
    searched: &Searched,
    seed: u64,
    floor: Option<Floor>,
) -> serde_json::Value {
    let mut value = json!({
        "limit": search.limit,
        "goal": search.recorded_goal(),
        "seed": seed,
        "floor_ns": floor.map(floor_json),
        "lower_bound": null,
        "upper_bound": null,
        "conditional_throughput": null,
        "generator_limited": null,
        "verdict": conclusion(search, searched),
        "trials": searched.trials.iter().map(trial_json).collect::<Vec<_>>(),
    });
    if let serde_json::Value::Object(fields) = json!(searched.outcome) {
        for (key, field) in fields {
            value[key] = field;
        }
    }
    value
}

fn trial_json(trial: &SearchTrial) -> serde_json::Value {
    let load = &trial.load;
    json!({
        "purpose": trial.purpose,
        "offered_rate": trial.rate,
        "seconds": trial.duration_ns as f64 / 1e9,
        "held": trial.held,
        "loss_ratio": trial.loss_ratio,
        "generator_limited": !trial.generator.is_empty(),
        "generator_checks_failed": trial.generator,
        "planned": load.planned,
        "sent": load.sent,
        "requests": load.completed,
        "errors": load.errors.total(),
        "latency_ns": latency_json(&load.latency),
        "send_lag_ns": latency_json(&load.send_lag),
        "cpu_seconds": (load.cpu.user_ns + load.cpu.system_ns) as f64 / 1e9,
        "seed": load.seed,
    })
}
