//! Validity gates: when a trial must not be believed.
//!
//! Each gate is a pure function of an observation; each has a test that plants
//! its violation (L-9). How the thresholds marked [D] in the methodology were
//! calibrated is written in docs/method.md.

use plumbline_experiment::Workload;
use plumbline_record::{CpuTime, GateFailure, IdleSample, LoadResult, Observation, Warning};

use crate::self_check;

/// What the gates allow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// D2: the generator's median lag, as a share of the median latency.
    pub lag_share: f64,
    /// D2: lag that is always allowed at the median, nanoseconds.
    pub lag_floor_ns: u64,
    /// D2: the generator's lag at the 90th percentile, as a share of the latency
    /// there, that voids a trial; at the 99th, that voids this percentile.
    pub tail_lag_share: f64,
    /// D2: lag that is always allowed at these percentiles, nanoseconds.
    pub tail_lag_floor_ns: u64,
    /// D3: how far sent may be from planned, as a share.
    pub rate_deviation: f64,
    /// C-14: steal, as a share of capacity.
    pub steal_share: f64,
    /// C-14: user time of others, as a share of capacity, that voids a trial.
    pub other_load_share: f64,
    /// C-14: busy share of the machine in the idle sample that voids a trial.
    pub idle_busy_share: f64,
    /// C-14: either of the two that marks a trial.
    pub marked_load_share: f64,
    /// L-3: failed and unanswered requests, as a share of the planned.
    pub error_share: f64,
    /// L-7: distance of the real gaps from exponential ones, from 0 to 1, that
    /// is not warned of.
    pub arrival_distance: f64,
    /// L-12: CPU time of the sender's busiest thread without polling, as a
    /// share of the window, that is not warned of.
    pub busy_share: f64,
    /// L-12: the same from which on a thread has no time left.
    pub saturated_share: f64,
    /// L-10: how many times the latency may rise or fall inside the window
    /// without a warning.
    pub level_warning: f64,
    /// L-10: the same for the trial to count.
    pub level_gate: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            lag_share: 0.10,
            lag_floor_ns: 5_000,
            tail_lag_share: 0.50,
            tail_lag_floor_ns: 100_000,
            rate_deviation: 0.01,
            steal_share: 0.005,
            other_load_share: 0.15,
            idle_busy_share: 0.15,
            marked_load_share: 0.05,
            // (1 − q)/10 with q = 0.99, the highest quantile that is compared.
            error_share: 0.001,
            arrival_distance: 0.10,
            busy_share: 0.70,
            saturated_share: 0.95,
            level_warning: 1.3,
            level_gate: 2.0,
        }
    }
}

impl Thresholds {
    /// For a kernel that runs as a program. A system call costs it 20 to 50 µs,
    /// and no sender can be nearer to its deadline than a few of them, on any
    /// network: 53 µs at the median on an idle machine, measured (docs/method.md).
    /// Under load the sender also waits for the receiver and the network, with
    /// which it shares the only CPU: a request took 0.5 ms of it, nginx among
    /// them, measured. That wait is part of what a network costs there, and is in
    /// the latency (L-1); what is later than twice that is disturbed there too.
    pub fn user_mode() -> Self {
        Self {
            lag_floor_ns: 1_000_000,
            tail_lag_floor_ns: 5_000_000,
            ..Self::default()
        }
    }
}

/// The kernel shows CPU time in ticks of 10 ms; what is below two of them
/// cannot be told from nothing, whatever its share of a short window.
const CPU_RESOLUTION_NS: u64 = 20_000_000;

/// Gives every gate that an observation fails; empty when it may be believed.
pub fn judge(
    workload: &Workload,
    observation: &Observation,
    limits: &Thresholds,
) -> Vec<GateFailure> {
    let mut failures = Vec::new();
    if workload.arrival.rate().is_some() {
        failures.extend(send_lag(&observation.load, limits));
        failures.extend(achieved_rate(&observation.load, limits));
    }
    failures.extend(self_check::no_steady_state(&observation.load, limits));
    failures.extend(errors(observation, limits));
    failures.extend(wrong_answers(observation));
    failures.extend(path_fault(workload, observation));
    failures.extend(disturbed(workload, observation, limits));
    failures.extend(idle_load(&observation.idle, limits));
    failures
}

/// D2, per percentile: the median lag must not move the median latency, nor
/// one request in ten be later by the generator than by the path.
pub(crate) fn send_lag(load: &LoadResult, limits: &Thresholds) -> Option<GateFailure> {
    [
        (0.50, limits.lag_share, limits.lag_floor_ns),
        (0.90, limits.tail_lag_share, limits.tail_lag_floor_ns),
    ]
    .into_iter()
    .find_map(|(quantile, share, floor_ns)| {
        let lag_ns = load.generator_lag.value_at(quantile);
        let limit_ns = floor_ns.max((load.latency.value_at(quantile) as f64 * share) as u64);
        (lag_ns > limit_ns).then_some(GateFailure::SendLag {
            quantile,
            lag_ns,
            limit_ns,
        })
    })
}

