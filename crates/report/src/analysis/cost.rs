//! What the CPUs paid (N-10, N-11).

use plumbline_experiment::Workload;
use plumbline_record::{CpuTime, Observation, ProcessCpu};
use plumbline_stats::order::{MedianOfRuns, median_of_runs};

use super::LEVEL;
use super::metric::is_bulk;
use super::rates;

/// What the CPU cost is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerUnit {
    /// One request.
    Request,
    /// One byte of payload.
    Byte,
}

/// CPU time in nanoseconds per request or byte, of all machines under the path,
/// less what they use without load.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// What it is divided by.
    pub per: PerUnit,
    /// Median over trials with its order-statistic interval.
    pub total: MedianOfRuns,
    /// The median split by context.
    pub by_context: Option<CostByContext>,
    /// Of which the sending process, as the kernel accounts it.
    pub client_process: Option<f64>,
    /// Of which the receiving process.
    pub server_process: Option<f64>,
    /// Share of its capacity that the CPU with most soft interrupt work spent
    /// on it, median over trials; near 1 the path is bound by one CPU (N-9).
    pub busiest_cpu_softirq_share: Option<f64>,
}

/// A cost split by context. The kernel samples contexts at its ticks while the
/// total comes from idle time, so the split is the total in proportion to the
/// ticks of all trials together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostByContext {
    /// User space.
    pub user: f64,
    /// Kernel, without interrupts.
    pub system: f64,
    /// Soft interrupts.
    pub softirq: f64,
    /// Hardware interrupts.
    pub irq: f64,
}

impl Cost {
    /// `cpus` is the number of online CPUs of a machine, 0 if not known.
    pub(crate) fn new(workload: &Workload, kept: &[&Observation], cpus: u32) -> Option<Self> {
        let over_trials = |value: &dyn Fn(&Observation) -> Option<f64>| {
            let values: Vec<f64> = kept.iter().filter_map(|one| value(one)).collect();
            median_of_runs(&values, LEVEL)
        };
        let process = |cpu: &dyn Fn(&Observation) -> ProcessCpu| {
            over_trials(&|one| per_unit(busy_of(cpu(one)), workload, one)).map(|runs| runs.median)
        };
        let total = over_trials(&|one| cpu_per_unit(workload, one))?;
        Some(Self {
            per: if is_bulk(workload) {
                PerUnit::Byte
            } else {
                PerUnit::Request
            },
            by_context: split(total.median, kept),
            client_process: process(&|one| one.load.cpu),
            server_process: process(&|one| one.server_cpu),
            busiest_cpu_softirq_share: over_trials(&|one| busiest_softirq_share(one, cpus))
                .map(|runs| runs.median),
            total,
        })
    }
}

/// (busy − idle share × capacity) / units, summed over machines (N-10).
///
/// `None` without an idle sample, without a machine, and when nothing was
/// completed. May be negative when the machine was busier without load: that is
/// noise, and is shown rather than clipped.
pub(crate) fn cpu_per_unit(workload: &Workload, observation: &Observation) -> Option<f64> {
    let idle = observation.idle;
    if idle.capacity_ns == 0 || observation.machines.is_empty() {
        return None;
    }
    let idle_share = idle.busy_ns as f64 / idle.capacity_ns as f64;
    let spent = observation
        .machines
        .iter()
        .map(|cpu| cpu.busy_ns as f64 - idle_share * cpu.capacity_ns as f64)
        .sum();
    per_unit(spent, workload, observation)
}

fn per_unit(spent_ns: f64, workload: &Workload, observation: &Observation) -> Option<f64> {
    let units = rates::units(workload, observation);
    (units > 0.0).then(|| spent_ns / units)
}

fn busy_of(cpu: ProcessCpu) -> f64 {
    cpu.user_ns as f64 + cpu.system_ns as f64
}

fn split(total: f64, kept: &[&Observation]) -> Option<CostByContext> {
    let ticks = |context: fn(&CpuTime) -> u64| {
        let machines = kept.iter().flat_map(|one| &one.machines);
        machines.map(|cpu| context(cpu) as f64).sum::<f64>()
    };
    let user = ticks(|cpu| cpu.user_ns);
    let system = ticks(|cpu| cpu.system_ns);
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

fn busiest_softirq_share(observation: &Observation, cpus: u32) -> Option<f64> {
    let share = |cpu: &CpuTime| {
        let one_cpu = cpu.capacity_ns as f64 / f64::from(cpus);
        cpu.busiest_softirq_ns as f64 / one_cpu
    };
    let shares = observation.machines.iter().map(share);
    shares.filter(|share| share.is_finite()).reduce(f64::max)
}
