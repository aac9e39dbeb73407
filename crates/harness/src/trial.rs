//! One trial: an exercise on a path, what was counted around it, and the proof
//! that packets took the path.

use plumbline_record::{
    DeviceCounters, GateFailure, NodeRules, Observation, ProcessCpu, ProtocolCounters,
};

use crate::agent::TrialError;
use crate::error::TargetError;
use crate::exercise::{Done, Exercise, TrialOrder};
use crate::path::Path;
use crate::snapshot::PathSnapshot;

/// What was seen, and what the path's own checks say.
pub(crate) type CheckedObservation = (Observation, Vec<GateFailure>);

/// Runs an exercise once on a path.
pub(crate) fn run(
    path: &dyn Path,
    exercise: &dyn Exercise,
    order: TrialOrder<'_>,
) -> Result<CheckedObservation, TrialError> {
    let idle = order.idle;
    if let Some(wrong) = path.check_policies() {
        return Err(TargetError::Failed(wrong).into());
    }
    let before = path.snapshot()?;
    let Done { mut seen, least } = exercise.run(path, order)?;
    let after = path.snapshot()?;
    let wrong = path.check_path(&before, &after, least);
    let wrong = wrong.map(|detail| GateFailure::WrongPath { detail });
    let unenforced = path.check_policies();
    let unenforced = unenforced.map(|detail| GateFailure::NotEnforced { detail });
    let gates = wrong.into_iter().chain(unenforced).collect();
    let common = &mut seen.common;
    common.forwarders_cpu = forwarders_between(&before, &after);
    common.devices = devices_between(&before, &after);
    common.rules = rules_between(&before, &after);
    if let Some(protocols) = protocols_between(&before, &after) {
        common.protocols = protocols;
    }
    common.idle = idle;
    Ok((seen, gates))
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
