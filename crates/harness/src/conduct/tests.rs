//! The loop against a made-up place: what is kept, repeated, resumed, stopped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumbline_experiment::Plan;
use plumbline_record::{GateFailure, SetUp};

use super::*;
use crate::planted::{Act, MS, PlantedTarget, healthy, histogram, plan};
use crate::target::Cpus;
use crate::thresholds::Thresholds;

pub(super) fn settings() -> Settings {
    Settings {
        cpus: Cpus::default(),
        thresholds: Thresholds::default(),
        idle: Duration::from_millis(1),
        slice_scale: 1,
        now: || "2026-01-01T00:00:00Z".into(),
    }
}

/// Counts what it hears; may interrupt after some trials.
#[derive(Default)]
struct Audience<'a> {
    started: Vec<(usize, usize, u32)>,
    stop_after: Option<(usize, &'a AtomicBool)>,
}

impl Progress for Audience<'_> {
    fn starts(&mut self, step: &Step<'_>) {
        self.started
            .push((step.block, step.treatment.id, step.attempt));
    }

    fn ended(&mut self, _: &Step<'_>, _: &Trial) {
        if let Some((trials, flag)) = self.stop_after
            && self.started.len() >= trials
        {
            flag.store(true, Ordering::SeqCst);
        }
    }
}

pub(super) struct Played {
    pub(super) trials: Vec<Trial>,
    pub(super) ending: Ending,
    pub(super) started: Vec<(usize, usize, u32)>,
}

pub(super) fn play(
    plan: &Plan,
    done: &[Trial],
    target: &mut PlantedTarget,
    stop_after: Option<usize>,
) -> Played {
    let flag = AtomicBool::new(false);
    let mut audience = Audience {
        stop_after: stop_after.map(|trials| (trials, &flag)),
        ..Audience::default()
    };
    let mut trials = Vec::new();
    let mut keep = |trial: &Trial| {
        trials.push(trial.clone());
        Ok(())
    };
    let ending = conduct(
        plan,
        done,
        target,
        &mut keep,
        &mut audience,
        &settings(),
        &flag,
    )
    .unwrap();
    Played {
        trials,
        ending,
        started: audience.started,
    }
}

/// A trial whose generator stalled.
pub(super) fn late() -> Act {
    let mut observation = healthy();
    observation.load.load.generator_lag = histogram([100 * MS; 5000]);
    Act::Measure(Box::new(observation))
}

#[test]
fn every_place_of_the_plan_is_run_once_in_its_order() {
    let plan = plan(3, 2);
    let played = play(&plan, &[], &mut PlantedTarget::new([]), None);
    assert_eq!(
        played.started,
        [
            (0, 0, 0),
            (0, 1, 0),
            (1, 1, 0),
            (1, 0, 0),
            (2, 0, 0),
            (2, 1, 0)
        ]
    );
    assert!(
        played
            .trials
            .iter()
            .all(|t| t.status == TrialStatus::Valid && t.observation.is_some())
    );
    assert_eq!(
        (played.ending.finished, played.ending.interrupted),
        (6, false)
    );
}

#[test]
fn a_trial_that_fails_a_gate_is_kept_and_repeated() {
    let played = play(&plan(1, 2), &[], &mut PlantedTarget::new([late()]), None);
    assert_eq!(played.started, [(0, 0, 0), (0, 0, 1), (0, 1, 0)]);
    let TrialStatus::Invalid { gates } = &played.trials[0].status else {
        panic!("{:?}", played.trials[0].status)
    };
    assert!(
        matches!(gates[..], [GateFailure::SendLag { .. }]),
        "{gates:?}"
    );
    assert!(
        played.trials[0].observation.is_some(),
        "what was seen is kept, marked"
    );
    assert_eq!(played.trials[1].status, TrialStatus::Valid);
}

#[test]
fn in_whole_windows_a_slow_network_may_be_no_later_than_its_baseline() {
    let mut slow = healthy();
    slow.load.load.latency = histogram([600_000; 5000]);
    slow.load.load.generator_lag = histogram([9_000; 5000]);
    let mut target = PlantedTarget::new([]);
    let measured = (0..2).map(|_| Act::Measure(Box::new(slow.clone())));
    target.second = Some(Box::new(PlantedTarget::new(measured)));
    let played = play(&plan(2, 0), &[], &mut target, None);
    let limits = played.trials.iter().map(|trial| match &trial.status {
        TrialStatus::Invalid { gates } => match gates[..] {
            [GateFailure::SendLag { limit_ns, .. }] => limit_ns,
            _ => panic!("{gates:?}"),
        },
        _ => 0,
    });
    let [0, first, second, 0] = limits.collect::<Vec<_>>()[..] else {
        panic!("{:?}", played.trials)
    };
    assert!((6_000..=6_500).contains(&first) && first == second);
}

