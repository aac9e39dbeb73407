//! What the CPUs paid (N-10, N-11).

use plumbline_experiment::{Task, Treatment};
use plumbline_record::{CpuTime, LoadObservation, LoadResult, Observation, ProcessCpu};
use plumbline_stats::order::MedianOfRuns;

use serde::Serialize;

use super::metric::{Metric, Quantity};
use super::rates::{self, over_trials};
use super::unit::Unit;

/// The step in which kernels show CPU time, nanoseconds (USER_HZ is 100).
const TICK_NS: u64 = 10_000_000;

/// CPU time in nanoseconds per request or byte, of all machines under the path,
/// less what they use without load and what the sender spun away.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Nanoseconds for a request, or for a byte of payload.
    pub unit: Unit,
    /// Median over trials with its order-statistic interval.
    pub total: MedianOfRuns,
    /// The median split by context.
    pub by_context: Option<CostByContext>,
    /// Of which the sending process, as the kernel accounts it, spinning left out.
    pub client_process: Option<f64>,
    /// Of which the receiving process, whose CPU is that of its life scaled to
    /// the window.
    pub server_process: Option<f64>,
    /// What the sender spent on waiting by polling, in CPUs, median over
    /// trials: the price of its punctuality, not in the total.
    pub polling_cpus: Option<f64>,
    /// What the steps of the kernel's figures add to the cost of one trial:
    /// their standard deviation as a fraction of the cost, median over trials.
    pub rounding: f64,
    /// Share of its capacity that the CPU with most soft interrupt work spent
    /// on it, median over trials; near 1 the path is bound by one CPU (N-9).
    pub busiest_cpu_softirq_share: Option<f64>,
}

/// A cost split by context. The kernel samples contexts at its ticks while the
/// total comes from idle time, so the split is the total in proportion to the
/// ticks of all trials together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CostByContext {
    /// User space.
    #[serde(rename = "user_ns")]
    pub user: f64,
    /// Kernel, without interrupts.
    #[serde(rename = "system_ns")]
    pub system: f64,
    /// Soft interrupts.
    #[serde(rename = "softirq_ns")]
    pub softirq: f64,
    /// Hardware interrupts.
    #[serde(rename = "irq_ns")]
    pub irq: f64,
}

impl Cost {
    pub(crate) fn new(task: &Task, kept: &[&Observation]) -> Option<Self> {
        let median = |value: &dyn Fn(&Observation) -> Option<f64>| {
            over_trials(kept, value).map(|runs| runs.median)
        };
        let total = over_trials(kept, |one| cpu_per_unit(task, one))?;
        Some(Self {
            unit: match task.traffic().is_bulk() {
                true => Unit::NanosecondsPerByte,
                false => Unit::Nanoseconds,
            },
            by_context: split(total.median, kept),
            client_process: median(&|one| per_unit(client_ns(one.load()?), task, one.load()?)),
            server_process: median(&|one| per_unit(server_ns(one.load()?)?, task, one.load()?)),
            polling_cpus: median(&|one| {
                let load = &one.load()?.load;
                let cpus = spin_ns(load) / load.window_ns as f64;
                cpus.is_finite().then_some(cpus)
            }),
            rounding: median(&|one| rounding(one)).unwrap_or(0.0),
            busiest_cpu_softirq_share: median(&busiest_softirq_share),
            total,
        })
    }
}

/// What a trial cost, divided by its requests or bytes (N-10).
///
/// `None` without an idle sample, without a machine, with other pairs or a neighbour on it, and
/// when nothing was completed. May be negative when the machine was busier without load: that is
/// noise, and is shown rather than clipped.
pub(crate) fn cpu_per_unit(task: &Task, observation: &Observation) -> Option<f64> {
    per_unit(spent_ns(observation)?, task, observation.load()?)
}

/// What the processes that do the work used in a trial, divided by its requests or
/// bytes: the agents, what forwards packets in user space, and `ksoftirqd`. What the
/// receiver and the forwarders used in their lives is scaled to the window. Beside a
/// neighbour, whose packets `ksoftirqd` handles too, only the others. Forwarders that cannot
/// be seen are missing, see [`may_hide`].
///
/// `None` in runs of builds that did not read it, when nothing was completed, and beside a
/// neighbour where processes forward, perhaps its packets.
pub(crate) fn process_cpu_per_unit(task: &Task, observation: &Observation) -> Option<f64> {
    let (common, seen) = (&observation.common, observation.load()?);
    let agents_ns = client_ns(seen) + server_ns(seen)?;
    let forwarders_ns = busy_of(common.forwarders_cpu.unwrap_or_default()) * seen.window_share()?;
    if common.neighbour.is_some() {
        return per_unit(agents_ns, task, seen).filter(|_| forwarders_ns == 0.0);
    }
    let ours_ns = agents_ns + forwarders_ns;
    per_unit(ours_ns + common.ksoftirqd_ns? as f64, task, seen)
}

/// Whether a network may have processes of its own that nobody sees, where those count: which
/// these are only a lab knows. Between the nodes' own networks there are none.
pub(crate) fn may_hide(metric: &Metric, treatment: &Treatment, target: &str) -> bool {
    let scene = &treatment.scene;
    let way = match scene.path.is_empty() {
        true => &scene.network,
        false => &scene.path,
    };
    metric.quantity == Quantity::Processes && target != "lab" && way != "host"
}

