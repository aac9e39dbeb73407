//! Commands beside made-up traffic.

use std::sync::atomic::AtomicBool;

use plumbline_record::{
    Common, Histogram, PodLaunch, ProbeOutcome, ProbeSeries, ProbeSpell, RequestOutcome,
};

use super::*;
use crate::planted::{Act, MS, PlantedTarget};
use crate::trial;

static NEVER: AtomicBool = AtomicBool::new(false);
static STOP: AtomicBool = AtomicBool::new(true);

fn exercise(during: &str) -> SurviveExercise {
    SurviveExercise {
        task: Survive {
            during: during.to_owned(),
            limit_ns: 1_000 * MS,
            ..Survive::default()
        },
        timing: Timing {
            warm_up_ns: 50 * MS,
            measure_ns: 50 * MS,
            drain_ns: 0,
        },
    }
}

fn run(during: &str, interrupted: &AtomicBool) -> Result<trial::CheckedObservation, TrialError> {
    let settings = Settings::anywhere();
    let order = TrialOrder::alone(1, &settings, interrupted);
    trial::run(&PlantedTarget::new([]), &exercise(during), order)
}

/// A command of 300 ms under a policy, which lets through what it forbids for so long.
fn run_under_policy(opens: Option<Duration>) -> (SurviveObservation, Vec<GateFailure>) {
    let mut target = PlantedTarget::new([]);
    target.opens = opens;
    // The senders' clock may be another one.
    target.client.clock.ahead_ns = 7_200_000 * MS;
    let mut exercise = exercise("sleep 0.3");
    exercise.task.policy = true;
    exercise.timing.warm_up_ns = 300 * MS;
    let settings = Settings::anywhere();
    let order = TrialOrder::alone(1, &settings, &NEVER);
    let (seen, gates) = trial::run(&target, &exercise, order).unwrap();
    assert!(gates.is_empty(), "{gates:?}");
    let gates = exercise.judge(&seen, &settings);
    (seen.survive().unwrap().clone(), gates)
}

#[test]
fn a_policy_that_opens_is_seen_for_as_long_as_it_does() {
    let attempt = || {
        let (seen, gates) = run_under_policy(Some(Duration::from_millis(100)));
        assert!(gates.is_empty(), "{gates:?}");
        let open_ns = seen.open_ns().unwrap();
        let series = seen.forbidden.as_ref().unwrap();
        // As long as those took that got through, one after the other.
        let gap_ns = series.widest_gap_ns;
        let counted_ns = series.opened() * gap_ns;
        assert!(open_ns.abs_diff(counted_ns) <= gap_ns, "{series:?}");
        assert!(open_ns >= 99 * MS, "{open_ns}");
        // It is tried before, while and after the command runs.
        let last_ns = series.spells.last().unwrap().last_ns;
        assert!(series.spells[0].first_ns < seen.begun_ns);
        assert!(last_ns > seen.ended_ns + 40 * MS, "{series:?}");
        (open_ns, series.ends_open())
    };
    // The machine may date the second of two planted changes late, but not ten times.
    let mut tries = Vec::new();
    while tries.len() < 10 {
        tries.push(attempt());
        if matches!(tries.last(), Some((open_ns, false)) if *open_ns < 130 * MS) {
            return;
        }
    }
    panic!("open for so many ns, or to the end: {tries:?}");
}

#[test]
fn a_policy_that_stays_closed_lets_nothing_through() {
    let (seen, gates) = run_under_policy(None);
    assert!(gates.is_empty(), "{gates:?}");
    assert_eq!(seen.open_ns(), Some(0));
    assert!(seen.forbidden.unwrap().sent > 300);
}