#[test]
fn repetitions_are_bounded() {
    let mut target = PlantedTarget::new([late(), late(), late(), late()]);
    let played = play(&plan(1, 2), &[], &mut target, None);
    assert_eq!(
        played.started,
        [(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 0), (0, 1, 1)]
    );
    assert_eq!(target.left(), 0);
    assert_eq!(played.ending.finished, 2);
}

#[test]
fn an_agent_that_fails_or_ends_fails_its_trial_not_the_run() {
    let played = play(
        &plan(1, 2),
        &[],
        &mut PlantedTarget::new([Act::Fail("no buffer"), Act::Vanish]),
        None,
    );
    let error = |n: usize| match &played.trials[n].status {
        TrialStatus::Failed { error } => error.clone(),
        other => panic!("{other:?}"),
    };
    assert!(error(0).contains("no buffer"), "{}", error(0));
    assert!(
        error(1).contains("client") && error(1).contains("ended"),
        "{}",
        error(1)
    );
    assert_eq!(played.trials[2].status, TrialStatus::Valid);
}

#[test]
fn an_agent_of_another_version_is_refused() {
    let played = play(&plan(1, 0), &[], &mut PlantedTarget::new([Act::Skew]), None);
    let TrialStatus::Failed { error } = &played.trials[0].status else {
        panic!("{:?}", played.trials[0].status)
    };
    assert!(
        error.contains("9.9.9") && error.contains("same version"),
        "{error}"
    );
}

#[test]
fn an_agent_of_another_build_of_this_version_is_refused_with_a_remedy() {
    let mut target = PlantedTarget::new([Act::Rebuilt]);
    let played = play(&plan(1, 0), &[], &mut target, None);
    let TrialStatus::Failed { error } = &played.trials[0].status else {
        panic!("{:?}", played.trials[0].status)
    };
    assert!(
        error.contains("another build") && error.contains("plumbline image"),
        "{error}"
    );
}

#[test]
fn a_receiver_does_not_choose_where_the_sender_sends() {
    for elsewhere in [([8, 8, 8, 8], 4000), ([198, 18, 0, 1], 22)] {
        let mut target = PlantedTarget::new([]).listening_on(elsewhere);
        let played = play(&plan(1, 0), &[], &mut target, None);
        let TrialStatus::Failed { error } = &played.trials[0].status else {
            panic!("{:?}", played.trials[0].status)
        };
        assert!(error.contains("not told to"), "{error}");
    }
}

#[test]
fn a_path_that_was_not_taken_voids_the_trial() {
    let mut target = PlantedTarget::new([]);
    target.wrong_path = Some("the bridge saw no packet".into());
    let played = play(&plan(1, 0), &[], &mut target, None);
    let expected = GateFailure::WrongPath {
        detail: "the bridge saw no packet".into(),
    };
    assert_eq!(
        played.trials[0].status,
        TrialStatus::Invalid {
            gates: vec![expected]
        }
    );
}

/// A rule that is gone in the middle of a trial voids its block, which no repetition mends;
/// one that is gone before the next keeps that from starting.
#[test]
fn policies_that_do_not_act_leave_no_figure() {
    let mut target = PlantedTarget::new([]);
    let detail = "a forbidden connection got through".to_owned();
    target.unenforced = Some((1, detail.clone()));
    let played = play(&plan(1, 0), &[], &mut target, None);
    assert_eq!(played.started, [(0, 0, 0), (0, 1, 0)]);
    let gates = vec![GateFailure::NotEnforced { detail }];
    let status = TrialStatus::Invalid { gates };
    assert!(played.trials.iter().all(|it| it.status == status));
    let is_seen = |it: &Trial| it.observation.is_some();
    assert!(is_seen(&played.trials[0]) && !is_seen(&played.trials[1]));
}

#[test]
fn a_void_block_is_run_again_as_a_whole() {
    let plan = plan(2, 1);
    let mut target = PlantedTarget::new([]);
    // Asked twice by each trial.
    target.unenforced = Some((7, "a forbidden connection got through".to_owned()));
    let first = play(&plan, &[], &mut target, None);
    assert_eq!(first.started.len(), 4);
    let resumed = play(&plan, &first.trials, &mut PlantedTarget::new([]), None);
    assert_eq!(resumed.started, [(1, 1, 1), (1, 0, 1)]);
}