/// busy − idle share × capacity, summed over machines (N-10), less what the
/// sender spun: that is the price of its punctuality, not of the network.
/// Nanoseconds.
fn spent_ns(observation: &Observation) -> Option<f64> {
    let common = &observation.common;
    let idle = common.idle;
    // Of pairs on one kernel, only what all of them cost is known.
    let is_shared = !common.companions_cpu.is_none() || common.neighbour.is_some();
    if idle.capacity_ns == 0 || common.machines.is_empty() || is_shared {
        return None;
    }
    let idle_share = idle.busy_ns as f64 / idle.capacity_ns as f64;
    let busy = |cpu: &CpuTime| cpu.busy_ns as f64 - idle_share * cpu.capacity_ns as f64;
    let busy_ns: f64 = common.machines.iter().map(busy).sum();
    Some(busy_ns - spin_ns(&observation.load()?.load))
}

/// What the sender spun, nanoseconds. It is timed by the clock, so a sender
/// that was put aside meanwhile spun less: never more than its own CPU.
fn spin_ns(load: &LoadResult) -> f64 {
    (load.spin_ns as f64).min(busy_of(load.cpu))
}

/// The step in which the CPU time of a trial was shown: what divides all figures, and
/// at most a tick. Where idle time was counted in microseconds, that is the step.
fn step_of(observation: &Observation) -> u64 {
    let figures = observation.common.machines.iter().flat_map(|cpu| {
        [
            cpu.user_ns,
            cpu.system_ns,
            cpu.softirq_ns,
            cpu.irq_ns,
            cpu.iowait_ns,
            cpu.steal_ns,
            cpu.idle_ns,
        ]
    });
    figures.fold(TICK_NS, greatest_common_divisor)
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

/// Standard deviation of a trial's cost that comes from rounding, as a
/// fraction. On each CPU two readings of idle time are cut down to a step, each
/// of them off by 0 to 1 step with a variance of step²/12. A window in slices is read
/// twice in each.
fn rounding(observation: &Observation) -> Option<f64> {
    let step_ns = step_of(observation);
    let spent_ns = spent_ns(observation).filter(|&ns| ns > 0.0)?;
    let load = observation.load()?;
    let cpus: f64 = observation
        .common
        .machines
        .iter()
        .filter_map(|machine| cpus_of(machine, load))
        .sum();
    let slices = observation.common.rotation.map_or(1, |it| it.slices);
    Some(step_ns as f64 * (cpus * f64::from(slices) / 6.0).sqrt() / spent_ns)
}

/// How many CPUs the machine has: more than this process may run on, perhaps.
fn cpus_of(machine: &CpuTime, seen: &LoadObservation) -> Option<f64> {
    let cpus = machine.capacity_ns as f64 / seen.load.window_ns as f64;
    cpus.is_finite().then(|| cpus.round().max(1.0))
}

fn client_ns(seen: &LoadObservation) -> f64 {
    busy_of(seen.load.cpu) - spin_ns(&seen.load)
}

fn server_ns(seen: &LoadObservation) -> Option<f64> {
    Some(busy_of(seen.server_cpu) * seen.window_share()?)
}

fn per_unit(spent_ns: f64, task: &Task, seen: &LoadObservation) -> Option<f64> {
    let units = rates::units(task, seen);
    (units > 0.0).then(|| spent_ns / units)
}

fn busy_of(cpu: ProcessCpu) -> f64 {
    cpu.user_ns as f64 + cpu.system_ns as f64
}

fn split(total: f64, kept: &[&Observation]) -> Option<CostByContext> {
    let ticks = |context: fn(&CpuTime) -> u64| {
        let machines = kept.iter().flat_map(|one| &one.common.machines);
        machines.map(|cpu| context(cpu) as f64).sum::<f64>()
    };
    // Spinning is in the sender's user and system time, as it has these.
    let spun = |part: fn(&ProcessCpu) -> u64| {
        let of_one = |load: &LoadResult| match busy_of(load.cpu) {
            busy if busy > 0.0 => spin_ns(load) * part(&load.cpu) as f64 / busy,
            _ => 0.0,
        };
        let loads = kept.iter().filter_map(|one| one.load());
        loads.map(|seen| of_one(&seen.load)).sum::<f64>()
    };
    let user = (ticks(|cpu| cpu.user_ns) - spun(|cpu| cpu.user_ns)).max(0.0);
    let system = (ticks(|cpu| cpu.system_ns) - spun(|cpu| cpu.system_ns)).max(0.0);
    let softirq = ticks(|cpu| cpu.softirq_ns);
    let irq = ticks(|cpu| cpu.irq_ns);
    let all = user + system + softirq + irq;
    (all > 0.0).then(|| CostByContext {
        user: total * user / all,
        system: total * system / all,
        softirq: total * softirq / all,
        irq: total * irq / all,
    })
}

fn busiest_softirq_share(observation: &Observation) -> Option<f64> {
    let load = observation.load()?;
    let share = |machine: &CpuTime| {
        let one_cpu = machine.capacity_ns as f64 / cpus_of(machine, load)?;
        Some(machine.busiest_softirq_ns as f64 / one_cpu)
    };
    let shares = observation.common.machines.iter().filter_map(share);
    shares.filter(|share| share.is_finite()).reduce(f64::max)
}
