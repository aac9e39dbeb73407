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
        /// Those of kube-proxy in its iptables mode, in the kernel's own tables of iptables.
        #[default]
        IptablesLegacy = "iptables-legacy",
        /// The same in the tables of nftables, as most distributions have iptables now.
        IptablesNft = "iptables-nft",
        /// Those of kube-proxy in its nftables mode.
        Nftables = "nftables",
    }
}

words! {
    /// Where among all services the one stands that the sender asks.
    ServicePosition {
        /// Before all others.
        First = "first",
        /// In their middle.
        #[default]
        Middle = "middle",
        /// Behind all others.
        Last = "last",
        /// Nowhere: the sender asks the receiver itself, and meets the rules all the same.
        None = "none",
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
            ServicePosition::Middle => Some(last / 2),
            ServicePosition::Last => Some(last),
            ServicePosition::None => None,
        }
    }

    /// Without what says nothing where there are no services.
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
        assert_eq!(of(0), [None; 4]);
        assert_eq!(of(1), [Some(0), Some(0), Some(0), None]);
        assert_eq!(of(100), [Some(0), Some(49), Some(99), None]);
    }
}
