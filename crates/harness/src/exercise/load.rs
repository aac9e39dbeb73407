//! A load between two agents: warm-up, measure, drain.

use std::time::Duration;

use plumbline_experiment::{Protocol, Timing, Workload, WorkloadKind};
use plumbline_protocol::{FromAgent, LoadOrder, Secret, SenderMeasurement, Served, ToAgent};
use plumbline_record::{
    Common, CpuTime, GateFailure, LoadObservation as Seen, Observation, ProcessCpu,
    SoftnetCounters, Warning, What,
};

use super::agents::TrialAgents;
use super::order::{Done, Exercise, TrialOrder};
use crate::agent::{ANSWER, Agent, TrialError};
use crate::error::TargetError;
use crate::path::Path;
use crate::proof::Least;
use crate::receivers::Receivers;
use crate::settings::Settings;
use crate::thresholds::Thresholds;
use crate::{gate, self_check};

/// What a load may take beyond its phases, to connect and to report.
const SLACK: Duration = Duration::from_secs(20);

/// Share of the machine above which a held rate queues for CPU (N-12).
const NEAR_SATURATION: f64 = 0.80;

/// A load from one agent to another, or to several behind one address.
pub(crate) struct LoadExercise {
    pub(crate) workload: Workload,
    pub(crate) timing: Timing,
}

impl Exercise for LoadExercise {
    /// The load starts together with those of other trials, if there are any. A
    /// trial that fails before lets the others go on without it.
    fn run(&self, path: &dyn Path, mut order: TrialOrder<'_>) -> Result<Done, TrialError> {
        let interrupted = order.interrupted;
        let mut receivers = Receivers::start(path)?;
        let mut client = Agent::start(path.client())?;
        receivers.greet(interrupted)?;
        client.greet(ANSWER, interrupted)?;
        let secret = Secret::random().map_err(|error| TargetError::Failed(error.to_string()))?;
        let serving = (&self.workload, secret);
        let target = receivers.listen(path, serving, order.settings, interrupted)?;
        let slices = order.slices.take();
        let others = order.others.take();
        let in_turns = slices.is_some();
        let runs_ns = match &slices {
            None => self.timing.warm_up_ns + self.timing.measure_ns,
            Some(slices) => slices.last().map_or(0, |last| last.end_ns),
        };
        let load = ToAgent::Load(LoadOrder {
            workload: self.workload.clone(),
            target,
            secret,
            timing: self.timing,
            turns: slices,
            seed: order.seed,
            cpus: order.settings.cpus.client.clone(),
            congestion: path.congestion(),
        });
        let mut agents = TrialAgents {
            client: &mut client,
            receivers: receivers.agents(),
            interrupted,
            is_far: false,
        };
        match others {
            Some(ticket) if in_turns => {
                agents.tell_clocks(&ticket, path.is_on_two_machines())?;
                agents.begin_turns(&load, SLACK, ticket)?;
            }
            Some(ticket) => {
                agents.wait_for(ticket)?;
                agents.client.send(&load)?;
            }
            None => agents.client.send(&load)?,
        }
        let phases = Duration::from_nanos(runs_ns + self.timing.drain_ns);
        let measured = match agents.hear(phases + SLACK)? {
            FromAgent::Loaded(measured) => measured,
            other => return Err(client.unexpected(&other)),
        };
        let served = receivers.stop(interrupted)?;
        client.end()?;
        receivers.end()?;
        let least = least_packets(&self.workload, &served);
        // Where it takes turns, the receiver's whole life has those of others in it: then
        // its machine is watched in the slices.
        let add_receiver = path.is_on_two_machines() && !in_turns;
        let seen = observation(*measured, *served, add_receiver);
        Ok(Done {
            seen,
            least,
            counted: None,
        })
    }

    fn judge(&self, seen: &Observation, settings: &Settings) -> Vec<GateFailure> {
        seen.load().map_or(Vec::new(), |load| {
            gate::judge(&self.workload, &seen.common, load, &settings.thresholds)
        })
    }

    fn distrust(&self, seen: &Observation, settings: &Settings) -> Vec<Warning> {
        seen.load().map_or(Vec::new(), |load| {
            doubts(&self.workload, &seen.common, load, &settings.thresholds)
        })
    }

    fn own_cpu(&self, seen: &Observation) -> ProcessCpu {
        seen.load().map(cpu_in_window).unwrap_or_default()
    }
}

