//! Services: addresses that the rules on a node translate into those of receivers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ceiling::{MAX_ALL_ENDPOINTS, MAX_ENDPOINTS, MAX_SERVICES};
use crate::words::words;

/// The services whose rules stand on the nodes of a path.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Services {
    /// How many there are; 0 for none, and then the rest says nothing.
    pub count: u32,
    /// Endpoints of each. All of them are the one receiver, so that only rules differ.
    pub endpoints: u32,
    /// Whose rules they are.
    pub proxy: ServiceProxy,
    /// Which of them the sender asks.
    pub position: ServicePosition,
}

words! {
    /// Whose rules translate the addresses of services, and in which form.
    ServiceProxy {
        /// Those of what the network has. In a lab that is kube-proxy in its iptables mode,
        /// and plans and records name it instead; in a cluster it is whatever it has.
        #[default]
        Own = "own",
        /// Those of kube-proxy in its iptables mode, in the kernel's own tables of iptables.
        IptablesLegacy = "iptables-legacy",
        /// The same in the tables of nftables, as most distributions have iptables now.
        IptablesNft = "iptables-nft",
        /// Those of kube-proxy in its nftables mode.
        Nftables = "nftables",
        /// Those of kube-proxy in its IPVS mode.
        Ipvs = "ipvs",
        /// Those of kube-proxy before 1.26 in its userspace mode, which lead to a program that
        /// carries each connection on by another one.
        Userspace = "userspace",
        /// Those of Cilium at the devices of pods, by eBPF at tc, packet by packet.
        Ebpf = "ebpf",
        /// Those of Cilium at the socket, by eBPF, where a program connects.
        EbpfSocket = "ebpf-socket",
    }
}

words! {
    /// Where among all services the one stands that the sender asks.
    ServicePosition {
        /// Before all others.
        First = "first",
        /// Behind a hundredth of the others.
        P01 = "p01",
        /// In their middle.
        #[default]
        Middle = "middle",
        /// Behind nine tenths of them.
        P90 = "p90",
        /// Behind all but a hundredth.
        P99 = "p99",
        /// Behind all others.
        Last = "last",
        /// Nowhere: the sender asks the receiver itself, and meets the rules all the same.
        None = "none",
    }
}

impl ServiceProxy {
    /// Whether it asks one service after the other, so that it matters where one stands. The
    /// others look services up in a table.
    fn is_ordered(self) -> bool {
        match self {
            Self::Own | Self::IptablesLegacy | Self::IptablesNft | Self::Userspace => true,
            Self::Nftables | Self::Ipvs | Self::Ebpf | Self::EbpfSocket => false,
        }
    }
}

impl Default for Services {
    fn default() -> Self {
        Self {
            count: 0,
            endpoints: 1,
            proxy: ServiceProxy::default(),
            position: ServicePosition::default(),
        }
    }
}

impl Services {
    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        self.count == 0
    }

    /// Whether a plan may have so many.
    pub(crate) fn is_possible(&self) -> bool {
        self.count <= MAX_SERVICES && self.endpoints <= MAX_ENDPOINTS && !self.are_too_many()
    }

    /// Whether their endpoints together are above the ceiling.
    pub(crate) fn are_too_many(&self) -> bool {
        u64::from(self.count) * u64::from(self.endpoints) > MAX_ALL_ENDPOINTS
    }

    /// Position of the asked one among all, from 0; `None` where none is asked.
    pub fn asked(&self) -> Option<u32> {
        let last = self.count.checked_sub(1)?;
        match self.position {
            ServicePosition::First => Some(0),
            ServicePosition::P01 => Some(last / 100),
            ServicePosition::Middle => Some(last / 2),
            ServicePosition::P90 => Some(last - last / 10),
            ServicePosition::P99 => Some(last - last / 100),
            ServicePosition::Last => Some(last),
            ServicePosition::None => None,
        }
    }

    /// The same by this proxy, where they are left to the network's own.
    #[must_use]
    pub(crate) fn by_own(self, own: ServiceProxy) -> Self {
        match self.proxy {
            ServiceProxy::Own if !self.is_none() => Self { proxy: own, ..self },
            _ => self,
        }
    }

    /// Without what says nothing: where there are no services, and which of them is asked where
    /// they have no order.
    #[must_use]
    pub(crate) fn normalised(self) -> Self {
        if self.is_none() {
            Self::default()
        } else if self.proxy.is_ordered() || self.position == ServicePosition::None {
            self
        } else {
            Self {
                position: ServicePosition::default(),
                ..self
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_asked_one_is_among_them() {
        let asked = |count, position| {
            let services = Services {
                count,
                position,
                ..Services::default()
            };
            services.asked()
        };
        let of = |count| {
            let all = ServicePosition::ALL.iter();
            all.map(|position| asked(count, *position))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(0), [None; 7]);
        assert_eq!((&of(1)[..6], of(1)[6]), (&[Some(0); 6][..], None));
        let expected = [0, 10, 500, 900, 990, 1000].map(Some);
        assert_eq!(of(1001)[..6], expected);
    }
}
