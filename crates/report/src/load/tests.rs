use plumbline_experiment::{Arrival, WorkloadKind};
use plumbline_record::{Histogram, LoadOutcome, LoadResult, LoadWarning, ProcessCpu};

use super::*;

const WINDOW_NS: u64 = 1_000_000_000;

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

fn outcome(result: LoadResult, interrupted: bool, warnings: &[LoadWarning]) -> LoadOutcome {
    LoadOutcome {
        workload: Workload::of_kind(WorkloadKind::Rr),
        result,
        floor: None,
        interrupted,
        limited_by_generator: false,
        warnings: warnings.to_vec(),
    }
}

#[test]
fn warnings_are_told_in_words_with_a_remedy() {
    let late = LoadWarning::GeneratorLate {
        quantile: 0.99,
        lag_ns: 5_000_000,
        latency_ns: 6_000_000,
    };
    let outcome = outcome(result(1_000), false, &[late]);
    let text = text(&outcome);
    assert!(
        text.contains("warning: the generator sent late: lag p99 5.00 ms of latency p99 6.00 ms"),
        "{text}"
    );
    assert!(text.contains("use --spin"), "{text}");
    let json = json(&outcome);
    assert_eq!(json["warnings"].as_array().unwrap().len(), 1);
    assert_eq!(json["generator_was_the_limit"], false);
}

#[test]
fn cpus_that_are_shared_are_named() {
    let workers = 2;
    let shared = LoadWarning::WorkersShareCpus {
        workers,
        cpus: vec![0],
    };
    let ends = LoadWarning::EndsShareCpus { cpus: vec![0, 1] };
    let text = text(&outcome(result(1_000), false, &[shared, ends]));
    assert!(text.contains("2 workers share one CPU (0)"), "{text}");
    assert!(
        text.contains("sender and receiver share 2 CPUs (0,1)"),
        "{text}"
    );
}

#[test]
fn polling_is_not_the_cost_of_a_request() {
    let text = text(&outcome(result(1_000), false, &[]));
    assert!(text.contains("client CPU   20.00 µs per request"), "{text}");
    assert!(text.contains("polling      20"), "{text}");
}

#[test]
fn what_is_open_at_a_stop_is_in_flight_and_else_unanswered() {
    let mut open = result(1_000);
    open.censored = 3;
    let cut_off = LoadWarning::CutOff {
        after_ns: WINDOW_NS,
        of_ns: 10 * WINDOW_NS,
    };
    let stopped = outcome(open.clone(), true, &[cut_off]);
    assert!(text(&stopped).contains("in flight    3 when stopped"));
    assert!(text(&stopped).contains("cut off after 1.0 of 10.0 s"));
    assert_eq!(json(&stopped)["cut_off"], true);
    let unanswered = LoadWarning::Unanswered { requests: 3 };
    let ended = text(&outcome(open, false, &[unanswered]));
    assert!(ended.contains("3 requests were never answered"), "{ended}");
    assert!(
        !ended.contains("in flight") && !ended.contains("ERRORS"),
        "{ended}"
    );
}

#[test]
fn a_load_stopped_before_its_window_divides_by_nothing() {
    let mut nothing = result(0);
    (nothing.window_ns, nothing.completed, nothing.spin_ns) = (0, 0, 0);
    let stopped = outcome(nothing.clone(), true, &[]);
    assert_eq!(json(&stopped)["achieved_rate"], 0.0);
    assert!(!text(&stopped).contains("NaN") && !text(&stopped).contains("inf"));
    assert!(!stopped.failed());
    assert!(outcome(nothing, false, &[]).failed());
}
