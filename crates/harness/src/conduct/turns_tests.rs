//! Treatments that take turns, against a made-up place.

use plumbline_experiment::Plan;
use plumbline_record::GateFailure;

use super::tests::{Played, late, play};
use super::*;
use crate::planted::{Act, MS, PlantedTarget, healthy, histogram, plan};

/// A plan and a place in which treatments take turns.
fn in_turns(blocks: usize, acts: impl IntoIterator<Item = Act>) -> (Plan, PlantedTarget) {
    let mut target = PlantedTarget::new(acts);
    target.rotates = true;
    let plan = Plan {
        rotate: true,
        ..plan(blocks, 2)
    };
    (plan, target)
}

/// Block, position, attempt and whether it counts.
fn kept(played: &Played) -> Vec<(u32, u32, u32, bool)> {
    let line = |it: &Trial| {
        let is_valid = it.status == TrialStatus::Valid;
        (it.block, it.position, it.attempt, is_valid)
    };
    played.trials.iter().map(line).collect()
}

#[test]
fn a_set_runs_once_in_each_block_beside_no_load() {
    let (plan, mut target) = in_turns(2, []);
    let played = play(&plan, &[], &mut target, None);
    let all = [
        (0, 0, 0, true),
        (0, 1, 0, true),
        (1, 0, 0, true),
        (1, 1, 0, true),
    ];
    assert_eq!(kept(&played), all);
    assert_eq!(played.ending.finished, 4);
    for trial in &played.trials {
        let common = &trial.observation.as_ref().unwrap().common;
        let rotation = common.rotation.unwrap();
        assert_eq!((rotation.treatments, rotation.slices), (2, 1));
        assert_eq!(rotation.slice_ns - rotation.skipped_ns, MS);
        // Measured here and not by the target, which would have said otherwise.
        assert_ne!(common.idle, healthy().common.idle);
        assert!(common.idle.capacity_ns > 0);
    }
}

/// What a treatment showed, one line for each block.
fn shown(played: &Played, treatment: usize) -> Vec<(u64, u64, u64)> {
    let of_one = |it: &Trial| {
        let load = &it.observation.as_ref()?.load()?.load;
        Some((
            load.latency.value_at(0.5),
            load.cpu.system_ns,
            load.completed,
        ))
    };
    let kept = played.trials.iter().filter(|it| it.treatment == treatment);
    kept.map(|it| of_one(it).unwrap()).collect()
}

#[test]
fn a_planted_difference_is_the_same_in_turns_and_in_whole_windows() {
    let mut slower = healthy();
    slower.load.load.latency = histogram((0..5000).map(|i| 66_000 + i));
    slower.load.load.cpu.system_ns += slower.load.load.cpu.system_ns / 10;
    let both = [true, false].map(|rotate| {
        let (plan, mut target) = in_turns(3, []);
        let measured = (0..3).map(|_| Act::Measure(Box::new(slower.clone())));
        target.second = Some(Box::new(PlantedTarget::new(measured)));
        let played = play(&Plan { rotate, ..plan }, &[], &mut target, None);
        let in_slices = |it: &Trial| it.observation.as_ref().unwrap().common.rotation.is_some();
        assert!(played.trials.iter().all(|it| in_slices(it) == rotate));
        assert!(kept(&played).iter().all(|it| it.3), "{:?}", kept(&played));
        [shown(&played, 0), shown(&played, 1)]
    });
    assert_eq!(both[0], both[1]);
    let [host, vxlan] = &both[0];
    for (host, vxlan) in host.iter().zip(vxlan) {
        let longer = vxlan.0 as f64 / host.0 as f64 - 1.0;
        assert!((0.095..0.10).contains(&longer), "{longer}");
        assert_eq!(vxlan.1 * 10, host.1 * 11);
    }
}

#[test]
fn all_are_repeated_when_one_fails_a_gate() {
    let (plan, mut target) = in_turns(1, [late()]);
    let played = play(&plan, &[], &mut target, None);
    let attempts: Vec<(u32, u32)> = kept(&played).iter().map(|it| (it.1, it.2)).collect();
    assert_eq!(attempts, [(0, 0), (1, 0), (0, 1), (1, 1)]);
    assert_eq!(kept(&played).iter().filter(|it| it.3).count(), 3);
    assert_eq!(played.ending.finished, 2);
}

#[test]
fn what_disturbs_the_machine_voids_all_whichever_met_it() {
    let mut stolen = healthy();
    stolen.common.machines[0].steal_ns = 900 * MS;
    let (plan, mut target) = in_turns(1, [Act::Measure(Box::new(stolen))]);
    let played = play(&plan, &[], &mut target, None);
    assert_eq!(played.trials.len(), 4);
    for trial in &played.trials[..2] {
        let TrialStatus::Invalid { gates } = &trial.status else {
            panic!("{:?}", trial.status)
        };
        let is_steal =
            |it: &GateFailure| matches!(it, GateFailure::Disturbed { by, .. } if by == "steal");
        assert!(gates.iter().any(is_steal), "{gates:?}");
    }
    assert!(kept(&played)[2..].iter().all(|it| it.3));
}

#[test]
fn a_set_that_was_cut_off_is_run_again_as_a_whole() {
    let (plan, mut target) = in_turns(1, []);
    let whole = play(&plan, &[], &mut target, None);
    let resumed = play(&plan, &whole.trials[..1], &mut target, None);
    assert_eq!(kept(&resumed), [(0, 0, 1, true), (0, 1, 1, true)]);
    let nothing = play(&plan, &whole.trials, &mut target, None);
    assert_eq!((nothing.trials.len(), nothing.ending.finished), (0, 2));
}

#[test]
fn one_that_fails_does_not_hold_up_the_others() {
    let failed = || Act::Fail("no room");
    let (plan, mut target) = in_turns(1, [failed()]);
    let played = play(&Plan { retries: 0, ..plan }, &[], &mut target, None);
    assert_eq!(kept(&played).iter().filter(|it| it.3).count(), 1);
    assert_eq!(played.trials.len(), 2);
}

#[test]
fn other_loads_and_a_link_with_distance_take_no_turns() {
    let (mut plan, _) = in_turns(1, []);
    assert_eq!(plan.turns(0), [vec![0, 1]]);
    plan.link.delay_ns = 1;
    assert_eq!(plan.turns(0), [vec![0], vec![1]]);
    plan.link.delay_ns = 0;
    plan.treatments[1].task.load_mut().unwrap().request_size += 1;
    assert_eq!(plan.turns(0), [vec![0], vec![1]]);
    plan.treatments[1] = plan.treatments[0].clone();
    plan.rotate = false;
    assert_eq!(plan.turns(0), [vec![0], vec![1]]);
}
