//! Validity gates: when a trial must not be believed.
//!
//! Each gate is a pure function of an observation; each has a test that plants
//! its violation (L-9). How the thresholds marked [D] in the methodology were
//! calibrated is written in docs/method.md.

mod lateness;

use plumbline_experiment::{Workload, WorkloadKind};
use plumbline_record::{
    Common, CpuTime, GateFailure, IdleSample, LoadObservation, LoadResult, NodeRules, Observation,
    Warning,
};

pub(crate) use lateness::{Lateness, TurnSeen};

use crate::self_check;
use crate::thresholds::Thresholds;

/// The kernel shows CPU time in ticks of 10 ms; what is below two of them
/// cannot be told from nothing, whatever its share of a short window.
const CPU_RESOLUTION_NS: u64 = 20_000_000;

/// Gives every gate that a load fails by what it alone has shown: not how late it was sent,
/// see `Lateness`. Empty when it may be believed.
pub fn judge(
    workload: &Workload,
    common: &Common,
    seen: &LoadObservation,
    limits: &Thresholds,
) -> Vec<GateFailure> {
    let mut failures = Vec::new();
    let is_held = workload.arrival.rate().is_some();
    // What treatments that took turns are held to depends on nothing that one of them
    // alone has shown: for the rest, see `judge_together`.
    let had_window = common.rotation.is_none();
    if is_held {
        failures.extend(achieved_rate(&seen.load, limits));
    }
    if had_window {
        failures.extend(self_check::no_steady_state(&seen.load, limits));
    }
    failures.extend(errors(workload, &seen.load, limits));
    failures.extend(wrong_answers(seen));
    failures.extend(path_fault(workload, common));
    failures.extend(conntrack_full(common));
    failures.extend(idle_neighbour(common));
    if had_window {
        failures.extend(disturbed(common, seen, limits));
        failures.extend(idle_load(&common.idle, limits));
    }
    failures
}

/// D3: what was sent in the window is what the schedule put there.
fn achieved_rate(load: &LoadResult, limits: &Thresholds) -> Option<GateFailure> {
    let (planned, achieved) = (load.planned, load.sent);
    let off = planned.abs_diff(achieved) as f64 > limits.rate_deviation * planned as f64;
    off.then_some(GateFailure::AchievedRate { planned, achieved })
}

/// L-3: too many requests without an answer make the upper percentiles a guess. Of a
/// stream that takes turns on a slow path all may have been written before the recorded
/// parts: what counts is what was acknowledged in them.
fn errors(workload: &Workload, load: &LoadResult, limits: &Thresholds) -> Option<GateFailure> {
    let failed = load.errors.total() + load.censored;
    let nothing = match workload.kind {
        WorkloadKind::Stream => load.bytes_sent == 0,
        _ => load.completed == 0,
    };
    let planned = load.planned.max(1);
    (nothing || failed as f64 > limits.error_share * planned as f64)
        .then_some(GateFailure::Errors { failed, planned })
}

/// one wrong answer is a wrong path.
fn wrong_answers(seen: &LoadObservation) -> Option<GateFailure> {
    let (client, server) = (seen.load.errors.corrupt, seen.serve.corrupt);
    (client + server > 0).then(|| GateFailure::WrongPath {
        detail: format!("{client} answers and {server} requests had the wrong sequence or content"),
    })
}

/// N-3, N-4: wrong checksums and fragments are faults of the path, not costs.
/// Datagrams beyond the MTU are fragmented by the workload's own wish.
fn path_fault(workload: &Workload, common: &Common) -> Option<GateFailure> {
    let checksums: u64 = common.protocols.iter().map(|p| p.checksum_errors).sum();
    let fragments: u64 = common.protocols.iter().map(|p| p.ip_fragments).sum();
    let wanted = workload.request_size.max(workload.response_size) > 1200;
    let detail = if checksums > 0 {
        format!("{checksums} packets with a wrong checksum")
    } else if fragments > 0 && !wanted {
        format!("{fragments} fragments: the MTU is larger than the path carries")
    } else {
        return None;
    };
    Some(GateFailure::PathFault { detail })
}

/// A node that tracks as many connections as it may drops new ones, or old ones for them.
fn conntrack_full(common: &Common) -> Option<GateFailure> {
    let is_full =
        |it: &&NodeRules| it.connections_dropped > 0 || it.connections >= it.connections_max.max(1);
    let full = common.rules.iter().find(is_full)?;
    Some(GateFailure::ConntrackFull {
        namespace: full.namespace.clone(),
        dropped: full.connections_dropped,
        connections: full.connections,
        max: full.connections_max,
    })
}

/// A neighbour that did nothing disturbed nobody.
fn idle_neighbour(common: &Common) -> Option<GateFailure> {
    let neighbour = common.neighbour?;
    (neighbour.done == 0).then_some(GateFailure::IdleNeighbour)
}

/// C-14: somebody else had the machine.
pub(crate) fn disturbed(
    common: &Common,
    seen: &LoadObservation,
    limits: &Thresholds,
) -> Vec<GateFailure> {
    let allowed_steal = match common.rotation {
        Some(_) => limits.steal_share_in_turns,
        None => limits.steal_share,
    };
    let mut failures = Vec::new();
    for (position, machine) in common.machines.iter().enumerate() {
        let others = others_user_share(position, common, seen);
        failures.extend(taken_away(machine, others, allowed_steal, limits));
    }
    failures
}

