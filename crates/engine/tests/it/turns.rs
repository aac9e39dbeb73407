//! Loads in slices, as where several take turns.

use std::sync::atomic::AtomicBool;

use plumbline_engine::{EngineError, LoadPlan, Turns, WindowObserver, run};
use plumbline_experiment::{Arrival, Slice, Workload, WorkloadKind};
use plumbline_record::LoadResult;
use plumbline_sys::clock::now_ns;

use crate::rig::{Server, loopback_v4, serving, short, workload};

const MS: u64 = 1_000_000;
/// A second to connect, on a machine that has other work.
const HEAD_START_NS: u64 = 1_000 * MS;

/// 20 ms of warm-up, then twice 5 ms not recorded and 50 ms recorded.
fn slices() -> Vec<Slice> {
    let slice = |begin, open, end| Slice {
        begin_ns: begin * MS,
        open_ns: open * MS,
        end_ns: end * MS,
    };
    vec![slice(0, 20, 20), slice(80, 85, 135), slice(300, 305, 355)]
}

#[derive(Default)]
struct Calls(usize, usize);

impl WindowObserver for Calls {
    fn window_opens(&mut self) {
        self.0 += 1;
    }

    fn window_closes(&mut self) {
        self.1 += 1;
    }
}

fn in_turns(spec: &Workload, start_ns: u64) -> Result<LoadResult, EngineError> {
    let server = Server::start(&serving(spec, loopback_v4()));
    let plan = LoadPlan {
        turns: Some(Turns {
            start_ns,
            slices: slices(),
        }),
        ..short(spec.clone(), server.address)
    };
    let mut calls = Calls::default();
    let result = run(&plan, &AtomicBool::new(false), &mut calls)?;
    assert_eq!((calls.0, calls.1), (2, 2));
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
        let load = in_turns(&spec, now_ns() + HEAD_START_NS).unwrap();
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
        let load = in_turns(&workload(kind), now_ns() + HEAD_START_NS).unwrap();
        assert_eq!(load.errors.total() + load.censored, 0, "{kind:?}");
        assert!(load.completed > 0 && load.bytes_sent > 0, "{kind:?}");
    }
}

#[test]
fn whoever_comes_too_late_for_the_first_turn_says_so() {
    let error = in_turns(&workload(WorkloadKind::Rr), now_ns() - HEAD_START_NS);
    assert!(matches!(error, Err(EngineError::Late)), "{error:?}");
}
