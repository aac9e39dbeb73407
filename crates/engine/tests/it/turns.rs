//! Loads in slices, as where several take turns.

use std::sync::atomic::AtomicBool;

use plumbline_engine::{EngineError, LoadPlan, WindowObserver, run};
use plumbline_experiment::{Arrival, Slice, Workload, WorkloadKind};
use plumbline_record::LoadResult;
use plumbline_sys::clock::now_ns;

use crate::rig::{Server, in_time, loopback_v4, serving, short, workload};

const MS: u64 = 1_000_000;
/// From the last connection to the start, on a machine that has other work.
const HEAD_START_NS: i64 = 200 * MS as i64;

/// 20 ms of warm-up, then twice 5 ms not recorded and 50 ms recorded.
fn slices() -> Vec<Slice> {
    let slice = |begin, open, end| Slice {
        begin_ns: begin * MS,
        open_ns: open * MS,
        end_ns: end * MS,
    };
    vec![slice(0, 20, 20), slice(80, 85, 135), slice(300, 305, 355)]
}

/// Starts so long after all is ready, and counts what opens and closes.
struct Calls {
    head_start_ns: Option<i64>,
    opened: usize,
    closed: usize,
}

impl WindowObserver for Calls {
    fn begins(&mut self) -> Option<u64> {
        assert_eq!(self.opened, 0);
        Some(now_ns().saturating_add_signed(self.head_start_ns?))
    }

    fn window_opens(&mut self) {
        self.opened += 1;
    }

    fn window_closes(&mut self) {
        self.closed += 1;
    }
}

fn in_turns(spec: &Workload, head_start_ns: Option<i64>) -> Result<LoadResult, EngineError> {
    let turns = Some(slices());
    begun(spec, head_start_ns, |plan| LoadPlan { turns, ..plan })
}

fn begun(
    spec: &Workload,
    head_start_ns: Option<i64>,
    change: impl FnOnce(LoadPlan) -> LoadPlan,
) -> Result<LoadResult, EngineError> {
    let server = Server::start(&serving(spec, loopback_v4()));
    let plan = change(short(spec.clone(), server.address));
    let mut calls = Calls {
        head_start_ns,
        opened: 0,
        closed: 0,
    };
    let result = run(&plan, &AtomicBool::new(false), &mut calls)?;
    let recorded = if plan.turns.is_some() { 2 } else { 1 };
    let windows = head_start_ns.map_or(0, |_| recorded);
    assert_eq!((calls.opened, calls.closed), (windows, windows));
    assert_eq!(server.finish().corrupt, 0);
    Ok(result)
}

#[test]
fn a_schedule_stands_still_between_slices() {
    for kind in [
        WorkloadKind::Rr,
        WorkloadKind::Crr,
        WorkloadKind::Http,
        WorkloadKind::Datagram,
    ] {
        let spec = Workload {
            arrival: Arrival::Constant { rate: 1_000.0 },
            ..workload(kind)
        };
        // Whoever has no CPU for so long is late.
        let load = in_time(
            || in_turns(&spec, Some(HEAD_START_NS)),
            |load| load.as_ref().is_ok_and(|it| it.censored == 0),
        );
        let load = load.unwrap();
        // One for each recorded millisecond; the others are in the warm-up.
        assert_eq!(
            (load.planned, load.sent, load.completed),
            (100, 100, 100),
            "{kind:?}"
        );
        assert_eq!(
            (load.errors.total(), load.window_ns),
            (0, 100 * MS),
            "{kind:?}"
        );
    }
}

#[test]
fn a_closed_loop_and_bulk_go_on_in_the_next_slice() {
    for kind in [
        WorkloadKind::Rr,
        WorkloadKind::Crr,
        WorkloadKind::Stream,
        WorkloadKind::Datagram,
    ] {
        let spec = workload(kind);
        let load = in_time(
            || in_turns(&spec, Some(HEAD_START_NS)),
            |load| load.as_ref().is_ok_and(|it| it.censored == 0),
        );
        let load = load.unwrap();
        assert_eq!(load.errors.total() + load.censored, 0, "{kind:?}");
        assert!(load.completed > 0 && load.bytes_sent > 0, "{kind:?}");
    }
}

#[test]
fn whoever_hears_of_the_first_turn_too_late_says_so() {
    let error = in_turns(&workload(WorkloadKind::Rr), Some(-HEAD_START_NS));
    assert!(matches!(error, Err(EngineError::Late)), "{error:?}");
}

#[test]
fn a_whole_window_that_began_while_the_cpu_was_away_is_used() {
    let spec = workload(WorkloadKind::Rr);
    let warm_up = std::time::Duration::ZERO;
    let away = |plan| LoadPlan { warm_up, ..plan };
    let load = begun(&spec, Some(-(3 * MS as i64)), away).unwrap();
    assert!(load.completed > 0, "{load:?}");
}

#[test]
fn whoever_is_told_no_start_sends_nothing() {
    let load = in_turns(&workload(WorkloadKind::Rr), None).unwrap();
    assert_eq!((load.sent, load.window_ns), (0, 0));
}
