//! A policy on the path while a command runs: connections that it forbids are tried.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use plumbline_experiment::Protocol;
use plumbline_protocol::Probed;
use plumbline_record::{GateFailure, SurviveObservation};

use crate::agent::{Agent, TrialError};
use crate::error::TargetError;
use crate::exercise::probing::{ProbingAgents, SETTLES, STEADY};
use crate::path::{Path, StandingPolicy};
use crate::settings::Settings;

/// Receivers that listen for TCP beside that of what is forbidden.
const BESIDE: u16 = 2;

/// A policy that stands, and connections that it forbids.
pub(super) struct ForbiddenFlow<'a> {
    agents: ProbingAgents<'a>,
    /// It goes with this.
    _policy: Box<dyn StandingPolicy + 'a>,
}

impl<'a> ForbiddenFlow<'a> {
    /// Makes a policy that lets the sender send to these ports only, and waits until it acts.
    /// `others` hear meanwhile that the controller lives.
    pub(super) fn start(
        path: &'a dyn Path,
        (rate, allowed): (f64, &[(Protocol, SocketAddr)]),
        (settings, interrupted): (&'a Settings, &'a AtomicBool),
        others: &mut [&mut Agent],
    ) -> Result<Self, TrialError> {
        let agents = ProbingAgents::start(path, (rate, BESIDE), settings, interrupted)?;
        let policy = path.confine(allowed)?;
        let mut flow = Self {
            agents,
            _policy: policy,
        };
        flow.settle(others)?;
        Ok(flow)
    }

    fn settle(&mut self, others: &mut [&mut Agent]) -> Result<(), TrialError> {
        let (since, target) = (Instant::now(), self.agents.listening);
        loop {
            let series = self.agents.probe(target, STEADY, others)?.series;
            let opened = series.opened();
            if opened == 0 {
                return Ok(());
            }
            if since.elapsed() > SETTLES {
                return Err(TargetError::Failed(format!(
                    "{opened} of {} connections that a policy forbids got through {} s after it was \
                     made; does the network enforce policies?",
                    series.sent,
                    SETTLES.as_secs(),
                ))
                .into());
            }
        }
    }

    /// All agents, to be told that the controller lives.
    pub(super) fn agents(&mut self) -> Vec<&mut Agent> {
        self.agents.agents()
    }

    /// Begins to try, for so long unless stopped before.
    pub(super) fn begin(&mut self, longest: Duration) -> Result<(), TrialError> {
        self.agents.begin(self.agents.listening, longest)
    }

    pub(super) fn stop(&mut self) -> Result<Box<Probed>, TrialError> {
        self.agents.stop()
    }

    pub(super) fn end(self) -> Result<(), TrialError> {
        self.agents.end().map(drop)
    }
}

/// A policy that did not act before the command says nothing of it.
pub(super) fn unenforced(seen: &SurviveObservation) -> Option<GateFailure> {
    let opened = seen.opened_before();
    (opened > 0).then(|| GateFailure::NotEnforced {
        detail: format!(
            "{opened} connections that the policy forbids got through before the command"
        ),
    })
}
