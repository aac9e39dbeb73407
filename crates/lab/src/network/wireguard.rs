//! `wireguard`: a bridge on each node and WireGuard between nodes, as Flannel's
//! `wireguard` backend (flannel-io/flannel@067ed7f,
//! `pkg/backend/wireguard/wireguard.go` and `device.go`; @0f89b8d,
//! `wireguard_network.go`): a device `flannel-wg` that listens on port 51820,
//! the subnet's first address on it, a route to the whole pod network through
//! it, and a peer for each remote node with that node's subnet as what it may
//! send. The MTU is the underlay's less 80 bytes for either IP version. Keys are
//! drawn anew for each lab. For IPv6 Flannel has a second device,
//! `flannel-wg-v6`, on port 51821; here it has the same name and port.

use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;

use plumbline_sys::netlink::{LinkSpec, RouteSpec, Wireguard, WireguardKey, WireguardPeer};

use super::{About, Builtin, WireFormat, bridge};
use crate::need::{Need, PROBE, VETH};
use crate::{Hop, Journal, LabError, Topology};

/// WireGuard devices. User-mode Linux is packaged without them.
static WIREGUARD: Need = Need::other(
    "needs CONFIG_WIREGUARD; try `modprobe wireguard`, or a kernel that has it",
    |bench| bench.device(LinkSpec::wireguard(PROBE)),
);

pub(super) static NETWORK: Builtin = About {
    name: "wireguard",
    aliases: &["flannel-wireguard"],
    summary: "a bridge on each node, WireGuard between nodes",
    needs: &[&VETH, &bridge::DRIVER, &WIREGUARD],
    wire: WireFormat::Udp { port: PORT },
    ..About::PLAIN
}
.attached_by(attach)
.joined_by(bridge::join_cni0::<OVERHEAD_BYTES>);

const DEVICE: &str = "flannel-wg";
const PORT: u16 = 51820;
const OVERHEAD_BYTES: u32 = 80;

fn attach(topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
    let addressing = topology.addressing;
    let mtu = topology.mtu - OVERHEAD_BYTES;
    let mut ends = Vec::new();
    for (own, node) in topology.numbered() {
        let device = journal.link(node, DEVICE, LinkSpec::wireguard(DEVICE).mtu(mtu))?;
        let opened = node.namespace.run(Wireguard::open)?;
        let control = opened.map_err(|error| node.failed(error))?;
        let public = control
            .set_key(DEVICE, &private_key()?, PORT)
            .map_err(|error| node.failed(error))?;
        let address = addressing.subnet(own);
        journal.address(node, device, address, addressing.host_prefix())?;
        node.bring_up(DEVICE)?;
        let all = RouteSpec::to(addressing.cluster(), addressing.cluster_prefix());
        journal.add(node, all.dev(device))?;
        ends.push((own, node, control, public));
    }
    for (own, node, control, _) in &ends {
        for (remote, _, _, key) in ends.iter().filter(|end| end.0 != *own) {
            let peer = WireguardPeer {
                key: *key,
                endpoint: SocketAddr::new(addressing.node(*remote), PORT),
                allowed: (addressing.subnet(*remote), addressing.subnet_prefix()),
            };
            control
                .add_peer(DEVICE, &peer)
                .map_err(|error| node.failed(error))?;
        }
    }
    let shape = bridge::attach(bridge::CNI0, topology, journal, mtu)?;
    Ok(shape.tunnel(DEVICE).hops(topology))
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
