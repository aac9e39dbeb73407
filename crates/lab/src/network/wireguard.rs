//! `wireguard`: a bridge on each node and WireGuard between nodes, as Flannel's
//! `wireguard` backend (flannel-io/flannel@067ed7f,
//! `pkg/backend/wireguard/wireguard.go` and `device.go`; @0f89b8d,
//! `wireguard_network.go`): a device `flannel-wg` that listens on port 51820,
//! the subnet's first address on it, a route to the whole pod network through
//! it, and a peer for each remote node with that node's subnet as what it may
//! send. The MTU is the underlay's less 80 bytes for either IP version. Keys are
//! drawn anew for each lab. For IPv6 Flannel has a second device,
//! `flannel-wg-v6`, on port 51821; here it has the same name and port.

use plumbline_sys::netlink::RouteSpec;

use super::{About, Builtin, WireFormat, bridge};
use crate::need::VETH;
use crate::wireguard::{WIREGUARD, WireguardMesh};
use crate::{Hop, Journal, LabError, Topology};

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
    let mesh = WireguardMesh {
        device: DEVICE,
        port: PORT,
        mtu,
    };
    let devices = mesh.lay_on(topology, journal)?;
    for (node, device) in topology.nodes.iter().zip(devices) {
        let all = RouteSpec::to(addressing.cluster(), addressing.cluster_prefix());
        journal.add(node, all.dev(device))?;
    }
    let shape = bridge::attach(bridge::CNI0, topology, journal, mtu)?;
    Ok(shape.tunnel(DEVICE).hops(topology))
}
