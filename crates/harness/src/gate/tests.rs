//! Each gate's violation, planted (L-9).

use plumbline_experiment::{Arrival, Workload, WorkloadKind};
use plumbline_record::{GateFailure, NeighbourRecord, ProcessCpu, Warning};

use super::*;
use crate::planted::{MS, Planted, healthy, plan, seen, workload};

/// The gates that fail after `plant` has changed a healthy observation.
fn failures(plant: impl FnOnce(&mut Planted)) -> Vec<GateFailure> {
    let mut observation = healthy();
    plant(&mut observation);
    judge(
        &workload(),
        &observation.common,
        &observation.load,
        &Thresholds::default(),
    )
}

fn disturbances(plant: impl FnOnce(&mut Planted)) -> Vec<String> {
    failures(plant)
        .into_iter()
        .map(|gate| match gate {
            GateFailure::Disturbed { by, .. } => by,
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn a_healthy_trial_passes() {
    assert_eq!(failures(|_| {}), []);
}

#[test]
fn a_load_that_falls_short_fails_d3() {
    let found = failures(|o| o.load.load.sent = 4900);
    assert_eq!(
        found,
        [GateFailure::AchievedRate {
            planned: 5000,
            achieved: 4900
        }]
    );
    assert_eq!(failures(|o| o.load.load.sent = 4960), []);
}

#[test]
fn unanswered_requests_fail_l3() {
    let found = failures(|o| o.load.load.censored = 6);
    assert_eq!(
        found,
        [GateFailure::Errors {
            failed: 6,
            planned: 5000
        }]
    );
    assert_eq!(failures(|o| o.load.load.errors.closed = 5), []);
}

#[test]
fn a_trial_without_any_answer_fails() {
    let found = failures(|o| o.load.load.completed = 0);
    assert!(matches!(found[0], GateFailure::Errors { .. }), "{found:?}");
}

#[test]
fn a_stream_passes_by_what_was_acknowledged_and_not_by_what_was_written() {
    let stream = Workload {
        kind: WorkloadKind::Stream,
        arrival: Arrival::Closed,
        ..workload()
    };
    let mut observation = healthy();
    let load = &mut observation.load.load;
    (load.planned, load.sent, load.completed) = (0, 0, 0);
    for (acknowledged, expected) in [(1_000_000, 0), (0, 1)] {
        observation.load.load.bytes_sent = acknowledged;
        let limits = Thresholds::default();
        let found = judge(&stream, &observation.common, &observation.load, &limits);
        assert_eq!(found.len(), expected, "{found:?}");
    }
}

#[test]
fn one_wrong_answer_is_a_wrong_path() {
    for plant in [
        |o: &mut Planted| o.load.load.errors.corrupt = 1,
        |o: &mut Planted| o.load.serve.corrupt = 1,
    ] {
        let found = failures(plant);
        assert!(
            matches!(found[..], [GateFailure::WrongPath { .. }]),
            "{found:?}"
        );
    }
}

#[test]
fn checksum_errors_and_fragments_are_faults_of_the_path() {
    let found = failures(|o| o.common.protocols[0].checksum_errors = 1);
    assert!(
        matches!(found[..], [GateFailure::PathFault { .. }]),
        "{found:?}"
    );
    let found = failures(|o| o.common.protocols[0].ip_fragments = 1);
    assert!(
        matches!(found[..], [GateFailure::PathFault { .. }]),
        "{found:?}"
    );
}

#[test]
fn a_node_that_tracks_as_many_connections_as_it_may_voids_the_trial() {
    let tracked = |connections, connections_dropped| NodeRules {
        namespace: "node2".to_owned(),
        connections,
        connections_max: 1000,
        connections_dropped,
        ..NodeRules::default()
    };
    assert_eq!(failures(|o| o.common.rules = vec![tracked(999, 0)]), []);
    for full in [tracked(1000, 0), tracked(10, 1)] {
        let found = failures(|o| o.common.rules = vec![tracked(5, 0), full]);
        assert!(
            matches!(found[..], [GateFailure::ConntrackFull { max: 1000, .. }]),
            "{found:?}"
        );
    }
}

#[test]
fn steal_disturbs() {
    assert_eq!(
        disturbances(|o| o.common.machines[0].steal_ns = 30 * MS),
        ["steal"]
    );
    assert!(
        disturbances(|o| o.common.machines[0].steal_ns = 10 * MS).is_empty(),
        "one tick is no evidence"
    );
}

#[test]
fn the_load_of_others_disturbs() {
    let busy = |o: &mut Planted| o.common.machines[0].user_ns = 300 * MS;
    assert_eq!(disturbances(busy), ["other-load"]);
    assert_eq!(
        disturbances(|o| o.common.idle.busy_ns = 120 * MS),
        ["load-while-idle"]
    );
}

#[test]
fn a_neighbour_has_to_work_and_is_no_other_program() {
    let idle = failures(|o| o.common.neighbour = Some(NeighbourRecord::default()));
    assert_eq!(idle, [GateFailure::IdleNeighbour]);
    let works = failures(|o| {
        o.common.machines[0].user_ns += 600 * MS;
        o.common.neighbour = Some(NeighbourRecord {
            window_ns: 1000 * MS,
            done: 1,
            cpu: ProcessCpu {
                user_ns: 600 * MS,
                system_ns: 0,
            },
        });
    });
    assert_eq!(works, []);
}

#[test]
fn each_of_two_machines_is_judged_by_its_own_end() {
    let second = |o: &mut Planted, user_ns| {
        let machine = CpuTime {
            user_ns,
            ..o.common.machines[0]
        };
        o.common.machines.push(machine);
    };
    let server_ns = healthy().load.server_cpu.user_ns;
    assert_eq!(disturbances(|o| second(o, server_ns)), Vec::<String>::new());
    // What the sender used elsewhere is no excuse for this machine.
    let sender_ns = healthy().load.load.cpu.user_ns;
    let limit_ns = 150 * MS;
    assert_eq!(
        disturbances(|o| second(o, server_ns + limit_ns + sender_ns / 2)),
        ["other-load"]
    );
}

#[test]
fn where_it_cannot_be_seen_what_carries_the_network_others_are_judged_without_load() {
    let working = |o: &mut Planted| o.common.machines[0].user_ns += 600 * MS;
    assert_eq!(disturbances(working), ["other-load"]);
    let unseen = |plant: fn(&mut Planted)| {
        disturbances(|o| {
            o.common.forwarders_cpu = None;
            working(o);
            plant(o);
        })
    };
    assert!(unseen(|_| {}).is_empty());
    assert_eq!(
        unseen(|o| o.common.machines[0].steal_ns = 30 * MS),
        ["steal"]
    );
    let at_rest = unseen(|o| o.common.idle.busy_ns = 120 * MS);
    assert_eq!(at_rest, ["load-while-idle"]);
}

#[test]
fn in_turns_too() {
    let plan = plan(1, 0);
    let host = &plan.treatments[0];
    let together = |forwarders, steal_ns| {
        let mut planted = healthy();
        planted.common.forwarders_cpu = forwarders;
        planted.common.machines[0].user_ns += 600 * MS;
        planted.common.machines[0].steal_ns = steal_ns;
        let seen = seen(planted);
        let (of_all, _) = judge_together(
            &[(host, Some(&seen))],
            &mut Lateness::default(),
            &Thresholds::default(),
        );
        let by = of_all.into_iter().map(|gate| match gate {
            GateFailure::Disturbed { by, .. } => by,
            other => panic!("{other:?}"),
        });
        by.collect::<Vec<_>>()
    };
    assert_eq!(together(Some(Default::default()), 0), ["other-load"]);
    assert!(together(None, 0).is_empty());
    // All of them meet it, so more of it is borne than of one alone.
    assert!(together(None, 30 * MS).is_empty());
    assert_eq!(together(None, 120 * MS), ["steal"]);
}

#[test]
fn what_counts_in_turns_was_not_disturbed() {
    let is_disturbed = |rotation| {
        let mut planted = healthy();
        planted.common.machines[0].steal_ns = 30 * MS;
        planted.common.rotation = rotation;
        !disturbed(&planted.common, &planted.load, &Thresholds::default()).is_empty()
    };
    assert!(is_disturbed(None));
    assert!(!is_disturbed(Some(Default::default())));
}

#[test]
fn a_little_load_of_others_is_marked_and_does_not_disturb() {
    let limits = Thresholds::default();
    assert_eq!(
        other_load(&healthy().common, &healthy().load, &limits),
        None
    );
    for plant in [
        |o: &mut Planted| o.common.machines[0].user_ns = 180 * MS,
        |o: &mut Planted| {
            o.common.idle.busy_ns = 60 * MS;
        },
    ] {
        let mut observation = healthy();
        plant(&mut observation);
        assert_eq!(
            judge(&workload(), &observation.common, &observation.load, &limits),
            []
        );
        let warning = other_load(&observation.common, &observation.load, &limits);
        assert!(
            matches!(warning, Some(Warning::OtherLoad { share: 0.09..=0.11 })),
            "{warning:?}"
        );
    }
}

#[test]
fn a_full_backlog_is_shown_and_voids_nothing() {
    assert!(disturbances(|o| o.common.softnet.dropped = 1).is_empty());
    let mut observation = healthy();
    observation.common.softnet.dropped = 1;
    for (kind, arrival) in [
        (WorkloadKind::Stream, Arrival::Closed),
        (WorkloadKind::Rr, workload().arrival),
    ] {
        let workload = Workload {
            kind,
            arrival,
            ..workload()
        };
        let limits = Thresholds::default();
        let (common, load) = (&observation.common, &observation.load);
        assert_eq!(judge(&workload, common, load, &limits), []);
    }
}
