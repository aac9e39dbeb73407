//! The generator's own floor: what it measures where there is no network (L-13).

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use plumbline_experiment::{Arrival, Workload, WorkloadKind};
use plumbline_record::Floor;

use crate::{EngineError, LoadPlan, Responder, ServePlan, run};

const WARM_UP: Duration = Duration::from_millis(50);
const MEASURE: Duration = Duration::from_millis(200);
/// A message that is a sequence number and no more.
const SIZE: u32 = 16;

/// Measures the round trip of one small request at a time to a responder of
/// this process, over the loopback device of the calling thread's namespace:
/// no path can show less. Takes a quarter of a second.
///
/// The sender runs on the first of `client_cpus`, the responder on the first of
/// `server_cpus`; an empty list means no binding. `None` when `stop` became
/// true before the end.
///
/// # Errors
/// As [`run`] and [`Responder::bind`], such as when loopback is down.
pub fn floor(
    client_cpus: &[usize],
    server_cpus: &[usize],
    stop: &AtomicBool,
) -> Result<Option<Floor>, EngineError> {
    let workload = Workload {
        request_size: SIZE,
        response_size: SIZE,
        connections: 1,
        arrival: Arrival::Closed,
        ..Workload::of_kind(WorkloadKind::Rr)
    };
    let responder = Responder::bind(&ServePlan {
        cpus: server_cpus.to_vec(),
        ..ServePlan::new(workload.clone(), (Ipv4Addr::LOCALHOST, 0).into())
    })?;
    let plan = LoadPlan {
        warm_up: WARM_UP,
        measure: MEASURE,
        cpus: client_cpus.to_vec(),
        ..LoadPlan::new(workload, responder.local_addr())
    };
    let done = AtomicBool::new(false);
    let (result, served) = thread::scope(|scope| {
        let server = scope.spawn(|| responder.run(&done));
        let result = run(&plan, stop, &mut ());
        done.store(true, Ordering::SeqCst);
        let served = server
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (result, served)
    });
    let result = result?;
    served?;
    if stop.load(Ordering::SeqCst) || result.completed == 0 {
        return Ok(None);
    }
    Ok(Some(Floor {
        round_trips: result.completed,
        p50_ns: result.latency.value_at(0.5),
        p99_ns: result.latency.value_at(0.99),
    }))
}
