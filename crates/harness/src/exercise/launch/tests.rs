//! Launches of made-up pods.

use std::sync::atomic::AtomicBool;

use plumbline_record::LaunchObservation;

use super::*;
use crate::planted::{MS, PlantedTarget};
use crate::trial;

static NEVER: AtomicBool = AtomicBool::new(false);
static STOP: AtomicBool = AtomicBool::new(true);

fn exercise() -> LaunchExercise {
    LaunchExercise {
        task: Launch::default(),
    }
}

fn run(
    target: &PlantedTarget,
    interrupted: &AtomicBool,
    settings: &Settings,
) -> Result<trial::CheckedObservation, TrialError> {
    let order = TrialOrder::alone(1, settings, interrupted);
    trial::run(target, &exercise(), order)
}

/// A target of which the first pods of 100 have no network.
fn target(without: usize, error: Option<&str>) -> PlantedTarget {
    let pod = |at: usize| PodLaunch {
        node: "n0".to_owned(),
        probed_ns: Some(MS),
        first_out_ns: Some(2 * MS),
        first_in_ns: (at >= without).then_some(3 * MS),
        error: error.filter(|_| at < without).map(str::to_owned),
        ..PodLaunch::default()
    };
    let mut target = PlantedTarget::new([]);
    target.launched = LaunchObservation {
        limit_ns: 1_000 * MS,
        pods: (0..100).map(pod).collect(),
        ..LaunchObservation::default()
    };
    target
}

fn gates(target: &PlantedTarget) -> Vec<GateFailure> {
    let settings = Settings::anywhere();
    let (seen, of_path) = run(target, &NEVER, &settings).unwrap();
    assert!(of_path.is_empty(), "{of_path:?}");
    exercise().judge(&seen, &settings)
}

#[test]
fn one_of_a_hundred_pods_may_lack_its_network() {
    assert!(gates(&target(0, None)).is_empty());
    assert!(gates(&target(1, None)).is_empty());
    let detail = "no packet reached it".to_owned();
    let expected = GateFailure::NoNetwork {
        pods: 2,
        launched: 100,
        detail,
    };
    assert_eq!(gates(&target(2, None)), [expected]);
}

#[test]
fn why_the_first_one_lacks_it_is_said() {
    let gates = gates(&target(3, Some("no address")));
    let [GateFailure::NoNetwork { detail, .. }] = &gates[..] else {
        panic!("{gates:?}");
    };
    assert_eq!(detail, "no address");
}

#[test]
fn a_launch_of_nothing_is_void() {
    let mut nothing = target(0, None);
    nothing.launched.pods.clear();
    assert_eq!(gates(&nothing).len(), 1);
}

#[test]
fn a_launch_can_be_stopped() {
    let stopped = run(&target(0, None), &STOP, &Settings::anywhere());
    assert!(matches!(stopped, Err(TrialError::Interrupted)));
}
