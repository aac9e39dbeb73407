//! Network policies: which pods may talk to which, enforced by rules on the nodes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ceiling::{MAX_MEMBERS, MAX_POLICIES};
use crate::words::words;

/// The policies whose rules stand on the nodes of a path. Each allows one port to some
/// peers; one of them allows the path's own traffic, and what none allows is refused.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Policies {
    /// How many there are; 0 for none, and then the rest says nothing.
    pub count: u32,
    /// Which of them allows the traffic.
    pub position: PolicyPosition,
    /// Which pods they select.
    pub selects: Selected,
    /// Peers of each.
    pub members: u32,
    /// How they are named.
    #[serde(default)]
    pub peers: PolicyPeers,
    /// Which way they restrict.
    pub direction: PolicyDirection,
    /// Whose rules they are.
    pub enforcer: Enforcer,
}

words! {
    /// Where among all policies the one stands that allows the traffic.
    PolicyPosition {
        /// Before all others.
        First = "first",
        /// In their middle.
        Middle = "middle",
        /// Behind all others, as is worst in a list.
        #[default]
        Last = "last",
    }
}

words! {
    /// The pods that policies select.
    Selected {
        /// Those at the ends of the path.
        #[default]
        Ours = "ours",
        /// One that stands beside the receiver; nothing restricts the path's own.
        Others = "others",
    }
}

words! {
    /// How policies name their peers, of which some systems make something else each.
    PolicyPeers {
        /// By labels of pods. In a cluster nobody has those of any but the one that allows
        /// the traffic.
        #[default]
        Pods = "pods",
        /// By address (`ipBlock`), but for the other end of the path.
        Addresses = "addresses",
    }
}

words! {
    /// What policies restrict.
    PolicyDirection {
        /// What comes to the receiver, on its node.
        #[default]
        Ingress = "ingress",
        /// What the sender sends, on its node.
        Egress = "egress",
        /// Both: as many policies at each end.
        Both = "both",
    }
}

words! {
    /// Whose rules enforce policies, and in which form.
    Enforcer {
        /// Those of the network's own system. In a lab they are known by the network, and
        /// plans and records name them instead; in a cluster they are whatever it has.
        #[default]
        Own = "own",
        /// No system's: one verdict map, in which all peers are keys.
        Nft = "nft",
        /// No system's: one list, with a rule for each peer.
        Iptables = "iptables",
        /// Romana 2: three chains and two sets for each policy.
        Romana = "romana",
        /// Romana 1: bits of addresses, by `u32`.
        Romana1 = "romana-1",
        /// kube-router: a chain with two rules for each policy.
        KubeRouter = "kube-router",
        /// Weave's controller of policies: a rule with two sets for each.
        WeaveNpc = "weave-npc",
        /// Calico by iptables, in the kernel's own tables: a chain with a rule and a set for each
        /// policy, in a group.
        CalicoIptables = "calico-iptables",
        /// The same in the tables of nftables, as Calico writes where most distributions have
        /// iptables now.
        CalicoIptablesNft = "calico-iptables-nft",
        /// Calico by nftables: the same chains, found by maps of devices.
        CalicoNftables = "calico-nftables",
        /// Calico by eBPF: a program that grows with the policies.
        CalicoEbpf = "calico-ebpf",
        /// Cilium: entries of eBPF maps, in which a packet is looked up.
        Cilium = "cilium",
    }
}

impl Default for Policies {
    fn default() -> Self {
        Self {
            count: 0,
            position: PolicyPosition::default(),
            selects: Selected::default(),
            members: 1,
            peers: PolicyPeers::default(),
            direction: PolicyDirection::default(),
            enforcer: Enforcer::default(),
        }
    }
}

impl Policies {
    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        self.count == 0
    }

    /// Whether an experiment file may ask for so many.
    pub(crate) fn is_possible(&self) -> bool {
        self.count <= MAX_POLICIES && (1..=MAX_MEMBERS).contains(&self.members)
    }

    /// Position of the one that allows the traffic among all, from 0; `None` where there
    /// are none.
    pub fn allowing(&self) -> Option<u32> {
        let last = self.count.checked_sub(1)?;
        Some(match self.position {
            PolicyPosition::First => 0,
            PolicyPosition::Middle => last / 2,
            PolicyPosition::Last => last,
        })
    }

    /// The same by this enforcer, where they are left to the network's own system.
    #[must_use]
    pub fn by_own(self, own: Enforcer) -> Self {
        match self.enforcer {
            Enforcer::Own if !self.is_none() => Self {
                enforcer: own,
                ..self
            },
            _ => self,
        }
    }

    /// Without what says nothing where there are no policies.
    #[must_use]
    pub(crate) fn normalised(self) -> Self {
        if self.is_none() {
            Self::default()
        } else {
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_allows_is_among_them() {
        let allowing = |count| {
            let at = |position: &PolicyPosition| {
                let policies = Policies {
                    count,
                    position: *position,
                    ..Policies::default()
                };
                policies.allowing()
            };
            PolicyPosition::ALL.iter().map(at).collect::<Vec<_>>()
        };
        assert_eq!(allowing(0), [None; 3]);
        assert_eq!(allowing(1), [Some(0); 3]);
        assert_eq!(allowing(200), [Some(0), Some(99), Some(199)]);
    }

    #[test]
    fn words_are_the_same_in_files_and_in_records() {
        for enforcer in Enforcer::ALL {
            let record = serde_json::to_value(enforcer).unwrap();
            assert_eq!(record, enforcer.as_str());
        }
    }
}