#[test]
fn a_policy_that_did_not_act_before_the_command_voids_the_trial() {
    let of = |first_ns: u64, outcome| ProbeSeries {
        spells: vec![ProbeSpell {
            outcome,
            probes: 7,
            first_ns,
            last_ns: first_ns + 6 * MS,
        }],
        ..ProbeSeries::default()
    };
    for (series, says) in [
        (of(400 * MS, ProbeOutcome::Opened), Some("7 connections")),
        (of(400 * MS, ProbeOutcome::Refused), None),
        (of(500 * MS, ProbeOutcome::Opened), None),
    ] {
        let mut seen = seen(1_000, &[]);
        if let What::Survive(seen) = &mut seen.what {
            seen.forbidden = Some(series);
        }
        match (&gates(&seen)[..], says) {
            ([GateFailure::NotEnforced { detail }], Some(part)) => {
                assert!(detail.starts_with(part), "{detail}");
            }
            ([], None) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn traffic_goes_on_before_while_and_after_a_command_runs() {
    let (seen, gates) = run("sleep 0.1", &NEVER).unwrap();
    assert!(gates.is_empty(), "{gates:?}");
    let seen = seen.survive().unwrap();
    let took_ns = seen.ended_ns - seen.begun_ns;
    assert!((100 * MS..900 * MS).contains(&took_ns), "{took_ns}");
    assert!(seen.begun_ns >= 50 * MS, "{seen:?}");
    assert!(seen.last_ns() >= seen.ended_ns + 45 * MS, "{seen:?}");
    let kinds: Vec<FlowKind> = seen.flows.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, FlowKind::ALL);
    assert_eq!(seen.flows[0].connections, 100);
}

#[test]
fn a_command_that_fails_or_never_ends_is_said_and_ends_the_trial() {
    for (during, said) in [
        ("echo no such thing >&2; exit 7", "no such thing"),
        ("exit 7", "exit status: 7"),
        ("sleep 60", "had not ended after 1.0 s"),
    ] {
        let since = Instant::now();
        let error = run(during, &NEVER).unwrap_err().to_string();
        assert!(error.contains(said) && error.contains(during), "{error}");
        assert!(since.elapsed() < Duration::from_secs(20));
    }
    let stopped = run("sleep 60", &STOP);
    assert!(
        matches!(stopped, Err(TrialError::Interrupted)),
        "{stopped:?}"
    );
}

/// Such as a reboot: a machine that is off half-way would stay so.
#[test]
fn a_command_that_takes_an_end_away_is_not_cut_off() {
    let done = tempfile::NamedTempFile::new().unwrap();
    let during = format!("sleep 1.5; echo done >{}", done.path().display());
    let mut exercise = exercise(&during);
    exercise.task.limit_ns = 20_000 * MS;
    let settings = Settings::anywhere();
    let order = TrialOrder::alone(1, &settings, &NEVER);
    let lost = trial::run(&PlantedTarget::new([Act::Vanish]), &exercise, order);
    let lost = lost.unwrap_err().to_string();
    assert!(lost.contains("client"), "{lost}");
    let done = std::fs::read_to_string(done.path()).unwrap();
    assert_eq!(done, "done\n", "{lost}");
}

/// Also those without a network are what was seen, and void nothing.
#[test]
fn pods_begin_with_the_command() {
    let pods = [Some(3 * MS), None].map(|first_in_ns| PodLaunch {
        first_out_ns: Some(2 * MS),
        first_in_ns,
        ..PodLaunch::default()
    });
    let mut target = PlantedTarget::new([]);
    target.launched.pods = pods.into();
    let settings = Settings::anywhere();
    let order = || TrialOrder::alone(1, &settings, &NEVER);
    let mut exercise = exercise("sleep 0.1");
    let (alone, _) = trial::run(&target, &exercise, order()).unwrap();
    assert_eq!(alone.pods(), None);
    exercise.task.pods = Some(2);
    let (seen, gates) = trial::run(&target, &exercise, order()).unwrap();
    assert!(gates.is_empty(), "{gates:?}");
    assert!(exercise.judge(&seen, &settings).is_empty());
    assert_eq!(seen.pods(), Some(&target.launched));
}

/// Of each kind 1,000 requests at 1 ms, those from `late` on not answered; a command at
/// 500 ms. Their senders were late themselves with some.
fn seen(late: u64, sent_late: &[LateSpell]) -> Observation {
    let spell = |outcome, from: u64, to: u64| RequestSpell {
        outcome,
        requests: to - from,
        first_ns: from * MS,
        last_ns: (to - 1) * MS,
    };
    let flow = |kind| FlowSeries {
        kind,
        gap_ns: MS,
        connections: 0,
        broken: 0,
        lag: Histogram::new(),
        sent_late: sent_late.to_vec(),
        latency: Histogram::new(),
        spells: vec![
            spell(RequestOutcome::InTime, 0, late),
            spell(RequestOutcome::Unanswered, late, 1_000),
        ],
    };
    let seen = SurviveObservation {
        begun_ns: 500 * MS,
        ended_ns: 600 * MS,
        clock_error_ns: 0,
        flows: FlowKind::ALL.map(flow).into(),
        ..SurviveObservation::default()
    };
    Observation {
        common: Common::default(),
        what: What::Survive(Box::new(seen)),
    }
}

fn gates(seen: &Observation) -> Vec<GateFailure> {
    let mut exercise = exercise("true");
    exercise.timing.warm_up_ns = 500 * MS;
    exercise.judge(seen, &Settings::anywhere())
}

/// A sender that stands still for 60 ms, during which requests are intended.
fn standing_still(from: u64) -> LateSpell {
    LateSpell {
        requests: 50,
        first_ns: from * MS,
        last_ns: (from + 49) * MS,
        longest_ns: 60 * MS,
    }
}

/// Nor does a command that takes all CPU, so that senders stand still too: else the worst
/// repetitions would be left out.
#[test]
fn what_happens_after_the_command_voids_nothing() {
    let late: [&[LateSpell]; 3] = [&[], &[standing_still(500)], &[standing_still(495)]];
    for late in late {
        let gates = gates(&seen(501, late));
        assert!(gates.is_empty(), "{late:?}: {gates:?}");
    }
}

#[test]
fn what_was_not_well_before_it_does() {
    let gates = gates(&seen(200, &[]));
    let [GateFailure::Unwell { detail }] = &gates[..] else {
        panic!("{gates:?}");
    };
    assert!(detail.contains("200 of about 500"), "{detail}");
}

#[test]
fn so_does_a_sender_that_is_late_itself() {
    // Four of 490 are no more than one of a hundred.
    for (from, is_void) in [(100, true), (400, true), (485, true), (486, false)] {
        let late = [standing_still(from)];
        let of_flows = gates(&seen(501, &late));
        let mut forbidden = seen(501, &[]);
        if let What::Survive(seen) = &mut forbidden.what {
            seen.forbidden = Some(ProbeSeries {
                sent_late: late.to_vec(),
                ..ProbeSeries::default()
            });
        }
        for gates in [of_flows, gates(&forbidden)] {
            let lag_ns = match gates[..] {
                [] => None,
                [GateFailure::SendLag { lag_ns, .. }] => Some(lag_ns),
                _ => panic!("{gates:?}"),
            };
            assert_eq!(lag_ns, is_void.then_some(60 * MS), "{from}");
        }
    }
}
