//! The peers of launched pods, in the pods that stand.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

use plumbline_harness::{AgentClock, Observer};
use plumbline_protocol::{MeetOrder, MeetingPhase, MetPod};

use super::calls::PluginCalls;
use super::limiter::Waited;
use crate::ClusterError;
use crate::site::PodSite;

/// A pod that stands on one of the nodes, and the agent in it.
#[derive(Clone, Copy)]
pub(crate) struct LaunchEnd<'p> {
    pub(crate) site: &'p PodSite,
    pub(crate) observer: &'p Observer,
}

/// What waits for the packets of launched pods at both ends.
pub(super) struct LaunchPeers<'p> {
    ends: [LaunchEnd<'p>; 2],
    clocks: [AgentClock; 2],
    pub(super) waiting: [SocketAddr; 2],
}

/// What a peer saw of a pod, by this machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SeenPod {
    pub(super) namespace: Option<Instant>,
    pub(super) sandbox: Option<Instant>,
    pub(super) begun: Option<Instant>,
    pub(super) first_out: Option<Instant>,
    pub(super) first_in: Option<Instant>,
    pub(super) answered: Option<Instant>,
}

impl SeenPod {
    fn new(of: &MetPod, clock: AgentClock) -> Self {
        let at = |ns| clock.moment(ns);
        Self {
            namespace: of.namespace_ns.map(at),
            sandbox: of.sandbox_ns.map(at),
            begun: Some(at(of.begun_ns)),
            first_out: Some(at(of.first_out_ns)),
            first_in: of.first_in_ns.map(at),
            answered: of.answered_ns.map(at),
        }
    }
}

impl<'p> LaunchPeers<'p> {
    pub(super) fn begin(ends: [LaunchEnd<'p>; 2], launch: &str) -> Result<Self, ClusterError> {
        let waits = |end: &LaunchEnd<'_>| {
            let order = MeetOrder {
                address: end.site.address,
                launch: launch.to_owned(),
            };
            end.observer.meet(order)
        };
        let [one, other] = &ends;
        Ok(Self {
            ends,
            clocks: [one.observer.clock()?, other.observer.clock()?],
            waiting: [waits(one)?, waits(other)?],
        })
    }

    /// All pods that have come so far, by number.
    pub(super) fn met(&self, next: MeetingPhase) -> Result<BTreeMap<u32, SeenPod>, ClusterError> {
        let mut all = BTreeMap::new();
        for (end, clock) in self.ends.iter().zip(self.clocks) {
            let met = end.observer.met(next)?;
            all.extend(met.iter().map(|it| (it.pod, SeenPod::new(it, clock))));
        }
        Ok(all)
    }

    /// What the nodes have noted so far of the calls of their plugins.
    ///
    /// # Errors
    ///
    /// Why that of one of them cannot be read.
    pub(super) fn calls(&self) -> Result<PluginCalls, String> {
        let mut calls = PluginCalls::default();
        for (end, clock) in self.ends.iter().zip(self.clocks) {
            let site = end.site;
            calls.read(&site.session, &site.pod.node, |ns| clock.moment(ns))?;
        }
        Ok(calls)
    }

    /// What requests have waited in the rate limiters of the network's agents so far.
    pub(super) fn waited(&self) -> Waited {
        let mut waited = Waited::default();
        for end in &self.ends {
            waited.read(&end.site.session, &end.site.pod.node);
        }
        waited
    }

    pub(super) fn error_ns(&self, now: Instant) -> u64 {
        let errors = self.clocks.iter().map(|it| it.error(now).as_nanos() as u64);
        errors.max().unwrap_or_default()
    }
}

impl Drop for LaunchPeers<'_> {
    fn drop(&mut self) {
        // They end with their pods at the latest.
        let _ = self.met(MeetingPhase::Over);
    }
}
