//! Whether both ends mean the same, found out before the load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumbline_engine::LoadPlan;
use plumbline_experiment::{Arrival, Protocol, Wait, Workload, WorkloadKind};
use plumbline_record::LoadResult;

use super::usage_or_error;

/// How long requests are sent for, and how long an answer may take.
const LENGTH: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_secs(2);
/// Over UDP a single request may be lost on the way.
const UDP_ATTEMPTS: usize = 3;

/// Sends a few requests over one connection to a `plumbline serve`. Where
/// sizes or workload differ every request would fail, which the counts of a
/// whole load tell late and not in words.
pub(super) fn hold(plan: &LoadPlan, stop: &AtomicBool) -> anyhow::Result<()> {
    if !matches!(plan.workload.kind, WorkloadKind::Rr | WorkloadKind::Crr) {
        return Ok(());
    }
    let rehearsal = LoadPlan {
        workload: Workload {
            connections: 1,
            arrival: Arrival::Closed,
            wait: Wait::Block,
            ..plan.workload.clone()
        },
        warm_up: Duration::ZERO,
        measure: LENGTH,
        drain: PATIENCE,
        threads: 1,
        progress: None,
        ..plan.clone()
    };
    let attempts = match plan.workload.protocol {
        Protocol::Udp => UDP_ATTEMPTS,
        Protocol::Tcp => 1,
    };
    let mut wrong = None;
    for _ in 0..attempts {
        let result = plumbline_engine::run(&rehearsal, stop, &mut ()).map_err(usage_or_error)?;
        wrong = misunderstanding(&result);
        if wrong.is_none() || stop.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
    match wrong {
        Some(what) => anyhow::bail!("{} {what}; {}", plan.target, remedy(plan)),
        None => Ok(()),
    }
}

fn misunderstanding(result: &LoadResult) -> Option<&'static str> {
    let errors = &result.errors;
    if errors.corrupt + errors.protocol > 0 {
        Some("answered with something else than our answer to a request")
    } else if errors.closed > 0 {
        Some("closed the connection instead of answering")
    } else if errors.total() > 0 {
        Some("does not take requests")
    } else if result.completed == 0 {
        Some("did not answer a request in time")
    } else {
        None
    }
}

fn remedy(plan: &LoadPlan) -> String {
    let spec = &plan.workload;
    let udp = if spec.protocol == Protocol::Udp {
        " --udp"
    } else {
        ""
    };
    format!(
        "both ends must be started with the same workload and sizes: `plumbline serve {} --workload {}{udp} --request-size {} --response-size {}`",
        plan.target,
        spec.kind.as_str(),
        spec.request_size,
        spec.response_size
    )
}
