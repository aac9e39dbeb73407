//! One trial: fresh agents, warm-up, measure, drain.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumbline_agent::{FromAgent, LoadOrder, Measured, Served, ToAgent};
use plumbline_experiment::{Protocol, Timing, Treatment, Workload, WorkloadKind};
use plumbline_record::{
    CpuTime, DeviceCounters, GateFailure, IdleSample, Observation, ProcessCpu, ProtocolCounters,
    SoftnetCounters,
};

use crate::agent::{Agent, TrialError};
use crate::receivers::Receivers;
use crate::together::Ticket;
use crate::{Path, PathSnapshot, Settings, TargetError};

/// Longest wait for an agent to start, and for a receiver to listen or to stop.
pub(crate) const ANSWER: Duration = Duration::from_secs(10);

/// What a load may take beyond its phases, to connect and to report.
const SLACK: Duration = Duration::from_secs(20);

/// Runs one treatment once on a path, and gives what was seen and which of
/// the path's own checks failed.
pub(crate) fn run(
    path: &mut dyn Path,
    treatment: &Treatment,
    seed: u64,
    idle: IdleSample,
    settings: &Settings,
    interrupted: &AtomicBool,
) -> Result<(Observation, Vec<GateFailure>), TrialError> {
    let alone = None;
    run_among(path, treatment, seed, idle, settings, interrupted, alone)
}

/// As [`run`], but the load starts together with that of others, if there are
/// any. Who fails before lets the others go on without it.
pub(crate) fn run_among(
    path: &mut dyn Path,
    treatment: &Treatment,
    seed: u64,
    idle: IdleSample,
    settings: &Settings,
    interrupted: &AtomicBool,
    others: Option<Ticket<'_>>,
) -> Result<(Observation, Vec<GateFailure>), TrialError> {
    let before = path.snapshot()?;
    let mut receivers = Receivers::start(path)?;
    let mut client = Agent::start(path.client())?;
    receivers.greet(interrupted)?;
    client.greet(ANSWER, interrupted)?;

    let target = receivers.listen(path, treatment, settings, interrupted)?;
    if let Some(ticket) = others {
        ticket.wait_for_all(interrupted, || {
            let mut agents = receivers.agents();
            agents.push(&mut client);
            agents.into_iter().try_for_each(Agent::still_works)
        })?;
    }
    let measured = load(
        &mut client,
        &mut receivers,
        target,
        treatment,
        seed,
        settings,
        interrupted,
    )?;
    let served = receivers.stop(interrupted)?;
    client.end()?;
    receivers.end()?;

    let after = path.snapshot()?;
    let least = least_packets(&treatment.workload, &served);
    let wrong = path.check_path(&before, &after, least);
    let gates = wrong
        .map(|detail| GateFailure::WrongPath { detail })
        .into_iter()
        .collect();
    let server_machine = path.is_on_two_machines().then_some(served.machine);
    let server_softnet = served.softnet;
    let mut seen = observation(*measured, *served, &before, &after, idle);
    if let Some(machine) = server_machine {
        add_machine(&mut seen, machine, server_softnet);
    }
    Ok((seen, gates))
}

/// Sends a few requests over a path, to see that it leads to the receiver
/// before anything is measured on it. Where there are several receivers, enough
/// connections are made that hardly one of them is left out.
///
/// # Errors
///
/// What the agents say: refused, timed out, not answered.
pub fn reach(
    path: &mut dyn Path,
    treatment: &Treatment,
    interrupted: &AtomicBool,
) -> Result<(), TargetError> {
    let connections = match path.further_servers().len() as u32 {
        0 => 1,
        further => 8 * (further + 1),
    };
    let tried = Treatment {
        workload: Workload {
            connections,
            ..Workload::of_kind(WorkloadKind::Rr)
        },
        timing: Timing {
            warm_up_ns: 0,
            measure_ns: 20_000_000,
            drain_ns: 1_000_000_000,
        },
        ..treatment.clone()
    };
    let settings = Settings::anywhere();
    let idle = IdleSample::default();
    match run(path, &tried, 1, idle, &settings, interrupted) {
        Ok((seen, _)) if seen.load.completed > 0 => Ok(()),
        Ok(_) => Err(TargetError::Failed("no request was answered".to_owned())),
        Err(TrialError::Target(error)) => Err(error),
        Err(error) => Err(TargetError::Failed(error.to_string())),
    }
}

