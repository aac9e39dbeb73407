//! Whether both ends mean the same, found out before the load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumbline_engine::LoadPlan;
use plumbline_experiment::{Arrival, Wait, Workload, WorkloadKind};
use plumbline_record::LoadResult;

use crate::GeneratorError;

/// How long requests are sent, and how long an answer may take.
const LENGTH: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_secs(2);
/// Over UDP a single request may be lost on the way.
const UDP_ATTEMPTS: usize = 3;

/// Sends a few requests over one connection to a `plumbline serve`. Where sizes or
/// workloads differ, every request of the load would fail, and its counts would not
/// say why. Other kinds are not rehearsed.
///
/// # Errors
///
/// What the other end did instead of answering, and how to start both alike.
pub fn rehearse(plan: &LoadPlan, stop: &AtomicBool) -> Result<(), GeneratorError> {
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
    let attempts = if plan.workload.is_udp() {
        UDP_ATTEMPTS
    } else {
        1
    };
    let mut wrong = None;
    for _ in 0..attempts {
        let result = plumbline_engine::run(&rehearsal, stop, &mut ())?;
        wrong = misunderstanding(&result);
        if wrong.is_none() || stop.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
    wrong.map_or(Ok(()), |what| {
        Err(GeneratorError::Misunderstood {
            target: plan.target,
            what,
            remedy: remedy(plan),
        })
    })
}

fn misunderstanding(result: &LoadResult) -> Option<&'static str> {
    let errors = &result.errors;
    if errors.corrupt + errors.protocol > 0 {
        Some("answered with something other than our answer to a request")
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
    let udp = if spec.is_udp() { " --udp" } else { "" };
    format!(
        "both ends must be started with the same workload and sizes, and the same --secret or none: `plumbline serve {} --workload {}{udp} --request-size {} --response-size {}`",
        plan.target,
        spec.kind.as_str(),
        spec.request_size,
        spec.response_size
    )
}