#[test]
fn policies_that_never_act_end_the_run() {
    let mut target = PlantedTarget::new([]);
    target.unenforced = Some((0, "a forbidden connection got through".to_owned()));
    let never = AtomicBool::new(false);
    let error = conduct(
        &plan(3, 1),
        &[],
        &mut target,
        &mut |_| Ok(()),
        &mut Audience::default(),
        &settings(),
        &never,
    );
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("2 blocks in a row") && error.ends_with("got through"),
        "{error}"
    );
}

#[test]
fn a_block_that_was_cut_off_is_run_again_as_a_whole() {
    let plan = plan(3, 1);
    let first = play(&plan, &[], &mut PlantedTarget::new([late()]), Some(4));
    assert!(first.ending.interrupted);
    assert_eq!(first.ending.finished, 3);
    let second = play(&plan, &first.trials, &mut PlantedTarget::new([]), None);
    let again = [(1, 1, 1), (1, 0, 1)];
    assert_eq!(
        second.started,
        [&again[..], &[(2, 0, 0), (2, 1, 0)]].concat()
    );
    let of_block: Vec<u32> = second.trials[..2].iter().map(|it| it.session).collect();
    assert_eq!(of_block, [1, 1]);
    assert_eq!(second.ending.finished, 6);
}

#[test]
fn a_machine_that_disturbs_everything_ends_the_repetitions_of_the_whole_run() {
    let plan = plan(8, 2);
    let played = play(&plan, &[], &mut PlantedTarget::new(vec![late(); 100]), None);
    // 16 trials, and a quarter of 16 to repeat.
    assert_eq!(played.trials.len(), 16 + 4);
    assert_eq!(played.ending.finished, 16);
    let resumed = play(
        &plan,
        &played.trials,
        &mut PlantedTarget::new(vec![late(); 100]),
        None,
    );
    assert_eq!(resumed.started, [], "nothing is left to spend");
}

#[test]
fn a_resumption_is_recorded_in_its_trials() {
    let plan = plan(2, 0);
    let first = play(&plan, &[], &mut PlantedTarget::new([]), Some(1));
    let second = play(&plan, &first.trials, &mut PlantedTarget::new([]), None);
    assert!(first.trials.iter().all(|t| t.session == 0));
    assert!(second.trials.iter().all(|t| t.session == 1));
}

#[test]
fn a_resumed_run_does_not_repeat_what_was_given_up() {
    let plan = plan(1, 0);
    let first = play(&plan, &[], &mut PlantedTarget::new([late()]), None);
    let second = play(&plan, &first.trials, &mut PlantedTarget::new([]), None);
    assert_eq!(second.started, []);
    assert_eq!(second.ending.finished, 2);
}

#[test]
fn interruption_reaches_a_trial_that_hangs() {
    let flag = AtomicBool::new(false);
    let plan = plan(1, 0);
    let clock = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            flag.store(true, Ordering::SeqCst);
        });
        let mut target = PlantedTarget::new([Act::Hang]);
        let mut audience = Audience::default();
        let ending = conduct(
            &plan,
            &[],
            &mut target,
            &mut |_| Ok(()),
            &mut audience,
            &settings(),
            &flag,
        )
        .unwrap();
        assert!(ending.interrupted);
    });
    assert!(
        clock.elapsed() < Duration::from_secs(20),
        "{:?}",
        clock.elapsed()
    );
}

#[test]
fn treatments_of_a_block_share_their_arrivals_and_blocks_do_not() {
    let (plan, never) = (plan(1, 0), AtomicBool::new(false));
    let settings = settings();
    let mut target = PlantedTarget::new([]);
    let group = Group::new(&plan, &[], &mut target, &settings, &never);
    let seed = |block, position, attempt| {
        let slot = TrialSlot {
            block,
            position,
            attempt,
        };
        group.seed_of(slot, FIRST_TWO)
    };
    assert_eq!(seed(0, 0, 0), seed(0, 5, 0));
    let different = [seed(0, 0, 0), seed(0, 0, 1), seed(1, 0, 0), seed(2, 0, 0)];
    let distinct: std::collections::BTreeSet<_> = different.iter().collect();
    assert_eq!(distinct.len(), different.len());
}

#[test]
fn a_trial_that_cannot_be_kept_ends_the_run() {
    let flag = AtomicBool::new(false);
    let mut audience = Audience::default();
    let mut keep = |_: &Trial| Err("disk full".into());
    let error = conduct(
        &plan(1, 0),
        &[],
        &mut PlantedTarget::new([]),
        &mut keep,
        &mut audience,
        &settings(),
        &flag,
    )
    .unwrap_err();
    assert!(matches!(error, HarnessError::Keep(_)), "{error}");
}

