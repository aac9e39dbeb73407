//! Changes of a made-up thing.

use std::sync::atomic::AtomicBool;

use plumbline_experiment::ProgrammedObject;
use plumbline_record::Histogram;

use super::*;
use crate::planted::{MS, PlantedTarget};
use crate::trial;

static NEVER: AtomicBool = AtomicBool::new(false);

/// How late the thing acts.
const DELAY: Duration = Duration::from_millis(60);

fn exercise(change: ObjectChange) -> ProgrammingExercise {
    ProgrammingExercise {
        task: Programming {
            name: "change".into(),
            object: ProgrammedObject::Service,
            change,
            rate: 1_000.0,
        },
        timing: Timing {
            warm_up_ns: 30 * MS,
            measure_ns: 200 * MS,
            drain_ns: 0,
        },
    }
}

fn target() -> PlantedTarget {
    let mut target = PlantedTarget::new([]);
    target.client.object.delay = DELAY;
    target
}

fn run(exercise: &ProgrammingExercise, target: &PlantedTarget) -> Observation {
    let settings = Settings::anywhere();
    let order = TrialOrder::alone(1, &settings, &NEVER);
    let (seen, gates) = trial::run(target, exercise, order).unwrap();
    assert!(gates.is_empty(), "{gates:?}");
    seen
}

fn judged(exercise: &ProgrammingExercise, seen: &Observation) -> Vec<GateFailure> {
    exercise.judge(seen, &Settings::anywhere())
}

#[test]
fn a_change_is_dated_from_its_answer() {
    for change in [ObjectChange::Add, ObjectChange::Remove] {
        let exercise = exercise(change);
        let seen = run(&exercise, &target());
        let gates = judged(&exercise, &seen);
        assert!(gates.is_empty(), "{change:?}: {gates:?}");
        let seen = seen.programming().unwrap();
        assert_eq!(seen.opens, change == ObjectChange::Add);
        let first = seen.first_right_ns().unwrap();
        let last = seen.last_wrong_ns().unwrap();
        assert_eq!(first - last, MS as i64);
        // The thread that took the time may have had to wait for a CPU, which makes it
        // shorter.
        let latest = (DELAY.as_nanos() as u64 + seen.resolution_ns()) as i64;
        let earliest = latest / 2;
        assert!((earliest..=latest).contains(&first), "{first}");
    }
}

#[test]
fn the_clock_of_the_sender_may_be_another_one() {
    let mut target = target();
    target.client.clock.ahead_ns = 7_200_000 * MS;
    target.client.clock.delay = Duration::from_millis(2);
    let exercise = exercise(ObjectChange::Add);
    let seen = run(&exercise, &target);
    let gates = judged(&exercise, &seen);
    assert!(gates.is_empty(), "{gates:?}");
    let seen = seen.programming().unwrap();
    assert!(seen.clock_error_ns >= MS, "{}", seen.clock_error_ns);
    assert!(seen.asked_ns <= seen.answered_ns);
    let latest = (DELAY.as_nanos() as u64 + seen.resolution_ns()) as i64;
    let first = seen.first_right_ns().unwrap();
    assert!((latest / 2..=latest).contains(&first), "{first}");
}

#[test]
fn a_change_that_never_acts_voids_its_trial() {
    for change in [ObjectChange::Add, ObjectChange::Remove] {
        let exercise = exercise(change);
        let mut target = target();
        // That which brings about what is there before.
        target.client.object.acts = 1;
        let seen = run(&exercise, &target);
        let gates = judged(&exercise, &seen);
        let [GateFailure::NoChange { detail }] = &gates[..] else {
            panic!("{gates:?}");
        };
        assert!(detail.starts_with("none of "), "{detail}");
    }
}

#[test]
fn what_changes_before_it_was_asked_for_is_another_change() {
    let exercise = exercise(ObjectChange::Add);
    let seen = run(&exercise, &target());
    let mut early = seen.programming().unwrap().clone();
    early.asked_ns += 150 * MS;
    early.answered_ns += 150 * MS;
    let what = What::Programming(Box::new(early));
    let gates = judged(&exercise, &Observation { what, ..seen });
    let [GateFailure::NoChange { detail }] = &gates[..] else {
        panic!("{gates:?}");
    };
    assert!(detail.contains("nobody had asked"), "{detail}");
}

#[test]
fn a_probe_that_is_late_voids_its_trial() {
    let exercise = exercise(ObjectChange::Add);
    let seen = run(&exercise, &target());
    let mut late = seen.programming().unwrap().clone();
    late.probe.lag = Histogram::new();
    late.probe.lag.record_n(11 * MS, 200);
    let what = What::Programming(Box::new(late));
    let gates = judged(&exercise, &Observation { what, ..seen });
    let [GateFailure::SendLag { limit_ns, .. }] = &gates[..] else {
        panic!("{gates:?}");
    };
    assert_eq!(*limit_ns, 10 * MS);
}

#[test]
fn whoever_waits_for_a_change_can_be_stopped() {
    static STOP: AtomicBool = AtomicBool::new(true);
    let settings = Settings::anywhere();
    let order = TrialOrder::alone(1, &settings, &STOP);
    let stopped = trial::run(&target(), &exercise(ObjectChange::Add), order);
    assert!(matches!(stopped, Err(TrialError::Interrupted)));
}
