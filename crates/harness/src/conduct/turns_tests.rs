//! Treatments that take turns, against a made-up place.

use plumbline_experiment::Plan;
use plumbline_record::{Common, GateFailure, Warning};

use std::time::Duration;

use super::tests::{Played, late, play, set_up};
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
fn turns_without_enforcement_are_not_taken_again() {
    let (plan, mut target) = in_turns(1, []);
    target.unenforced = Some((1, "a forbidden connection got through".to_owned()));
    let played = play(&plan, &[], &mut target, None);
    assert_eq!(played.trials.len(), 2, "{:?}", kept(&played));
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
fn the_machine_without_load_is_judged_before_the_turns() {
    // Both nodes are asked, three times at most.
    for (busy_samples, voided) in [(4, 0), (6, 2)] {
        let (plan, mut target) = in_turns(1, []);
        *target.busy_samples.get_mut() = busy_samples;
        let played = play(&plan, &[], &mut target, None);
        let is_idle_load = |it: &GateFailure| matches!(it, GateFailure::Disturbed { by, .. } if by == "load-while-idle");
        let of_idle = |it: &&Trial| match &it.status {
            TrialStatus::Invalid { gates } => gates.iter().all(is_idle_load),
            _ => false,
        };
        assert_eq!(played.trials.iter().filter(of_idle).count(), voided);
        assert_eq!(played.trials.len(), voided + 2);
    }
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
fn who_hears_of_the_start_too_late_is_told_earlier_and_has_lost_no_attempt() {
    let late = |times: usize| (0..times).map(|_| Act::Late);
    // Both are told with 60, 120, 240, 480 and at last 960 ms to go.
    let (plan, mut target) = in_turns(1, late(8));
    let played = play(&plan, &[], &mut target, None);
    assert_eq!(kept(&played), [(0, 0, 0, true), (0, 1, 0, true)]);
    let (plan, mut target) = in_turns(1, late(10));
    let played = play(&Plan { retries: 0, ..plan }, &[], &mut target, None);
    let told = |it: &Trial| match &it.status {
        TrialStatus::Failed { error } => error.contains("too late"),
        _ => false,
    };
    assert_eq!(played.trials.iter().filter(|it| told(it)).count(), 2);
}

#[test]
fn one_that_fails_does_not_hold_up_the_others() {
    let failed = || Act::Fail("no room");
    let (plan, mut target) = in_turns(1, [failed()]);
    let played = play(&Plan { retries: 0, ..plan }, &[], &mut target, None);
    assert_eq!(kept(&played).iter().filter(|it| it.3).count(), 1);
    assert_eq!(played.trials.len(), 2);
}

/// Seconds by which a clock that is no other one may differ from what is planted.
const NEAR_NS: u64 = 5_000 * MS;
const HOURS_NS: u64 = 36_000_000 * MS;

fn common(trial: &Trial) -> &Common {
    &trial.observation.as_ref().unwrap().common
}

fn warned(trial: &Trial) -> Option<&str> {
    let why = |it: &Warning| matches!(it, Warning::NoTurns { .. });
    match trial.warnings.iter().find(|it| why(it)) {
        Some(Warning::NoTurns { why }) => Some(why),
        _ => None,
    }
}

#[test]
fn slices_are_dates_of_the_clocks_of_the_machines_that_the_agents_are_on() {
    let (plan, mut target) = in_turns(1, []);
    target.two_machines = true;
    target.client.clock.ahead_ns = HOURS_NS;
    target.server.clock.ahead_ns = 3 * HOURS_NS;
    target.server.clock.boot = "another kernel";
    let before_ns = plumbline_sys::clock::now_ns();
    let played = play(&plan, &[], &mut target, None);
    assert!(kept(&played).iter().all(|it| it.3), "{:?}", kept(&played));
    for (clock, ahead_ns) in [
        (&target.client.clock, HOURS_NS),
        (&target.server.clock, 3 * HOURS_NS),
    ] {
        let starts = clock.starts.lock().unwrap();
        assert_eq!(starts.len(), 1);
        let ahead_of_then_ns = starts[0] - ahead_ns - before_ns;
        assert!(ahead_of_then_ns < NEAR_NS, "{ahead_of_then_ns}");
    }
    for trial in &played.trials {
        let common = common(trial);
        // The receiver's machine is that of the slices, not of the receiver's life.
        let [_, server] = &common.machines[..] else {
            panic!("{:?}", common.machines)
        };
        assert_eq!(server.busy_ns, 10 * MS * (u64::from(trial.position) + 1));
        assert_eq!(
            (common.idle.busy_ns, common.idle.capacity_ns),
            (100 * MS, 200 * MS)
        );
        assert_eq!(common.softnet.processed, 20_000 + 7);
        assert_eq!(common.ksoftirqd_ns, Some(MS));
        let error_ns = common.rotation.unwrap().receiver_error_ns.unwrap();
        assert!(error_ns < 2 * MS, "{error_ns}");
    }
}

#[test]
fn on_one_machine_nothing_is_added_to_the_senders() {
    let (plan, mut target) = in_turns(1, []);
    target.client.clock.ahead_ns = HOURS_NS;
    let played = play(&plan, &[], &mut target, None);
    for trial in &played.trials {
        let common = common(trial);
        assert_eq!(common.machines, healthy().common.machines);
        assert_eq!(
            (common.idle.busy_ns, common.idle.capacity_ns),
            (50 * MS, 100 * MS)
        );
        assert_eq!(common.rotation.unwrap().receiver_error_ns, None);
    }
}

/// Two blocks that were to be run in turns, and were in whole windows.
fn refused(target: &mut PlantedTarget, why: &str) {
    let (plan, _) = in_turns(2, []);
    let played = play(&plan, &[], target, None);
    let all = [
        (0, 0, 0, true),
        (0, 1, 0, true),
        (1, 0, 0, true),
        (1, 1, 0, true),
    ];
    assert_eq!(kept(&played), all);
    assert_eq!(played.ending.finished, 4);
    for trial in &played.trials {
        assert_eq!(common(trial).rotation, None);
        assert!(warned(trial).unwrap().contains(why), "{:?}", trial.warnings);
    }
    // Tried once and not in each block.
    assert_eq!(played.started.len(), 5);
}

#[test]
fn senders_of_two_kernels_take_no_turns() {
    let (_, mut target) = in_turns(1, []);
    let mut second = PlantedTarget::new([]);
    second.client.clock.boot = "another kernel";
    target.second = Some(Box::new(second));
    refused(&mut target, "share a kernel");
}

#[test]
fn senders_in_two_time_namespaces_take_no_turns() {
    let (_, mut target) = in_turns(1, []);
    let mut second = PlantedTarget::new([]);
    second.client.clock.ahead_ns = HOURS_NS;
    target.second = Some(Box::new(second));
    refused(&mut target, "time namespace");
}

#[test]
fn a_receiver_behind_a_long_round_trip_takes_no_turns() {
    let (_, mut target) = in_turns(1, []);
    target.two_machines = true;
    target.server.clock.boot = "another kernel";
    target.server.clock.delay = Duration::from_millis(20);
    refused(&mut target, "round trip is too long");
    // A sender's way may be long: all that share its clock are as far away.
    let (plan, mut target) = in_turns(1, []);
    target.client.clock.delay = Duration::from_millis(20);
    let played = play(&plan, &[], &mut target, None);
    assert!(played.trials.iter().all(|it| warned(it).is_none()));
}

#[test]
fn each_site_has_a_rotation_of_its_own() {
    let (mut plan, mut target) = in_turns(1, []);
    let mut more = plan.treatments.clone();
    for (id, treatment) in more.iter_mut().enumerate() {
        treatment.id = 2 + id;
        treatment.scene.path = "b".into();
    }
    plan.treatments.extend(more);
    plan.blocks = vec![vec![2, 0, 3, 1]];
    target.site_of = |treatment| treatment.scene.path.clone();
    target.set_ups = vec![set_up(true), set_up(true)];
    let played = play(&plan, &[], &mut target, None);
    let (set_ups, trials): (Vec<&Trial>, Vec<&Trial>) =
        played.trials.iter().partition(|it| it.set_up().is_some());
    let order: Vec<u32> = trials.iter().map(|it| it.position).collect();
    assert_eq!(order, [0, 2, 1, 3]);
    assert!(
        trials
            .iter()
            .all(|it| common(it).rotation.unwrap().treatments == 2)
    );
    assert_eq!(target.client.clock.starts.lock().unwrap().len(), 2);
    // What was brought up for them is in the record too.
    assert_eq!(set_ups.len(), 2);
}

#[test]
fn a_site_without_the_baseline_is_as_late_as_that_may_be() {
    let (mut plan, _) = in_turns(1, []);
    let mut more = plan.treatments.clone();
    for (id, treatment) in more.iter_mut().enumerate() {
        treatment.id = 2 + id;
        treatment.baseline = Some(0);
        treatment.scene.path = "b".into();
    }
    plan.treatments.extend(more);
    plan.blocks = vec![vec![0, 1, 2, 3], vec![2, 3, 0, 1]];
    // More than is always allowed, and little of what it takes.
    let mut slow = healthy();
    slow.load.load.latency = histogram([200_000; 5000]);
    slow.load.load.generator_lag = histogram([9_000; 5000]);
    let (_, mut target) = in_turns(1, (0..8).map(|_| Act::Measure(Box::new(slow.clone()))));
    target.site_of = |treatment| treatment.scene.path.clone();
    let played = play(&plan, &[], &mut target, None);
    assert_eq!(played.trials.len(), 8, "{:?}", kept(&played));
    assert!(kept(&played).iter().all(|it| it.3), "{:?}", kept(&played));
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

#[test]
fn what_slices_do_not_record_and_those_in_which_nobody_sends_take_time_too() {
    let (plan, _) = in_turns(1, []);
    let alone = Plan {
        rotate: false,
        ..plan.clone()
    };
    let per_trial = Duration::from_millis(1);
    assert_eq!(alone.duration_estimate(per_trial).as_millis(), 2 * 2 + 2);
    // A slice of warm-up and one of 1 ms, after the 3 that none records.
    let of_each = 2 * (3 + 1);
    assert_eq!(
        plan.duration_estimate(per_trial).as_millis(),
        3 * of_each + 2
    );
}