#[test]
fn two_machines_are_both_in_the_record() {
    let mut target = PlantedTarget::new([]);
    target.two_machines = true;
    let played = play(&plan(1, 0), &[], &mut target, None);
    for trial in &played.trials {
        assert_eq!(trial.status, TrialStatus::Valid);
        let seen = trial.observation.as_ref().expect("it was valid");
        assert_eq!(seen.common.machines.len(), 2);
        // All requests that the receiver saw were those of the window.
        assert_eq!(seen.load().unwrap().window_share(), Some(1.0));
        assert_eq!(seen.common.machines[1], healthy().common.machines[0]);
    }
}

#[test]
fn an_outage_at_the_head_of_a_block_costs_the_block_and_not_the_run() {
    let mut target = PlantedTarget::new([]);
    target.outage = vec![1];
    let played = play(&plan(3, 1), &[], &mut target, None);
    assert_eq!(
        (played.ending.finished, played.ending.interrupted),
        (6, false)
    );
    let mut lost = 0;
    for trial in &played.trials {
        match (&trial.status, trial.block) {
            (TrialStatus::Failed { error }, 1) => {
                assert!(error.contains("the line is dead"), "{error}");
                lost += 1;
            }
            (status, block) => assert_eq!((status, block == 1), (&TrialStatus::Valid, false)),
        }
    }
    // Two treatments, each with a repetition.
    assert_eq!(lost, 4);
}

#[test]
fn an_outage_that_lasts_ends_the_run_which_tries_again_when_resumed() {
    let plan = plan(4, 1);
    let mut target = PlantedTarget::new([]);
    target.outage = vec![1, 2, 3];
    let (mut kept, never) = (Vec::new(), AtomicBool::new(false));
    let mut keep = |trial: &Trial| {
        kept.push(trial.clone());
        Ok(())
    };
    let mut audience = Audience::default();
    let error = conduct(
        &plan,
        &[],
        &mut target,
        &mut keep,
        &mut audience,
        &settings(),
        &never,
    );
    let error = error.unwrap_err().to_string();
    assert!(error.contains("2 blocks in a row"), "{error}");
    assert!(error.contains("the line is dead"), "{error}");
    let last = kept.last().unwrap();
    assert_eq!(last.block, 2, "the third silent block is not begun");

    let resumed = play(&plan, &kept, &mut PlantedTarget::new([]), None);
    let blocks: Vec<u32> = resumed.trials.iter().map(|it| it.block).collect();
    assert_eq!(blocks, [1, 1, 2, 2, 3, 3]);
    let tries: Vec<u32> = resumed.trials.iter().map(|it| it.attempt).collect();
    assert_eq!(tries, [2, 2, 2, 2, 0, 0], "one more than was tried");
    assert_eq!(resumed.ending.finished, 8);
}

pub(super) fn set_up(came_up: bool) -> SetUp {
    SetUp {
        network: "calico".into(),
        took_ns: 5 * MS,
        paths_ns: came_up.then_some(2 * MS),
        came_up,
        log: "up.log".into(),
        fingerprint: None,
    }
}

#[test]
fn what_was_set_up_has_a_line_before_its_trial_and_is_no_trial() {
    let plan = plan(1, 1);
    let mut target = PlantedTarget::new([late()]);
    target.set_ups = vec![set_up(true)];
    let played = play(&plan, &[], &mut target, None);
    let (line, trials) = played.trials.split_first().unwrap();
    assert_eq!(line.set_up(), Some(&set_up(true)));
    assert_eq!((&line.status, line.took_ns), (&TrialStatus::Valid, 7 * MS));
    // The first trial was repeated, what was set up for it was not.
    assert!(trials.iter().all(|trial| trial.set_up().is_none()));
    assert_eq!((trials.len(), played.ending.finished), (3, 2));
    let cell = |trial: &Trial| (trial.block, trial.position, trial.treatment);
    assert_eq!(cell(line), cell(&trials[0]));

    let resumed = play(
        &plan,
        &played.trials[..1],
        &mut PlantedTarget::new([]),
        None,
    );
    assert_eq!(resumed.trials.len(), 2, "nothing of the plan had been run");
}

#[test]
fn what_did_not_come_up_says_why() {
    let faults = [
        (Some("no room on the machine"), "no room on the machine"),
        (None, "the network calico did not come up"),
    ];
    for (fault, said) in faults {
        let mut target = PlantedTarget::new([]);
        target.set_ups = vec![set_up(false)];
        target.fault = fault;
        let played = play(&plan(1, 0), &[], &mut target, None);
        let TrialStatus::Failed { error } = &played.trials[0].status else {
            panic!("it came up");
        };
        assert!(error.contains(said), "{error}");
        assert_eq!(played.trials[0].took_ns, 5 * MS, "no path was waited for");
        assert_eq!(played.trials.len(), 3);
    }
}