/// What treatments that took turns on one machine fail together. None is repeated for
/// what it alone met or did: other programs and the hypervisor are judged over all
/// slices of the block (C-14), and how late a request may be sent is decided by the
/// latency of the treatment's baseline (D2). Gives the failures of all, and then of each.
pub(crate) fn judge_together(
    members: &[TurnSeen<'_>],
    lateness: &mut Lateness,
    limits: &Thresholds,
) -> (Vec<GateFailure>, Vec<Option<GateFailure>>) {
    let all = members.iter().filter_map(|(_, seen)| *seen);
    (
        disturbed_together(all, limits),
        lateness.judge_turns(members, limits),
    )
}

fn disturbed_together<'a>(
    members: impl Iterator<Item = &'a Observation>,
    limits: &Thresholds,
) -> Vec<GateFailure> {
    let mut whole = CpuTime::default();
    let mut others_ns = 0.0;
    for (common, seen) in members.filter_map(|it| Some((&it.common, it.load()?))) {
        for (position, machine) in common.machines.iter().enumerate() {
            whole.capacity_ns += machine.capacity_ns;
            whole.steal_ns += machine.steal_ns;
            if let Some(ours_ns) = own_user_ns(position, common, seen) {
                others_ns += machine.user_ns as f64 - ours_ns as f64;
            }
        }
    }
    let others = others_ns.max(0.0) / whole.capacity_ns.max(1) as f64;
    taken_away(&whole, others, limits.steal_share_in_turns, limits)
}

/// Steal, of which so much is allowed, and `others`: the share of the machine that other
/// programs had.
fn taken_away(
    machine: &CpuTime,
    others: f64,
    allowed_steal: f64,
    limits: &Thresholds,
) -> Vec<GateFailure> {
    let found = |by, amount, limit| exceeds(by, amount, at_least_resolution(limit, machine));
    let steal = found("steal", share(machine.steal_ns, machine), allowed_steal);
    let other_load = found("other-load", others, limits.other_load_share);
    steal.into_iter().chain(other_load).collect()
}

fn exceeds(by: &str, amount: f64, limit: f64) -> Option<GateFailure> {
    (amount > limit).then(|| GateFailure::Disturbed {
        by: by.to_owned(),
        amount,
        limit,
    })
}

/// C-14, below what voids a trial: the largest share of the machine that
/// somebody else had, in the window or in the idle sample.
pub(crate) fn other_load(
    common: &Common,
    seen: &LoadObservation,
    limits: &Thresholds,
) -> Option<Warning> {
    let idle = &common.idle;
    let in_idle = idle.busy_ns as f64 / idle.capacity_ns.max(1) as f64;
    let in_window = common
        .machines
        .iter()
        .enumerate()
        .map(|(position, _)| others_user_share(position, common, seen));
    let share = in_window.fold(in_idle, f64::max);
    (share > limits.marked_load_share).then_some(Warning::OtherLoad { share })
}

/// User time of a machine that is neither the sender's, the receiver's, nor the
/// network's, as a share; 0 where it cannot be seen what carries the network: then
/// others are judged by the machine without load alone, which has none of it.
fn others_user_share(position: usize, common: &Common, seen: &LoadObservation) -> f64 {
    let machine = &common.machines[position];
    let ours = own_user_ns(position, common, seen);
    ours.map_or(0.0, |ours| {
        share(machine.user_ns.saturating_sub(ours), machine)
    })
}

/// User time of the sender, the receiver, neighbours and the network's own processes on a
/// machine.
/// The first machine is the sender's, and everybody's where there is no second.
fn own_user_ns(position: usize, common: &Common, seen: &LoadObservation) -> Option<u64> {
    let share_of_life = seen.window_share().unwrap_or(1.0);
    let scaled = |whole: u64| (whole as f64 * share_of_life) as u64;
    let client = seen.load.cpu.user_ns;
    let server = scaled(seen.server_cpu.user_ns);
    let forwarders = scaled(common.forwarders_cpu?.user_ns);
    Some(match (position, common.machines.len()) {
        (_, 1) => {
            let beside = common.neighbour.map_or(0, |it| it.cpu.user_ns);
            client + server + forwarders + common.companions_cpu.user_ns + beside
        }
        (0, _) => client,
        _ => server,
    })
}

/// C-14: somebody else had the machine when nothing of ours ran. Then the
/// baseline that costs are reduced by is wrong too. Not for slices of a rotation in which
/// nobody sends: a slow path still carries there what it was given before (C-20).
pub(crate) fn idle_load(idle: &IdleSample, limits: &Thresholds) -> Option<GateFailure> {
    let capacity = idle.capacity_ns.max(1) as f64;
    let amount = idle.busy_ns as f64 / capacity;
    let limit = limits
        .idle_busy_share
        .max(CPU_RESOLUTION_NS as f64 / capacity);
    (amount > limit).then(|| GateFailure::Disturbed {
        by: "load-while-idle".to_owned(),
        amount,
        limit,
    })
}

fn share(ns: u64, machine: &CpuTime) -> f64 {
    ns as f64 / machine.capacity_ns.max(1) as f64
}

fn at_least_resolution(limit: f64, machine: &CpuTime) -> f64 {
    limit.max(share(CPU_RESOLUTION_NS, machine))
}

#[cfg(test)]
mod tests;
