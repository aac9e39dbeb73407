//! The agents between which traffic goes on while a command runs.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumbline_experiment::{CongestionControl, Protocol, Workload};
use plumbline_protocol::{EnduredLoad, FromAgent, Probed, Secret, ToAgent};
use plumbline_record::{Common, FlowKind};

use super::forbidden::ForbiddenFlow;
use crate::agent::{ANSWER, Agent, TrialError};
use crate::clock::ClockAnswer;
use crate::path::Path;
use crate::receivers::Receivers;
use crate::settings::Settings;

/// The two ends of one kind of traffic.
pub(super) struct TrafficFlow {
    pub(super) kind: FlowKind,
    pub(super) client: Agent,
    pub(super) receivers: Receivers,
}

/// Where the sender of a flow sends to, and what.
pub(super) struct FlowTarget {
    pub(super) workload: Workload,
    pub(super) address: SocketAddr,
    pub(super) secret: Secret,
    /// How its sockets find the rate of the path.
    pub(super) congestion: Option<CongestionControl>,
}

impl FlowTarget {
    /// What a policy has to allow.
    pub(super) fn port(&self) -> (Protocol, SocketAddr) {
        (self.workload.protocol, self.address)
    }
}

/// What all senders saw, and what tried connections that are forbidden.
pub(super) type SeenTraffic = (Vec<(FlowKind, Box<EnduredLoad>)>, Option<Box<Probed>>);

/// All traffic of a trial.
pub(super) struct TrafficFlows<'a> {
    pub(super) all: Vec<TrafficFlow>,
    /// What a policy keeps back, where there is one.
    forbidden: Option<ForbiddenFlow<'a>>,
    interrupted: &'a AtomicBool,
}

impl<'a> TrafficFlows<'a> {
    pub(super) fn start(path: &dyn Path, interrupted: &'a AtomicBool) -> Result<Self, TrialError> {
        let flow = |kind| -> Result<TrafficFlow, TrialError> {
            // Standing connections and new ones are both of TCP.
            let beside = u16::from(kind == FlowKind::New);
            Ok(TrafficFlow {
                kind,
                receivers: Receivers::start_beside(path, beside)?,
                client: Agent::start(path.client())?,
            })
        };
        let mut all = FlowKind::ALL
            .into_iter()
            .map(flow)
            .collect::<Result<Vec<TrafficFlow>, _>>()?;
        for flow in &mut all {
            flow.receivers.greet(interrupted)?;
            flow.client.greet(ANSWER, interrupted)?;
        }
        Ok(Self {
            all,
            forbidden: None,
            interrupted,
        })
    }

    /// Has a policy forbid all but what is sent to these ports, and so many connections in
    /// each second try others.
    pub(super) fn forbid_others(
        &mut self,
        path: &'a dyn Path,
        (rate, allowed): (f64, &[(Protocol, SocketAddr)]),
        settings: &'a Settings,
    ) -> Result<(), TrialError> {
        let means = (settings, self.interrupted);
        let others = &mut self.agents();
        let forbidden = ForbiddenFlow::start(path, (rate, allowed), means, others)?;
        self.forbidden = Some(forbidden);
        Ok(())
    }

    /// Begins to try what is forbidden, if anything is, for so long unless stopped before.
    pub(super) fn try_forbidden(&mut self, longest: Duration) -> Result<(), TrialError> {
        let begin = |it: &mut ForbiddenFlow<'_>| it.begin(longest);
        self.forbidden.as_mut().map_or(Ok(()), begin)
    }

    /// All of them.
    fn agents(&mut self) -> Vec<&mut Agent> {
        let mut agents: Vec<&mut Agent> = Vec::new();
        for flow in &mut self.all {
            agents.extend(flow.receivers.agents());
            agents.push(&mut flow.client);
        }
        if let Some(forbidden) = &mut self.forbidden {
            agents.extend(forbidden.agents());
        }
        agents
    }

    /// Lets some time pass, and tells all agents meanwhile that the controller lives.
    pub(super) fn let_pass(&mut self, length: Duration) -> Result<(), TrialError> {
        let interrupted = self.interrupted;
        Agent::let_pass(length, interrupted, &mut self.agents())
    }

    /// The clock that all senders share, for they are at one site.
    pub(super) fn clock(&mut self) -> Result<ClockAnswer, TrialError> {
        self.all[0].client.clock(self.interrupted)
    }

    /// Stops all senders before the first is waited for, and gives what they saw.
    pub(super) fn stop(&mut self) -> Result<SeenTraffic, TrialError> {
        for flow in &mut self.all {
            flow.client.send(&ToAgent::Stop)?;
        }
        let mut seen = Vec::new();
        for flow in &mut self.all {
            let mut others = flow.receivers.agents();
            match flow.client.receive(ANSWER, self.interrupted, &mut others)? {
                FromAgent::Endured(endured) => seen.push((flow.kind, endured)),
                other => return Err(flow.client.unexpected(&other)),
            }
        }
        let probed = self.forbidden.as_mut().map(ForbiddenFlow::stop);
        Ok((seen, probed.transpose()?))
    }

    pub(super) fn end(self) -> Result<Common, TrialError> {
        self.forbidden.map_or(Ok(()), ForbiddenFlow::end)?;
        let mut common = Common::default();
        for mut flow in self.all {
            let served = flow.receivers.stop(self.interrupted)?;
            common.protocols.push(served.protocol);
            flow.client.end()?;
            flow.receivers.end()?;
        }
        Ok(common)
    }
}
