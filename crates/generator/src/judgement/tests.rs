use plumbline_experiment::{Arrival, Workload, WorkloadKind};
use plumbline_record::{Histogram, LoadResult, ProcessCpu, Warning};

use super::*;

const WINDOW_NS: u64 = 1_000_000_000;

fn plan(kind: WorkloadKind) -> LoadPlan {
    LoadPlan::new(Workload::of_kind(kind), ([127, 0, 0, 1], 7117).into())
}

fn histogram(ns: u64) -> Histogram {
    let mut histogram = Histogram::new();
    (0..10_000).for_each(|_| histogram.record(ns));
    histogram
}

/// A second at 10,000 requests/s: answered after 60 µs, sent `lag` ns late.
fn result(lag: u64) -> LoadResult {
    LoadResult {
        driver: "epoll".to_owned(),
        arrival: Arrival::Poisson { rate: 10_000.0 },
        seed: 1,
        window_ns: WINDOW_NS,
        planned: 10_000,
        sent: 10_000,
        completed: 10_000,
        bytes_sent: 640_000,
        bytes_received: 640_000,
        latency: histogram(60_000 + lag),
        service_time: histogram(60_000),
        send_lag: histogram(lag),
        generator_lag: histogram(lag),
        cpu: ProcessCpu {
            user_ns: 100_000_000,
            system_ns: 300_000_000,
        },
        spin_ns: 200_000_000,
        ..LoadResult::default()
    }
}

fn judged(result: LoadResult, interrupted: bool) -> LoadOutcome {
    let seen = Circumstances {
        interrupted,
        ..Circumstances::default()
    };
    judge(&plan(WorkloadKind::Rr), result, seen)
}

#[test]
fn a_late_generator_is_told_aloud() {
    let punctual = judged(result(1_000), false);
    assert_eq!(punctual.warnings, []);
    assert!(!punctual.limited_by_generator);
    let late = judged(result(50_000), false);
    assert!(late.limited_by_generator);
    let [
        LoadWarning::OfTrials(Warning::GeneratorWasTheLimit { .. }),
        LoadWarning::GeneratorLate {
            quantile: 0.5,
            lag_ns,
            ..
        },
    ] = late.warnings[..]
    else {
        panic!("{:?}", late.warnings);
    };
    assert!((50_000..50_100).contains(&lag_ns), "{lag_ns}");
    // A closed loop has no schedule to be late for.
    let mut closed = result(50_000);
    closed.arrival = Arrival::Closed;
    assert_eq!(judged(closed, false).warnings, []);
}

#[test]
fn a_late_tail_is_told_too() {
    let mut late = result(1_000);
    (0..300).for_each(|_| {
        late.generator_lag.record(5_000_000);
        late.latency.record(6_000_000);
    });
    let warnings = judged(late, false).warnings;
    let is_tail = |it: &LoadWarning| {
        matches!(it, LoadWarning::GeneratorLate { quantile, lag_ns, latency_ns }
            if *quantile == 0.99 && *lag_ns >= 4_990_000 && *latency_ns >= 5_990_000)
    };
    assert!(warnings.first().is_some_and(is_tail), "{warnings:?}");
}

#[test]
fn what_is_open_at_the_end_is_unanswered_unless_somebody_stopped_it() {
    let mut open = result(1_000);
    open.censored = 3;
    let (after_ns, of_ns) = (WINDOW_NS, 10 * WINDOW_NS);
    let stopped = judged(open.clone(), true);
    assert_eq!(stopped.warnings, [LoadWarning::CutOff { after_ns, of_ns }]);
    let ended = judged(open, false);
    assert_eq!(ended.warnings, [LoadWarning::Unanswered { requests: 3 }]);
}
