//! Pods, and the policies that select them.

use std::net::IpAddr;

use plumbline_experiment::{Policies, PolicyPeers};

use crate::addressing::Addressing;

/// Whom a policy allows. The port that it allows is the receiver's.
#[derive(Clone, Debug)]
pub(super) struct Peers {
    /// The addresses of all.
    pub(super) all: Vec<IpAddr>,
    /// How many of them, the first ones, it names by address; the others by labels.
    by_address: usize,
}

impl Peers {
    /// All of them named by labels.
    #[cfg(test)]
    pub(super) fn of_labels(all: Vec<IpAddr>) -> Self {
        let by_address = 0;
        Self { all, by_address }
    }

    /// Those that are named by address.
    pub(super) fn by_address(&self) -> &[IpAddr] {
        &self.all[..self.by_address]
    }

    /// Those that are named by labels of their pods.
    pub(super) fn by_labels(&self) -> &[IpAddr] {
        &self.all[self.by_address..]
    }
}

/// A pod of a node, and the policies that select it.
#[derive(Clone, Debug)]
pub(super) struct GuardedPod {
    /// Its address.
    pub(super) address: IpAddr,
    /// The device by which packets are forwarded to it and from it: one of the node, or its
    /// own, where what enforces policies is there.
    pub(super) device: String,
    /// Policies for what comes to it, in their order.
    pub(super) ingress: Vec<Peers>,
    /// Policies for what it sends, in their order.
    pub(super) egress: Vec<Peers>,
}

/// The peers of each policy, in their order: `far`, the other end of the path, belongs
/// to those of one.
pub(super) fn peers(policies: &Policies, far: IpAddr, addressing: Addressing) -> Vec<Peers> {
    let peers = (0..policies.count).map(|policy| {
        let first = policy * policies.members;
        let strangers = (first..first + policies.members).map(|it| addressing.stranger(it));
        let mut all: Vec<IpAddr> = strangers.collect();
        let mut by_address = match policies.peers {
            PolicyPeers::Addresses => all.len(),
            PolicyPeers::Pods => 0,
        };
        if policies.allowing() == Some(policy) {
            // In the place of the last: as good as any other in a set, the last of a list.
            all.pop();
            by_address = by_address.min(all.len());
            all.push(far);
        }
        Peers { all, by_address }
    });
    peers.collect()
}
