//! WireGuard between the nodes of a lab: a device on each, and on it a peer for each other
//! node, with that node's subnet as what it may send. Keys are drawn anew for each lab.

use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;

use plumbline_sys::netlink::{LinkSpec, Wireguard, WireguardKey, WireguardPeer};

use crate::error::LabError;
use crate::journal::Journal;
use crate::need::{Need, PROBE};
use crate::topology::Topology;

/// WireGuard devices. User-mode Linux is packaged without them.
pub(crate) static WIREGUARD: Need = Need::other(
    "needs CONFIG_WIREGUARD; try `modprobe wireguard`, or a kernel that has it",
    |bench| bench.device(LinkSpec::wireguard(PROBE)),
);

/// The devices of a network.
pub(crate) struct WireguardMesh {
    /// What each is called on its node.
    pub(crate) device: &'static str,
    /// UDP port that each listens on.
    pub(crate) port: u16,
    /// Bytes.
    pub(crate) mtu: u32,
}

impl WireguardMesh {
    /// Gives each node its device, up and with the subnet's first address; gives their
    /// indexes, in the order of the nodes.
    pub(crate) fn lay_on(
        &self,
        topology: &Topology,
        journal: &mut Journal,
    ) -> Result<Vec<u32>, LabError> {
        let addressing = topology.addressing;
        let name = self.device;
        let mut devices = Vec::new();
        let mut ends = Vec::new();
        for (own, node) in topology.numbered() {
            let device = journal.link(node, name, LinkSpec::wireguard(name).mtu(self.mtu))?;
            let opened = node.namespace.run(Wireguard::open)?;
            let control = opened.map_err(|error| node.failed(error))?;
            let public = control
                .set_key(name, &private_key()?, self.port)
                .map_err(|error| node.failed(error))?;
            let address = addressing.subnet(own);
            journal.address(node, device, address, addressing.host_prefix())?;
            node.bring_up(name)?;
            devices.push(device);
            ends.push((own, node, control, public));
        }
        for (own, node, control, _) in &ends {
            for (remote, _, _, key) in ends.iter().filter(|end| end.0 != *own) {
                let peer = WireguardPeer {
                    key: *key,
                    endpoint: SocketAddr::new(addressing.node(*remote), self.port),
                    allowed: (addressing.subnet(*remote), addressing.subnet_prefix()),
                };
                control
                    .add_peer(name, &peer)
                    .map_err(|error| node.failed(error))?;
            }
        }
        Ok(devices)
    }
}

/// No random numbers for a key.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw a key: {0}; is /dev/urandom there?")]
struct RandomError(#[source] std::io::Error);

/// Any 32 bytes are a private key: the kernel sets the bits that are fixed.
fn private_key() -> Result<WireguardKey, LabError> {
    let mut key = WireguardKey::default();
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut key));
    read.map(|()| key)
        .map_err(|source| LabError::network(RandomError(source)))
}
