//! What a load says about its own sender: L-7, L-12, L-13.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumbline_engine::{LoadPlan, floor};
use plumbline_experiment::{Arrival, Workload, WorkloadKind};
use plumbline_record::LoadResult;

use crate::rig::{Server, both_ends, in_time, load, loopback_v4, serving, short, workload};

fn rr(arrival: Arrival) -> Workload {
    Workload {
        arrival,
        ..workload(WorkloadKind::Rr)
    }
}

#[test]
fn the_floor_is_a_round_trip_over_loopback() {
    let floor = floor(&[], &[], &AtomicBool::new(false)).unwrap().unwrap();
    assert!(floor.round_trips > 20, "{floor:?}");
    // Two context switches take more than a microsecond anywhere.
    assert!(floor.p50_ns > 1_000, "{floor:?}");
    assert!(floor.p50_ns <= floor.p99_ns, "{floor:?}");
}

#[test]
fn a_floor_that_was_interrupted_is_none() {
    assert_eq!(floor(&[], &[], &AtomicBool::new(true)).unwrap(), None);
}

#[test]
fn a_sender_that_is_asked_too_much_shows_as_busy_and_uneven() {
    let calm = || both_ends(&rr(Arrival::Poisson { rate: 200.0 }), loopback_v4()).0;
    let calm = in_time(calm, |it| it.busiest_thread() < 0.5);
    assert!(calm.busiest_thread() < 0.5, "{}", calm.busiest_thread());
    // Far more than one thread can send, whatever the machine; without a
    // warm-up, or it would still be at that when the window is over.
    let rate = 5_000_000.0;
    let spec = rr(Arrival::Poisson { rate });
    let server = Server::start(&serving(&spec, loopback_v4()));
    let swamped = || {
        load(&LoadPlan {
            warm_up: Duration::ZERO,
            ..short(spec.clone(), server.address)
        })
    };
    // Where it gets that much of its CPU.
    let is_busy = |it: &LoadResult| it.busiest_thread() > calm.busiest_thread() + 0.1;
    let swamped = in_time(swamped, is_busy);
    assert!(
        is_busy(&swamped),
        "{} after {}",
        swamped.busiest_thread(),
        calm.busiest_thread()
    );
    let arrivals = swamped.arrivals.unwrap();
    assert!(arrivals.distance.unwrap() > 0.1, "{arrivals:?}");
    assert!(arrivals.anderson_darling.unwrap() > 7.8, "{arrivals:?}");
}

#[test]
fn only_what_has_a_schedule_is_held_against_it() {
    let constant = Arrival::Constant { rate: 2_000.0 };
    let load = || both_ends(&rr(constant), loopback_v4()).0;
    let arrivals = in_time(
        || load().arrivals.unwrap(),
        // Fewer where many were due at once.
        |it| (300..=400).contains(&it.gaps),
    );
    assert!((300..=400).contains(&arrivals.gaps), "{arrivals:?}");
    assert_eq!(arrivals.distance, None);
    let closed = both_ends(&rr(Arrival::Closed), loopback_v4()).0;
    assert_eq!(closed.arrivals, None);
}
