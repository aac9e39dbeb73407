//! One trial: an exercise on a path, what was counted around it, and the proof
//! that packets took the path.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use plumbline_experiment::{Timing, Workload};
use plumbline_record::{
    DeviceCounters, GateFailure, LoadObservation, NeighbourRecord, NodeRules, Observation,
    ProcessCpu, ProtocolCounters,
};

use crate::agent::TrialError;
use crate::error::TargetError;
use crate::exercise::{Done, Exercise, LoadExercise, TrialOrder};
use crate::path::Path;
use crate::settings::Settings;
use crate::snapshot::PathSnapshot;
use crate::together::{Start, joined};

/// What was seen, and what the path's own checks say.
pub(crate) type CheckedObservation = (Observation, Vec<GateFailure>);

/// Runs a load once on a path that stands, with fresh agents and nothing beside it, for a
/// look that is not part of a run; `None` when it was interrupted.
///
/// # Errors
///
/// What kept it from being run, and packets that did not take the path.
pub fn load_once(
    path: &dyn Path,
    (workload, timing): (&Workload, Timing),
    seed: u64,
    settings: &Settings,
    interrupted: &AtomicBool,
) -> Result<Option<LoadObservation>, TargetError> {
    let load = LoadExercise {
        workload: workload.clone(),
        timing,
    };
    let seen = run_alone(path, &load, seed, settings, interrupted);
    let seen = seen.map_err(|error| match error {
        TrialError::Target(error) => error,
        error => TargetError::Failed(error.to_string()),
    });
    Ok(seen?.and_then(|seen| seen.load().cloned()))
}

/// Runs a load once, with nothing beside it; `None` when it was interrupted. What the path's
/// own checks say is an error.
pub(crate) fn run_alone(
    path: &dyn Path,
    load: &LoadExercise,
    seed: u64,
    settings: &Settings,
    interrupted: &AtomicBool,
) -> Result<Option<Observation>, TrialError> {
    match run(path, load, TrialOrder::alone(seed, settings, interrupted)) {
        Ok((seen, gates)) => match gates.first() {
            None => Ok(Some(seen)),
            Some(GateFailure::WrongPath { detail }) => Err(wrong_path(detail)),
            Some(other) => Err(wrong_path(&format!("{other:?}"))),
        },
        Err(TrialError::Interrupted) => Ok(None),
        // Ctrl-C reaches the agents too; what fails then is no trial.
        Err(_) if interrupted.load(Ordering::SeqCst) => Ok(None),
        Err(error) => Err(error),
    }
}

fn wrong_path(detail: &str) -> TrialError {
    TargetError::Failed(format!("the path was not taken: {detail}")).into()
}

/// Runs an exercise once on a path.
pub(crate) fn run(
    path: &dyn Path,
    exercise: &dyn Exercise,
    order: TrialOrder<'_>,
) -> Result<CheckedObservation, TrialError> {
    let idle = order.idle;
    if let Some(wrong) = path.check_policies()? {
        return Err(TrialError::NotEnforced(wrong));
    }
    let before = path.snapshot()?;
    let (done, neighbour) = run_beside(path, exercise, order)?;
    let Done {
        mut seen,
        least,
        counted,
    } = done;
    let is_whole = counted.is_none();
    let after = counted.map_or_else(|| path.snapshot(), Ok)?;
    let wrong = path.check_path(&before, &after, least);
    let wrong = wrong.map(|detail| GateFailure::WrongPath { detail });
    let unenforced = path.check_policies()?.filter(|_| is_whole);
    let unenforced = unenforced.map(|detail| GateFailure::NotEnforced { detail });
    let gates = wrong.into_iter().chain(unenforced).collect();
    let common = &mut seen.common;
    common.forwarders_cpu = forwarders_between(&before, &after);
    common.devices = devices_between(&before, &after);
    for second in path.neighbours() {
        let crossed = second.crossed_by_others();
        let is_own =
            |it: &DeviceCounters| !crossed.contains(&(it.namespace.clone(), it.device.clone()));
        common.devices.retain(is_own);
    }
    common.neighbour = neighbour;
    common.rules = rules_between(&before, &after);
    if let Some(protocols) = protocols_between(&before, &after) {
        common.protocols = protocols;
    }
    common.idle = idle;
    Ok((seen, gates))
}

