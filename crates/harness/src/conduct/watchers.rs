//! The machines under treatments that take turns, and the agents that watch them.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use plumbline_experiment::Slice;
use plumbline_protocol::{FromAgent, ToAgent, WatchOrder, Watched};
use plumbline_record::{Common, IdleSample};

use crate::agent::{ANSWER, Agent, TrialError};
use crate::error::TargetError;
use crate::path::Path;
use crate::together::{Ticket, joined};

/// What watching may take beyond the slices, to wait for their start and to report.
const SLACK: Duration = Duration::from_secs(10);

/// An agent beside the senders, and one beside the receivers where these are on another
/// machine.
pub(super) struct Watchers {
    client: Agent,
    server: Option<Agent>,
}

/// What they saw.
pub(super) struct WatchedMachines {
    client: Watched,
    server: Option<Watched>,
    /// How much earlier or later the slices may have been on the receivers' machine,
    /// nanoseconds.
    pub(super) receiver_error_ns: Option<u64>,
}

impl Watchers {
    /// For the paths of some treatments that take turns.
    pub(super) fn start<'a>(
        paths: impl Iterator<Item = &'a dyn Path> + Clone,
    ) -> Result<Self, TrialError> {
        let Some(first) = paths.clone().next() else {
            let nothing = "none of the treatments that take turns has a path";
            return Err(TargetError::Failed(nothing.to_owned()).into());
        };
        let mut apart = paths.filter(|path| path.is_on_two_machines());
        let server = apart.next().map(|path| Agent::start(path.server()));
        Ok(Self {
            client: Agent::start(first.client())?,
            server: server.transpose()?,
        })
    }

    /// Watches the slices of all members, the last of whom does not send.
    pub(super) fn watch(
        mut self,
        members: &[Vec<Slice>],
        ticket: Ticket<'_>,
        interrupted: &AtomicBool,
    ) -> Result<WatchedMachines, TrialError> {
        self.tell_clocks(&ticket, interrupted)?;
        let gathered = ticket.wait_for_all(interrupted, || {
            let agents = self.server.iter_mut().chain([&mut self.client]);
            agents.into_iter().try_for_each(Agent::still_works)
        })?;
        let beginning = gathered.begin()?;
        let order = |start_ns, all| WatchOrder {
            start_ns,
            members: members.to_vec(),
            all,
        };
        let receiver = self.server.as_mut().zip(beginning.receiver);
        let (client, server) = thread::scope(|scope| {
            let server = receiver.map(|(agent, receiver)| {
                let order = order(receiver.start_ns, true);
                scope.spawn(move || watched(agent, order, interrupted))
            });
            let order = order(beginning.sender_ns, false);
            let client = watched(&mut self.client, order, interrupted);
            (client, server.map(joined))
        });
        let (client, server) = (client?, server.transpose()?);
        self.client.end()?;
        self.server.map_or(Ok(()), Agent::end)?;
        Ok(WatchedMachines {
            client,
            server,
            receiver_error_ns: beginning.receiver.map(|it| it.error_ns),
        })
    }

    fn tell_clocks(
        &mut self,
        ticket: &Ticket<'_>,
        interrupted: &AtomicBool,
    ) -> Result<(), TrialError> {
        self.client.greet(ANSWER, interrupted)?;
        let client = self.client.clock(interrupted)?;
        ticket.tell(|clocks| clocks.senders.push(client));
        if let Some(agent) = &mut self.server {
            agent.greet(ANSWER, interrupted)?;
            let server = agent.clock(interrupted)?;
            ticket.tell(|clocks| clocks.receivers.push(server));
        }
        Ok(())
    }
}

fn watched(
    agent: &mut Agent,
    order: WatchOrder,
    interrupted: &AtomicBool,
) -> Result<Watched, TrialError> {
    let last = order.members.iter().filter_map(|slices| slices.last());
    let length_ns = last.map(|slice| slice.end_ns).max().unwrap_or_default();
    agent.send(&ToAgent::Watch(order))?;
    let limit = Duration::from_nanos(length_ns) + SLACK;
    match agent.receive(limit, interrupted, &mut [])? {
        FromAgent::Watched(watched) => Ok(*watched),
        other => Err(agent.unexpected(&other)),
    }
}

impl WatchedMachines {
    /// Adds what was seen in the slices of one member, by number, to what its agents
    /// saw.
    pub(super) fn complete(&self, number: usize, on_two_machines: bool, common: &mut Common) {
        let idle = self.client.idle.as_ref().and_then(|all| all.get(number));
        if let (Some(idle), [machine]) = (idle, &mut common.machines[..]) {
            idle.correct(machine);
        }
        common.idle = self.client.rest;
        let Some(server) = self.server.as_ref().filter(|_| on_two_machines) else {
            return;
        };
        common.idle = IdleSample {
            busy_ns: self.client.rest.busy_ns + server.rest.busy_ns,
            capacity_ns: self.client.rest.capacity_ns + server.rest.capacity_ns,
        };
        let gains = server.members.get(number).copied().unwrap_or_default();
        common.machines.push(gains.machine);
        common.softnet.processed += gains.softnet.processed;
        common.softnet.dropped += gains.softnet.dropped;
        common.softnet.squeezed += gains.softnet.squeezed;
        let ours_ns = common.ksoftirqd_ns.unwrap_or_default();
        common.ksoftirqd_ns = Some(ours_ns + gains.ksoftirqd_ns);
    }
}
