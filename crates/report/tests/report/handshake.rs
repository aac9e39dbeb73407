//! The time to open a connection, where that is part of what a request pays.

use plumbline_report::{Summary, csv, html, json, markdown};

use crate::documented;
use crate::fake::{self, Fake, Network, load_of};

fn two() -> Fake {
    let slow = Network {
        latency: 1.5,
        ..Network::same("slow")
    };
    Fake {
        workloads: vec![fake::rr(), fake::opening()],
        ..Fake::new(&[Network::same("host"), slow])
    }
}

#[test]
fn it_is_a_metric_where_requests_open_connections_and_nowhere_else() {
    let (run, trials) = two().run();
    let summary = Summary::new(&run, &trials);
    assert!(summary.comparison(1, "handshake").is_none(), "rr has none");
    let found = summary.comparison(3, "handshake").expect("crr has");
    let ratio = found.effect.unwrap().ratio_minus_one;
    assert!(!found.is_primary && (ratio - 0.5).abs() < 0.03, "{found:?}");
    let report = documented::read(&json::render(&summary));
    let of = |id: usize| &report["treatments"][id]["latency_over_trials_ns"]["handshake"]["median"];
    assert!(of(0).is_null() && of(3).as_f64() > of(2).as_f64());
    let csv = csv::render(&summary);
    let rows = csv
        .lines()
        .filter(|it| it.contains(",handshake_over_trials_ns,"));
    assert_eq!(rows.count(), 2, "{csv}");
    let heading = "handshake p50, median of trials";
    assert_eq!(markdown::render(&summary).matches(heading).count(), 1);
    assert!(html::render(&summary, &run, &trials).contains(heading));
}

#[test]
fn connections_that_were_never_made_are_later_than_all() {
    let (run, mut trials) = two().run();
    let handshake = |trials: &[_]| {
        let summary = Summary::new(&run, trials);
        let runs = summary.treatments[2].over_trials("handshake");
        runs.map(|runs| runs.median)
    };
    let before = handshake(&trials).unwrap();
    for trial in &mut trials {
        let load = &mut load_of(trial).load;
        load.sent += load.connect.len() / 3;
    }
    let after = handshake(&trials).unwrap();
    assert!(after > 1.05 * before, "{before} {after}");
    for trial in &mut trials {
        load_of(trial).load.connect = Default::default();
    }
    assert_eq!(handshake(&trials), None);
}
