//! Pods, and the policies that select them.

use std::net::IpAddr;

use plumbline_experiment::Policies;

use crate::addressing::Addressing;

/// The port that policies allow is the receiver's; here are the addresses that they allow.
pub(super) type Peers = Vec<IpAddr>;

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
        let mut peers: Peers = strangers.collect();
        if policies.allowing() == Some(policy) {
            // In the place of the last: as good as any other in a set, the last of a list.
            peers.pop();
            peers.push(far);
        }
        peers
    });
    peers.collect()
}
