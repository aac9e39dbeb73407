//! The addresses of services, and what they stand for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use plumbline_experiment::{Family, Services};

use crate::addressing::Addressing;
use crate::error::LabError;

/// The port of every service.
const SERVICE_PORT: u16 = 80;
/// The port that the receiver listens on.
const RECEIVER_PORT: u16 = 8080;

/// Services and the one receiver behind all of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServiceSet {
    services: Services,
    addressing: Addressing,
    receiver: IpAddr,
}

impl ServiceSet {
    pub(super) fn new(services: Services, addressing: Addressing, receiver: IpAddr) -> Self {
        Self {
            services,
            addressing,
            receiver,
        }
    }

    /// Says what these services need of their proxy.
    pub(super) fn unsupported(&self, needs: impl Into<String>) -> LabError {
        LabError::Unsupported {
            what: format!("services of the proxy {}", self.services.proxy.as_str()),
            needs: needs.into(),
        }
    }

    pub(super) fn family(&self) -> Family {
        self.addressing.family()
    }

    /// How many services there are.
    pub(super) fn count(&self) -> u32 {
        self.services.count
    }

    /// Numbers of the services, from 0.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.services.count
    }

    /// Endpoints of each.
    pub(super) fn endpoints(&self) -> u32 {
        self.services.endpoints
    }

    /// Endpoints of all.
    pub(super) fn all_endpoints(&self) -> u64 {
        u64::from(self.services.count) * u64::from(self.services.endpoints)
    }

    /// Number of the last service; a set has at least one.
    pub(super) fn last(&self) -> u32 {
        self.services.count.saturating_sub(1)
    }

    /// The addresses of services: none that a lab has otherwise. Those that kubeadm takes,
    /// and the largest range that an API server takes for IPv6.
    pub(super) fn range(&self) -> (IpAddr, u8) {
        match self.family() {
            Family::V4 => (Ipv4Addr::new(10, 96, 0, 0).into(), 12),
            Family::V6 => (Ipv6Addr::new(0xfd00, 0x10, 0x96, 0, 0, 0, 0, 0).into(), 108),
        }
    }

    /// Where a service is asked, by its number.
    pub(super) fn service(&self, number: u32) -> SocketAddr {
        let address: IpAddr = match self.range().0 {
            IpAddr::V4(first) => Ipv4Addr::from_bits(first.to_bits() + 1 + number).into(),
            IpAddr::V6(first) => {
                Ipv6Addr::from_bits(first.to_bits() + 1 + u128::from(number)).into()
            }
        };
        (address, SERVICE_PORT).into()
    }

    /// The one that the sender asks; `None` where it asks the receiver itself.
    pub(super) fn asked(&self) -> Option<SocketAddr> {
        self.services.asked().map(|number| self.service(number))
    }

    /// What every endpoint is.
    pub(super) fn receiver(&self) -> SocketAddr {
        (self.receiver, RECEIVER_PORT).into()
    }

    /// The network of all pods, `198.19.0.0/16`.
    pub(super) fn pods(&self) -> String {
        let (network, prefix) = self.pod_network();
        format!("{network}/{prefix}")
    }

    /// The same as its first address and the length of its prefix in bits.
    pub(super) fn pod_network(&self) -> (IpAddr, u8) {
        let addressing = self.addressing;
        (addressing.cluster(), addressing.cluster_prefix())
    }

    /// The address of the first node.
    pub(super) fn node(&self) -> IpAddr {
        self.addressing.node(1)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use plumbline_experiment::ServicePosition;

    use super::*;

    /// The last of these services is asked, and the second node's pod answers.
    pub(crate) fn set(count: u32, endpoints: u32, family: Family) -> ServiceSet {
        let services = Services {
            count,
            endpoints,
            position: ServicePosition::Last,
            ..Services::default()
        };
        let addressing = Addressing::new(family);
        ServiceSet::new(services, addressing, addressing.pod(2, 0))
    }

    #[test]
    fn services_have_addresses_of_their_own() {
        let v4 = set(100_000, 1, Family::V4);
        assert_eq!(v4.service(0).to_string(), "10.96.0.1:80");
        assert_eq!(v4.asked(), Some(v4.service(99_999)));
        assert_eq!(v4.service(99_999).to_string(), "10.97.134.160:80");
        let v6 = set(100_000, 1, Family::V6);
        assert_eq!(v6.service(99_999).to_string(), "[fd00:10:96::1:86a0]:80");
    }
}
