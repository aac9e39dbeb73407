//! The JSON of loads and searches, all of which is described.

use plumbline_experiment::{Arrival, Workload, WorkloadKind};
use plumbline_record::{
    ArrivalCheck, DatagramCounts, Floor, GateFailure, Histogram, LoadOutcome, LoadResult,
    SearchGoal, SearchOutcome, SearchPurpose, SearchTrial, ServeResult, Spans, ZeroCopyCounts,
};
use plumbline_report::load::{Search, json};

use crate::documented::check;

const FLOOR: Option<Floor> = Some(Floor {
    round_trips: 9_000,
    p50_ns: 20_000,
    p99_ns: 40_000,
});

/// A load of which everything is known.
fn result() -> LoadResult {
    LoadResult {
        arrival: Arrival::Poisson { rate: 5_000.0 },
        clients: vec![Histogram::new(); 2],
        arrivals: Some(ArrivalCheck {
            gaps: 5_000,
            gap_error_p99_ns: 21_000,
            anderson_darling: Some(1.25),
            distance: Some(0.011),
        }),
        zero_copy: Some(ZeroCopyCounts::default()),
        spans: Some(Box::new(Spans::default())),
        ..LoadResult::default()
    }
}

#[test]
fn every_key_of_a_load_is_described() {
    let outcome = LoadOutcome {
        workload: Workload::of_kind(WorkloadKind::Rr),
        result: result(),
        floor: FLOOR,
        interrupted: false,
        limited_by_generator: false,
        warnings: Vec::new(),
    };
    let value = json(&outcome);
    check("load", &value);
    for key in ["arrivals", "zero_copy", "spans", "floor_ns"] {
        assert!(value[key].is_object(), "{key} is not checked: {value}");
    }
    assert!(value["threads_latency_ns"][1].is_object(), "{value}");
}

#[test]
fn every_key_of_a_search_is_described() {
    let search = Search {
        limit: "p99<1ms".parse().expect("a limit"),
        goal: SearchGoal {
            final_trial_ns: 1,
            duration_sum_ns: 1,
            loss_ratio: 0.0,
            exceed_ratio: 0.5,
            width: 0.005,
        },
        least_rate: 1.0,
        time_limit_s: 60.0,
        seed: 1,
        floor: FLOOR,
    };
    let trial = SearchTrial {
        purpose: SearchPurpose::Path,
        rate: 5_000.0,
        duration_ns: 1,
        loss_ratio: 0.0,
        held: false,
        generator: vec![GateFailure::SendLag {
            quantile: 0.99,
            lag_ns: 2,
            limit_ns: 1,
        }],
        disturbed: Vec::new(),
        load: result(),
    };
    let found = SearchOutcome::Found {
        lower_bound: 1.0,
        upper_bound: Some(2.0),
        conditional_throughput: 1.0,
        generator_limited: false,
    };
    for outcome in [found, SearchOutcome::Unfit { rate: 1.0 }] {
        check(
            "search",
            &search.json(outcome, std::slice::from_ref(&trial)),
        );
    }
}

#[test]
fn every_key_of_a_server_is_described() {
    let served = ServeResult {
        datagrams: Some(DatagramCounts::default()),
        ..ServeResult::default()
    };
    let value = serde_json::to_value(served).expect("JSON");
    check("served", &value);
}
