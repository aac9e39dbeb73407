//! Agents that try connections at equal gaps, whatever becomes of them.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumbline_experiment::{Workload, WorkloadKind};
use plumbline_protocol::{FromAgent, ProbeOrder, Probed, Secret, ToAgent};
use plumbline_record::ProtocolCounters;

use crate::agent::{ANSWER, Agent, TrialError};
use crate::clock::ClockAnswer;
use crate::error::TargetError;
use crate::path::Path;
use crate::receivers::Receivers;
use crate::settings::Settings;

/// How long a connection is waited for. TCP tries again after a second, and what is sent
/// then shows another moment.
const LIMIT: Duration = Duration::from_millis(100);

/// For how long connections have to end alike until that is what stands: what was changed
/// before may act only now, and some systems write once a second.
pub(super) const STEADY: Duration = Duration::from_millis(1_500);

/// Longest wait for that.
pub(super) const SETTLES: Duration = Duration::from_secs(30);

/// What tries connections, and what they lead to.
pub(super) struct ProbingAgents<'a> {
    client: Agent,
    receivers: Receivers,
    /// Where the receiver listens.
    pub(super) listening: SocketAddr,
    rate: f64,
    settings: &'a Settings,
    interrupted: &'a AtomicBool,
}

impl<'a> ProbingAgents<'a> {
    /// Starts them at the ends of a path, for so many connections in each second, and beside
    /// so many receivers that listen for TCP already.
    pub(super) fn start(
        path: &dyn Path,
        (rate, beside): (f64, u16),
        settings: &'a Settings,
        interrupted: &'a AtomicBool,
    ) -> Result<Self, TrialError> {
        let mut receivers = Receivers::start_beside(path, beside)?;
        let mut client = Agent::start(path.client())?;
        receivers.greet(interrupted)?;
        client.greet(ANSWER, interrupted)?;
        let secret = Secret::random().map_err(|error| TargetError::Failed(error.to_string()))?;
        // Connections end as soon as they are open.
        let served = Workload {
            // As many as may be open at the same time, and more.
            connections: (rate * LIMIT.as_secs_f64()).ceil() as u32,
            ..Workload::of_kind(WorkloadKind::Crr)
        };
        let listening = receivers.listen(path, (&served, secret), settings, interrupted)?;
        Ok(Self {
            client,
            receivers,
            listening,
            rate,
            settings,
            interrupted,
        })
    }

    /// All of them, to be told that the controller lives.
    pub(super) fn agents(&mut self) -> Vec<&mut Agent> {
        let mut agents = self.receivers.agents();
        agents.push(&mut self.client);
        agents
    }

    pub(super) fn let_pass(&mut self, length: Duration) -> Result<(), TrialError> {
        let interrupted = self.interrupted;
        Agent::let_pass(length, interrupted, &mut self.agents())
    }

    /// The clock of what tries connections.
    pub(super) fn clock(&mut self) -> Result<ClockAnswer, TrialError> {
        self.client.clock(self.interrupted)
    }

    /// Begins to try connections to an address, for so long unless stopped before.
    pub(super) fn begin(&mut self, target: SocketAddr, length: Duration) -> Result<(), TrialError> {
        self.client.send(&ToAgent::Probe(ProbeOrder {
            target,
            rate: self.rate,
            limit_ns: LIMIT.as_nanos() as u64,
            length_ns: length.as_nanos() as u64,
            cpus: self.settings.cpus.client.clone(),
        }))
    }

    /// Tries connections to an address for so long; `others` hear meanwhile that the
    /// controller lives.
    pub(super) fn probe(
        &mut self,
        target: SocketAddr,
        length: Duration,
        others: &mut [&mut Agent],
    ) -> Result<Box<Probed>, TrialError> {
        self.begin(target, length)?;
        self.probed(length + ANSWER, others)
    }

    /// Ends what was begun, and gives what came of it.
    pub(super) fn stop(&mut self) -> Result<Box<Probed>, TrialError> {
        self.client.send(&ToAgent::Stop)?;
        self.probed(ANSWER, &mut [])
    }

    fn probed(
        &mut self,
        limit: Duration,
        others: &mut [&mut Agent],
    ) -> Result<Box<Probed>, TrialError> {
        let mut all = self.receivers.agents();
        all.extend(others.iter_mut().map(|it| &mut **it));
        match self.client.receive(limit, self.interrupted, &mut all)? {
            FromAgent::Probed(probed) => Ok(probed),
            other => Err(self.client.unexpected(&other)),
        }
    }

    /// Ends all of them; gives what the receiver counted.
    pub(super) fn end(mut self) -> Result<ProtocolCounters, TrialError> {
        let served = self.receivers.stop(self.interrupted)?;
        self.client.end()?;
        self.receivers.end()?;
        Ok(served.protocol)
    }
}
