//! Changes of what a cluster programs, and how long they took to act.

use plumbline_experiment::{ObjectChange, ProgrammedObject, Programming, Task, TreatmentId};
use plumbline_record::{
    GateFailure, ProbeOutcome, ProbeSeries, ProbeSpell, ProgrammingObservation, Run, Trial,
    TrialStatus, What,
};
use plumbline_report::{Summary, csv, html, json, markdown};

use crate::documented;
use crate::fake::{self, Fake, Network};

const MS: u64 = 1_000_000;

/// What is seen of a change that acts so long after its answer, by a connection in each ms.
fn seen(acts_ns: u64) -> ProgrammingObservation {
    let answered_ns = 500 * MS;
    let first_ns = (answered_ns + acts_ns).next_multiple_of(MS);
    let spell = |outcome, from_ns: u64, to_ns: u64| ProbeSpell {
        outcome,
        probes: (to_ns - from_ns) / MS,
        first_ns: from_ns,
        last_ns: to_ns - MS,
    };
    ProgrammingObservation {
        opens: true,
        asked_ns: answered_ns - 8 * MS,
        answered_ns,
        clock_error_ns: 200_000,
        probe: ProbeSeries {
            limit_ns: 100 * MS,
            sent: 3_000,
            widest_gap_ns: MS,
            spells: vec![
                spell(ProbeOutcome::Refused, 0, first_ns),
                spell(ProbeOutcome::Opened, first_ns, 3_000 * MS),
            ],
            ..ProbeSeries::default()
        },
    }
}

/// Two places; in the second one a change takes twice as long. In each block it takes 1 ms
/// longer than in the one before.
fn run(first_ns: u64) -> (Run, Vec<Trial>) {
    let fake = Fake {
        workloads: vec![fake::rr()],
        ..Fake::new(&[Network::same("pod"), Network::same("pod 1000 services")])
    };
    let (mut run, mut trials) = fake.run();
    for treatment in &mut run.plan.treatments {
        treatment.task = Task::Programming(Programming {
            name: "service-added".to_owned(),
            object: ProgrammedObject::Service,
            change: ObjectChange::Add,
            rate: 1_000.0,
        });
    }
    for trial in &mut trials {
        let acts_ns = first_ns + u64::from(trial.block) * MS;
        let seen = seen(acts_ns * (1 + trial.treatment as u64));
        if let Some(observation) = &mut trial.observation {
            observation.what = What::Programming(Box::new(seen));
        }
    }
    (run, trials)
}

fn summary(first_ns: u64) -> (Summary, Run, Vec<Trial>) {
    let (run, trials) = run(first_ns);
    (Summary::new(&run, &trials), run, trials)
}

#[test]
fn a_change_is_compared_on_when_it_acts() {
    let (summary, ..) = summary(50 * MS);
    for metric in ["last_wrong", "first_right"] {
        let found = summary.comparison(1, metric).expect(metric);
        let ratio = found.effect.unwrap().ratio_minus_one;
        assert!(found.is_primary && (ratio - 1.0).abs() < 0.03, "{found:?}");
    }
    let none = ["p50", "cpu_per_request", "throughput"];
    assert!(none.iter().all(|it| summary.comparison(1, it).is_none()));
}

#[test]
fn every_format_has_its_quantiles_over_trials() {
    let (summary, run, trials) = summary(50 * MS);
    let report = documented::read(&json::render(&summary));
    let first = &report["treatments"][0];
    let times = &first["programming"]["first_right_ns"];
    assert_eq!(times["over_trials"]["median"], 54_500_000.0);
    assert_eq!(times["p90"], 58_000_000.0);
    assert_eq!(times["longest"], 59_000_000.0);
    assert_eq!(first["factors"]["object"], "service");
    assert_eq!(first["factors"]["change"], "add");
    assert!(first["rates"].is_null());
    let csv = csv::render(&summary);
    let rows = csv.lines().filter(|it| it.contains(",last_wrong_ns,"));
    assert_eq!(rows.count(), 2, "{csv}");
    for text in [
        markdown::render(&summary),
        html::render(&summary, &run, &trials),
    ] {
        for heading in ["last wrong, median of trials", "first right, longest"] {
            assert!(text.contains(heading), "{heading}");
        }
        assert!(text.contains("a service is added"));
    }
}

#[test]
fn what_is_too_short_to_tell_is_as_long_as_can_be_told() {
    let (summary, ..) = summary(0);
    let values = |id: TreatmentId| {
        let values = summary.treatments[id].values_of("last_wrong");
        values.iter().map(|one| one.value).collect::<Vec<_>>()
    };
    let shortest = values(0).into_iter().fold(f64::INFINITY, f64::min);
    assert_eq!(shortest, 1_200_000.0);
}

#[test]
fn a_change_that_was_not_seen_is_told() {
    let (run, mut trials) = run(50 * MS);
    let detail = "none of 3000 connections ended as it should after the change".to_owned();
    for trial in trials.iter_mut().filter(|it| it.treatment == 1) {
        let gates = vec![GateFailure::NoChange {
            detail: detail.clone(),
        }];
        trial.status = TrialStatus::Invalid { gates };
    }
    let summary = Summary::new(&run, &trials);
    let page = html::render(&summary, &run, &trials);
    assert!(page.contains("change not seen: none of 3000"));
    let failures = &summary.account.failures;
    assert!(failures.iter().any(|it| it.reason == "change not seen"));
}
