use plumbline_experiment::{Wait, Workload};
use plumbline_record::{ErrorCounts, Histogram, ProcessCpu};

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
        wait: Wait::Block,
        seed: 1,
        window_ns: WINDOW_NS,
        planned: 10_000,
        sent: 10_000,
        completed: 10_000,
        censored: 0,
        errors: ErrorCounts::default(),
        bytes_sent: 640_000,
        bytes_received: 640_000,
        latency: histogram(60_000 + lag),
        service_time: histogram(60_000),
        send_lag: histogram(lag),
        generator_lag: histogram(lag),
        connect: Histogram::new(),
        waited_for_connection: 0,
        seconds: Vec::new(),
        slice_p50_ns: Vec::new(),
        cpu: ProcessCpu {
            user_ns: 100_000_000,
            system_ns: 300_000_000,
        },
        spin_ns: 200_000_000,
        busiest_thread_ns: 0,
        clients: Vec::new(),
        arrivals: None,
        train: 0,
        zero_copy: None,
        spans: None,
    }
}

#[test]
fn a_late_generator_is_told_aloud() {
    let plan = plan(WorkloadKind::Rr);
    let punctual = result(1_000);
    assert!(Outcome::new(&plan, &punctual, false).warnings().is_empty());
    let late = result(50_000);
    let outcome = Outcome::new(&plan, &late, false);
    let text = outcome.to_text();
    assert!(
        text.contains("warning: the generator sent late: lag p50 50"),
        "{text}"
    );
    assert!(text.contains("use --spin"), "{text}");
    assert!(
        text.contains("warning: the generator was the limit, not the network"),
        "{text}"
    );
    let json = outcome.to_json();
    assert_eq!(json["warnings"].as_array().unwrap().len(), 2);
    assert_eq!(json["generator_was_the_limit"], true);
    let on_time = Outcome::new(&plan, &punctual, false).to_json();
    assert_eq!(on_time["generator_was_the_limit"], false);
    // A closed loop has no schedule to be late for.
    let mut closed = result(50_000);
    closed.arrival = Arrival::Closed;
    assert!(Outcome::new(&plan, &closed, false).warnings().is_empty());
}

#[test]
fn a_late_tail_is_told_too() {
    let plan = plan(WorkloadKind::Rr);
    let mut late = result(1_000);
    (0..300).for_each(|_| {
        late.generator_lag.record(5_000_000);
        late.latency.record(6_000_000);
    });
    let warnings = Outcome::new(&plan, &late, false).warnings();
    assert!(
        warnings[0].contains("lag p99 5.00 ms of latency p99 6.00 ms"),
        "{warnings:?}"
    );
}

#[test]
fn polling_is_not_the_cost_of_a_request() {
    let plan = plan(WorkloadKind::Rr);
    let text = Outcome::new(&plan, &result(1_000), false).to_text();
    assert!(text.contains("client CPU   20.00 µs per request"), "{text}");
    assert!(text.contains("polling      20"), "{text}");
}

#[test]
fn what_is_open_at_a_stop_is_in_flight_and_else_unanswered() {
    let plan = plan(WorkloadKind::Rr);
    let mut open = result(1_000);
    open.censored = 3;
    let stopped = Outcome::new(&plan, &open, true);
    assert!(stopped.to_text().contains("in flight    3 when stopped"));
    assert!(stopped.to_text().contains("cut off after 1.0 of 10.0 s"));
    assert_eq!(stopped.to_json()["cut_off"], true);
    let ended = Outcome::new(&plan, &open, false).to_text();
    assert!(ended.contains("3 requests were never answered"), "{ended}");
    assert!(
        !ended.contains("in flight") && !ended.contains("ERRORS"),
        "{ended}"
    );
}

#[test]
fn a_load_stopped_before_its_window_divides_by_nothing() {
    let plan = plan(WorkloadKind::Rr);
    let mut nothing = result(0);
    (nothing.window_ns, nothing.completed, nothing.spin_ns) = (0, 0, 0);
    let stopped = Outcome::new(&plan, &nothing, true);
    assert_eq!(stopped.to_json()["achieved_rate"], 0.0);
    assert!(!stopped.to_text().contains("NaN") && !stopped.to_text().contains("inf"));
    assert_eq!(stopped.exit_code(), 0);
    assert_eq!(Outcome::new(&plan, &nothing, false).exit_code(), 2);
}