/// CPU of both agents over the window.
pub(super) fn cpu_in_window(seen: &Seen) -> ProcessCpu {
    let share = seen.window_share().unwrap_or(1.0);
    let scaled = |ns: u64| (ns as f64 * share) as u64;
    ProcessCpu {
        user_ns: seen.load.cpu.user_ns + scaled(seen.server_cpu.user_ns),
        system_ns: seen.load.cpu.system_ns + scaled(seen.server_cpu.system_ns),
    }
}

fn doubts(workload: &Workload, common: &Common, seen: &Seen, limits: &Thresholds) -> Vec<Warning> {
    let other_load = gate::other_load(common, seen, limits);
    let mut warnings: Vec<Warning> = other_load.into_iter().collect();
    warnings.extend(self_check::warnings(workload, &seen.load, limits));
    // Where others had the machine, that is the reason, and is told already.
    if gate::disturbed(common, seen, limits).is_empty() {
        warnings.extend(self_check::was_the_limit(workload, &seen.load, limits));
    }
    for machine in &common.machines {
        let share = machine.busy_ns as f64 / machine.capacity_ns.max(1) as f64;
        if workload.arrival.rate().is_some() && share > NEAR_SATURATION {
            warnings.push(Warning::NearSaturation { share });
        }
    }
    warnings
}

/// The fewest packets that can have carried what the receiver saw and answered:
/// proof against a path that was short-circuited, not a count. On a
/// connection that stays open TCP may put several small requests into one segment,
/// and a super-packet may hold 192 KB (BIG TCP, N-2); UDP may be merged by GRO.
fn least_packets(workload: &Workload, served: &Served) -> Least {
    let serve = &served.serve;
    match (workload.kind, workload.protocol) {
        (WorkloadKind::Stream, _) => Least::one_way(serve.bytes_received / (192 << 10)),
        (WorkloadKind::Datagram, _) => {
            Least::one_way(serve.datagrams.map_or(0, |d| d.received) / 64)
        }
        (WorkloadKind::Rr, Protocol::Udp) => Least::both_ways(serve.requests / 64),
        (WorkloadKind::Crr, _) => Least::both_ways(serve.requests),
        (WorkloadKind::Http, _) if !workload.keep_alive => Least::both_ways(serve.requests),
        (WorkloadKind::Rr | WorkloadKind::Http, _) => Least::both_ways(serve.requests / 16),
    }
}

/// What the agents saw; what the path counted is the trial's to add.
fn observation(measured: SenderMeasurement, served: Served, add_receiver: bool) -> Observation {
    let seen = Seen {
        load: measured.load,
        serve: served.serve,
        server_cpu: served.cpu,
    };
    let mut common = Common {
        machines: vec![measured.machine],
        protocols: vec![measured.protocol, served.protocol],
        softnet: measured.softnet,
        ksoftirqd_ns: Some(measured.ksoftirqd_ns),
        ..Common::default()
    };
    if add_receiver {
        let share = seen.window_share().unwrap_or(1.0);
        add_machine(&mut common, share, served.machine, served.softnet);
        let theirs = (served.ksoftirqd_ns as f64 * share) as u64;
        common.ksoftirqd_ns = Some(measured.ksoftirqd_ns + theirs);
    }
    Observation {
        common,
        what: What::Load(Box::new(seen)),
    }
}

/// Adds the receiver's machine, which is not the sender's (N-10). It was read
/// from listening to stop; what belongs to the window is its `share` of the
/// requests or bytes, as for all that the receiver counts.
fn add_machine(common: &mut Common, share: f64, machine: CpuTime, softnet: SoftnetCounters) {
    let scaled = |ns: u64| (ns as f64 * share) as u64;
    common.machines.push(CpuTime {
        capacity_ns: scaled(machine.capacity_ns),
        busy_ns: scaled(machine.busy_ns),
        user_ns: scaled(machine.user_ns),
        system_ns: scaled(machine.system_ns),
        irq_ns: scaled(machine.irq_ns),
        softirq_ns: scaled(machine.softirq_ns),
        iowait_ns: scaled(machine.iowait_ns),
        steal_ns: scaled(machine.steal_ns),
        idle_ns: scaled(machine.idle_ns),
        busiest_softirq_ns: scaled(machine.busiest_softirq_ns),
    });
    // Drops are not shared out: one that happened is one.
    let total = &mut common.softnet;
    total.processed += scaled(softnet.processed);
    total.dropped += softnet.dropped;
    total.squeezed += softnet.squeezed;
}