/// Runs an exercise, and what neighbours do meanwhile, all of them together.
fn run_beside(
    path: &dyn Path,
    exercise: &dyn Exercise,
    mut order: TrialOrder<'_>,
) -> Result<(Done, Option<NeighbourRecord>), TrialError> {
    let Some(neighbour) = order.neighbour.take() else {
        return Ok((exercise.run(path, order)?, None));
    };
    let seconds = path.neighbours();
    if seconds.is_empty() {
        return Err(TargetError::Unsupported {
            what: "a neighbour on this path".to_owned(),
            needs: "a target that has a second pair of endpoints: --target lab".to_owned(),
        }
        .into());
    }
    let start = Start::of(1);
    let ticket = order.others.take().unwrap_or_else(|| start.ticket());
    let beside = seconds.into_iter().zip(1..).map(|(second, number)| {
        let its_order = TrialOrder {
            // Those that do the same do not do it at the same moments.
            seed: order.seed.wrapping_add(number),
            others: None,
            slices: order.slices.clone(),
            neighbour: None,
            ..order
        };
        (second, neighbour.clone(), ticket.another(), its_order)
    });
    let beside: Vec<_> = beside.collect();
    let order = TrialOrder {
        others: Some(ticket),
        ..order
    };
    thread::scope(|scope| {
        let beside = beside
            .into_iter()
            .map(|(second, neighbour, ticket, order)| {
                scope.spawn(move || neighbour.run(&*second, ticket, order))
            });
        // All are started before the first is waited for.
        let beside: Vec<_> = beside.collect();
        let done = exercise.run(path, order);
        let beside = beside.into_iter().map(joined);
        let beside = beside.collect::<Result<Vec<NeighbourRecord>, _>>();
        Ok((done?, Some(sum(&beside?))))
    })
}

/// What all did in the time that they had.
fn sum(neighbours: &[NeighbourRecord]) -> NeighbourRecord {
    let none = NeighbourRecord::default();
    neighbours.iter().fold(none, |sum, one| NeighbourRecord {
        window_ns: sum.window_ns.max(one.window_ns),
        done: sum.done + one.done,
        cpu: sum.cpu + one.cpu,
    })
}

fn forwarders_between(before: &PathSnapshot, after: &PathSnapshot) -> Option<ProcessCpu> {
    let (early, late) = (before.forwarders?, after.forwarders?);
    Some(ProcessCpu {
        user_ns: late.user_ns.saturating_sub(early.user_ns),
        system_ns: late.system_ns.saturating_sub(early.system_ns),
    })
}

fn devices_between(before: &PathSnapshot, after: &PathSnapshot) -> Vec<DeviceCounters> {
    let since = |late: &DeviceCounters| {
        let same = |early: &&DeviceCounters| {
            early.namespace == late.namespace && early.device == late.device
        };
        let early = before.devices.iter().find(same).cloned();
        late.since(&early.unwrap_or_default())
    };
    after.devices.iter().map(since).collect()
}

/// What stood at the end; of what only grows, the difference.
fn rules_between(before: &PathSnapshot, after: &PathSnapshot) -> Vec<NodeRules> {
    let since = |late: &NodeRules| {
        let same = |early: &&NodeRules| early.namespace == late.namespace;
        let early = before.rules.iter().find(same);
        let dropped = early.map_or(0, |it| it.connections_dropped);
        NodeRules {
            connections_dropped: late.connections_dropped.saturating_sub(dropped),
            ..late.clone()
        }
    };
    after.rules.iter().map(since).collect()
}

/// `None` when the target cannot look into the path's namespaces: then the
/// agents' own are all there is.
fn protocols_between(before: &PathSnapshot, after: &PathSnapshot) -> Option<Vec<ProtocolCounters>> {
    let since = |late: &ProtocolCounters| {
        let same = |early: &&ProtocolCounters| early.namespace == late.namespace;
        let early = before.protocols.iter().find(same).cloned();
        late.since(&early.unwrap_or_default())
    };
    (!after.protocols.is_empty()).then(|| after.protocols.iter().map(since).collect())
}
