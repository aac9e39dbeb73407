//! What an agent sees of the machine that it is on.

use std::net::IpAddr;

use plumbline_experiment::HttpServer;
use plumbline_record::{
    DeviceCounters, DeviceFingerprint, Fingerprint, NodeRules, ProtocolCounters,
};
use serde::{Deserialize, Serialize};

/// What to look at.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LookOrder {
    /// Addresses whose routes are wanted.
    pub towards: Vec<IpAddr>,
    /// Devices to describe, besides those of the routes.
    pub devices: Vec<String>,
    /// Whether to ask the node's kube-proxy for its mode, which only answers in
    /// the node's own network.
    pub kube_proxy: bool,
}

/// What a machine looks like from one of its namespaces.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sight {
    /// The machine.
    pub fingerprint: Fingerprint,
    /// A random number that every kernel draws at its start: two agents with
    /// the same number run on one kernel. Empty where it is not shown.
    pub boot: String,
    /// CPUs that the agent may run on.
    pub cpus: Vec<usize>,
    /// Addresses of the namespace.
    pub addresses: Vec<LocalAddress>,
    /// The route to each address that was asked for, in that order; `None`
    /// where there is none.
    pub ways: Vec<Option<Way>>,
    /// The devices that were asked for and those of the routes, each once.
    /// Their `namespace` is empty.
    pub devices: Vec<DeviceFingerprint>,
    /// The mode of the node's kube-proxy; `None` where it was not asked for or
    /// none answers.
    pub kube_proxy: Option<String>,
    /// What can answer an HTTP workload here.
    pub servers: Vec<HttpServer>,
}

/// The experiment asks for a server that this machine does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "nginx is not installed: install the package `nginx` on the receiver's machine, or let Plumbline answer with --set workload.server=plumbline"
)]
pub struct MissingServer;

impl Sight {
    /// Checks that the machine has the program that is to answer.
    ///
    /// # Errors
    ///
    /// It has not.
    pub fn check_server(&self, server: HttpServer) -> Result<(), MissingServer> {
        self.servers
            .contains(&server)
            .then_some(())
            .ok_or(MissingServer)
    }
}

/// An address of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalAddress {
    /// Name of the device.
    pub device: String,
    /// The address.
    pub address: IpAddr,
    /// Length of its prefix in bits.
    pub prefix: u8,
}

impl LocalAddress {
    /// Whether another address is on the link of this one, as its prefix says.
    pub fn shares_prefix(&self, other: IpAddr) -> bool {
        let bits = |address: IpAddr| match address {
            IpAddr::V4(it) => (u128::from(it.to_bits()) << 96, 32),
            IpAddr::V6(it) => (it.to_bits(), 128),
        };
        let ((own, length), (other, of_other)) = (bits(self.address), bits(other));
        let prefix = u32::from(self.prefix).min(length);
        length == of_other && (own ^ other).leading_zeros() >= prefix
    }
}

/// How packets to an address leave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    /// Name of the device.
    pub device: String,
    /// Source address that the kernel would choose.
    pub source: Option<IpAddr>,
    /// MTU in bytes of the route, where it has one of its own.
    pub mtu: Option<u32>,
    /// Whom they are given to, where that is not their receiver.
    pub gateway: Option<IpAddr>,
}

/// Running totals of devices and of their namespace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NamespaceCounters {
    /// In the order of the request. Their `namespace` is empty.
    pub devices: Vec<DeviceCounters>,
    /// Of the namespace; its name is empty.
    pub protocol: ProtocolCounters,
    /// The connections that it tracks, and no rules, which take a right to see; its name is
    /// empty. Nothing where they cannot be seen.
    pub tracked: Option<NodeRules>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_the_prefix_of_an_address() {
        let own = |address: &str, prefix| LocalAddress {
            device: "eth0".to_owned(),
            address: address.parse().unwrap(),
            prefix,
        };
        let is_near = |own: LocalAddress, other: &str| own.shares_prefix(other.parse().unwrap());
        assert!(is_near(own("198.18.0.1", 24), "198.18.0.254"));
        assert!(!is_near(own("198.18.0.1", 24), "198.18.1.254"));
        assert!(is_near(own("2001:2::1", 64), "2001:2::2"));
        assert!(!is_near(own("::1", 0), "127.0.0.1"));
    }
}
