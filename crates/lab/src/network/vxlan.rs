//! `vxlan`: a bridge on each node and a VXLAN device between nodes, as
//! Flannel's `vxlan` backend (flannel-io/flannel, `pkg/backend/vxlan`:
//! `vxlan.go`@957443d, `device.go`@741366a, `vxlan_network.go`@bd2e72e): VNI 1,
//! the kernel's default port 8472, no learning, the subnet's first address on
//! the device, and for each remote subnet a permanent neighbour, a permanent
//! forwarding entry and an on-link route. What it does not set has the kernel's
//! defaults there and here, UDP checksums among them (vishvananda/netlink@7d9b424,
//! `link_linux.go`).
//!
//! The MTU is the underlay's less what the headers take. For IPv6 that is 70
//! bytes; Flannel takes off 50 there too, and names the device `flannel-v6.1`.

use super::bridge;
use super::tunnel::{Tunnel, endpoint_mac, inner_mtu};
use super::{About, Builtin, WireFormat, tunnel};
use crate::need::VETH;
use crate::{Hop, Journal, LabError, Topology};

pub(super) static NETWORK: Builtin = About {
    name: "vxlan",
    aliases: &["flannel", "flannel-vxlan"],
    summary: "a bridge on each node, VXLAN between nodes",
    needs: &[&VETH, &bridge::DRIVER, &tunnel::VXLAN],
    wire: WireFormat::Udp { port: PORT },
    ..About::PLAIN
}
.attached_by(attach)
.joined_by(|topology, pod, journal| {
    bridge::join(bridge::CNI0, topology, pod, journal, inner_mtu(topology))
});

const PORT: u16 = 8472;
const DEVICE: &str = "flannel.1";

fn attach(topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
    let tunnel = Tunnel {
        device: DEVICE,
        vni: 1,
        port: PORT,
        mtu: inner_mtu(topology),
        mac: endpoint_mac,
        bound: true,
        block: Topology::pods_of,
    };
    tunnel.attach(topology, journal)?;
    let shape = bridge::attach(bridge::CNI0, topology, journal, inner_mtu(topology))?;
    Ok(shape.tunnel(DEVICE).hops(topology))
}