/// D2, below what voids a trial: the upper percentiles are the generator's own
/// lateness, the median and the costs are not.
pub(crate) fn tail_lag(
    workload: &Workload,
    observation: &Observation,
    limits: &Thresholds,
) -> Option<Warning> {
    workload.arrival.rate()?;
    let lag_ns = observation.load.generator_lag.value_at(0.99);
    let latency_ns = observation.load.latency.value_at(0.99);
    let limit_ns = limits
        .tail_lag_floor_ns
        .max((latency_ns as f64 * limits.tail_lag_share) as u64);
    (lag_ns > limit_ns).then_some(Warning::TailLag { lag_ns, latency_ns })
}

/// D3: what was sent in the window is what the schedule put there.
fn achieved_rate(load: &LoadResult, limits: &Thresholds) -> Option<GateFailure> {
    let (planned, achieved) = (load.planned, load.sent);
    let off = planned.abs_diff(achieved) as f64 > limits.rate_deviation * planned as f64;
    off.then_some(GateFailure::AchievedRate { planned, achieved })
}

/// L-3: too many requests without an answer make the upper percentiles a guess.
fn errors(observation: &Observation, limits: &Thresholds) -> Option<GateFailure> {
    let load = &observation.load;
    let failed = load.errors.total() + load.censored;
    let nothing = load.completed == 0;
    let planned = load.planned.max(1);
    (nothing || failed as f64 > limits.error_share * planned as f64)
        .then_some(GateFailure::Errors { failed, planned })
}

/// one wrong answer is a wrong path.
fn wrong_answers(observation: &Observation) -> Option<GateFailure> {
    let (client, server) = (observation.load.errors.corrupt, observation.serve.corrupt);
    (client + server > 0).then(|| GateFailure::WrongPath {
        detail: format!("{client} answers and {server} requests had the wrong sequence or content"),
    })
}

/// N-3, N-4: wrong checksums and fragments are faults of the path, not costs.
/// Datagrams beyond the MTU are fragmented by the workload's own wish.
fn path_fault(workload: &Workload, observation: &Observation) -> Option<GateFailure> {
    let checksums: u64 = observation
        .protocols
        .iter()
        .map(|p| p.checksum_errors)
        .sum();
    let fragments: u64 = observation.protocols.iter().map(|p| p.ip_fragments).sum();
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

/// C-14: somebody else had the machine.
pub(crate) fn disturbed(
    workload: &Workload,
    observation: &Observation,
    limits: &Thresholds,
) -> Vec<GateFailure> {
    let mut failures = Vec::new();
    let mut found = |by: &str, amount: f64, limit: f64| {
        if amount > limit {
            failures.push(GateFailure::Disturbed {
                by: by.to_owned(),
                amount,
                limit,
            });
        }
    };
    for (position, machine) in observation.machines.iter().enumerate() {
        found(
            "steal",
            share(machine.steal_ns, machine),
            at_least_resolution(limits.steal_share, machine),
        );
        let others = others_user_share(position, observation);
        found(
            "other-load",
            others,
            at_least_resolution(limits.other_load_share, machine),
        );
    }
    // Bulk fills the receive queues by its nature; a held rate must not.
    if workload.arrival.rate().is_some() && workload.kind.is_answered() {
        found("softnet-drop", observation.softnet.dropped as f64, 0.0);
    }
    failures
}

/// C-14, below what voids a trial: the largest share of the machine that
/// somebody else had, in the window or in the idle sample.
pub(crate) fn other_load(observation: &Observation, limits: &Thresholds) -> Option<Warning> {
    let idle = &observation.idle;
    let in_idle = idle.busy_ns as f64 / idle.capacity_ns.max(1) as f64;
    let in_window = observation
        .machines
        .iter()
        .enumerate()
        .map(|(position, _)| others_user_share(position, observation));
    let share = in_window.fold(in_idle, f64::max);
    (share > limits.marked_load_share).then_some(Warning::OtherLoad { share })
}

/// User time of a machine that is neither the sender's, the receiver's, nor the
/// network's, as a share. The first machine is the sender's, and everybody's
/// where there is no second; with two, no process of ours forwards.
fn others_user_share(position: usize, observation: &Observation) -> f64 {
    let machine = &observation.machines[position];
    let scaled =
        |whole: u64| (whole as f64 * observation.window_share().unwrap_or(1.0).min(1.0)) as u64;
    let client = observation.load.cpu.user_ns;
    let server = scaled(observation.server_cpu.user_ns);
    let ours = match (position, observation.machines.len()) {
        (_, 1) => {
            let forwarders = scaled(observation.forwarders_cpu.user_ns);
            client + server + forwarders + observation.companions_cpu.user_ns
        }
        (0, _) => client,
        _ => server,
    };
    share(machine.user_ns.saturating_sub(ours), machine)
}

/// C-14: somebody else had the machine when nothing of ours ran. Then the
/// baseline that costs are reduced by is wrong too.
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