fn load(
    client: &mut Agent,
    receivers: &mut Receivers,
    target: SocketAddr,
    treatment: &Treatment,
    seed: u64,
    settings: &Settings,
    interrupted: &AtomicBool,
) -> Result<Box<Measured>, TrialError> {
    let timing = treatment.timing;
    client.send(&ToAgent::Load(LoadOrder {
        workload: treatment.workload.clone(),
        target,
        timing,
        seed,
        cpus: settings.cpus.client.clone(),
    }))?;
    let phases = Duration::from_nanos(timing.warm_up_ns + timing.measure_ns + timing.drain_ns);
    match client.receive(phases + SLACK, interrupted, &mut receivers.agents())? {
        FromAgent::Loaded(measured) => Ok(measured),
        other => Err(client.unexpected(&other)),
    }
}

/// The fewest packets that can have carried what the receiver saw: proof
/// against a path that was short-circuited, not a count. On a connection
/// that stays open TCP may put several small requests into one segment, and a
/// super-packet may hold 192 KB (BIG TCP, N-2); UDP may be merged by GRO.
fn least_packets(workload: &Workload, served: &Served) -> u64 {
    let serve = &served.serve;
    match (workload.kind, workload.protocol) {
        (WorkloadKind::Stream, _) => serve.bytes_received / (192 << 10),
        (WorkloadKind::Datagram, _) => serve.datagrams.map_or(0, |d| d.received) / 64,
        (WorkloadKind::Rr, Protocol::Udp) => serve.requests / 64,
        (WorkloadKind::Crr, _) => serve.requests,
        (WorkloadKind::Http, _) if !workload.keep_alive => serve.requests,
        (WorkloadKind::Rr | WorkloadKind::Http, _) => serve.requests / 16,
    }
}

fn observation(
    measured: Measured,
    served: Served,
    before: &PathSnapshot,
    after: &PathSnapshot,
    idle: IdleSample,
) -> Observation {
    Observation {
        load: measured.load,
        serve: served.serve,
        machines: vec![measured.machine],
        server_cpu: served.cpu,
        forwarders_cpu: ProcessCpu {
            user_ns: after
                .forwarders
                .user_ns
                .saturating_sub(before.forwarders.user_ns),
            system_ns: after
                .forwarders
                .system_ns
                .saturating_sub(before.forwarders.system_ns),
        },
        companions_cpu: ProcessCpu::default(),
        devices: devices_between(before, after),
        protocols: protocols_between(before, after)
            .unwrap_or_else(|| vec![measured.protocol, served.protocol]),
        softnet: measured.softnet,
        idle,
    }
}

/// Adds the receiver's machine, which is not the sender's (N-10). It was read
/// from listening to stop; what belongs to the window is its share of the
/// requests or bytes, as for all that the receiver counts.
fn add_machine(observation: &mut Observation, machine: CpuTime, softnet: SoftnetCounters) {
    let share = observation.window_share().unwrap_or(1.0);
    let scaled = |ns: u64| (ns as f64 * share) as u64;
    observation.machines.push(CpuTime {
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
    let total = &mut observation.softnet;
    total.processed += scaled(softnet.processed);
    total.dropped += softnet.dropped;
    total.squeezed += softnet.squeezed;
}

fn devices_between(before: &PathSnapshot, after: &PathSnapshot) -> Vec<DeviceCounters> {
    let since = |late: &DeviceCounters| {
        let same = |early: &&DeviceCounters| {
            early.namespace == late.namespace && early.device == late.device
        };
        late.since(
            &before
                .devices
                .iter()
                .find(same)
                .cloned()
                .unwrap_or_default(),
        )
    };
    after.devices.iter().map(since).collect()
}

/// `None` when the target cannot look into the path's namespaces: then the
/// agents' own are all there is.
fn protocols_between(before: &PathSnapshot, after: &PathSnapshot) -> Option<Vec<ProtocolCounters>> {
    let since = |late: &ProtocolCounters| {
        let same = |early: &&ProtocolCounters| early.namespace == late.namespace;
        late.since(
            &before
                .protocols
                .iter()
                .find(same)
                .cloned()
                .unwrap_or_default(),
        )
    };
    (!after.protocols.is_empty()).then(|| after.protocols.iter().map(since).collect())
}
