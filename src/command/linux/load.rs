//! `plumbline load`: the engine alone, against any HTTP server or `plumbline serve`.

mod find_max;
mod live;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plumbline_engine::{LoadPlan, LoadProgress};
use plumbline_generator::{Circumstances, Destination, LoadArgs};
use plumbline_harness::is_harmless;
use plumbline_report::load as shown;

use crate::command::{print, print_json, refused};

pub(crate) fn run(args: &LoadArgs) -> anyhow::Result<ExitCode> {
    let destination: Destination = args.target.parse()?;
    let plan = args.plan(&destination)?;
    let search = args.search(plan.workload.kind)?;
    let target = destination.resolve()?;
    if !is_harmless(target.ip()) && !args.i_own_this {
        return refused(format!(
            "{target} is a public address, and load may only go to your own machines: if this is one, say --i-own-this"
        ));
    }
    let progress = Arc::new(LoadProgress::default());
    let plan = LoadPlan {
        target,
        progress: Some(Arc::clone(&progress)),
        ..plan
    };
    let interrupted = plumbline_sys::signal::interruption()?;
    match search {
        Some(search) => find_max::run(args, &search, plan, interrupted),
        None => measure(args, &plan, &progress, interrupted),
    }
}

fn measure(
    args: &LoadArgs,
    plan: &LoadPlan,
    progress: &LoadProgress,
    interrupted: &AtomicBool,
) -> anyhow::Result<ExitCode> {
    plan.check()?;
    // While the receiver runs.
    let remarks = plumbline_generator::sharing(plan);
    if !args.json {
        let headline = shown::headline(&plan.workload, plan.target, plan.measure);
        anstream::eprintln!("{headline}");
    }
    plumbline_generator::rehearse(plan, interrupted)?;
    let floor = live::floor(&plan.cpus, interrupted);
    let result = live::shown_while(plan, progress, || {
        plumbline_engine::run(plan, interrupted, &mut ())
    })?;
    let seen = Circumstances {
        floor,
        interrupted: interrupted.load(Ordering::Relaxed),
        remarks,
    };
    let outcome = plumbline_generator::judge(plan, result, seen);
    if args.json {
        print_json(&shown::json(&outcome))?;
    } else {
        print(&shown::text(&outcome))?;
    }
    Ok(if outcome.failed() {
        ExitCode::from(2)
    } else {
        ExitCode::SUCCESS
    })
}
