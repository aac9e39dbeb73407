//! `ipip`: a bridge on each node and IP in IP between nodes, as Flannel's `ipip`
//! backend (flannel-io/flannel@067ed7f, `pkg/backend/ipip/ipip.go`): one device
//! `flannel.ipip` with the node's address as its local end and no remote one,
//! the subnet's first address on it, and an on-link route to each remote subnet
//! by that node's own address, which the kernel takes as the outer destination.
//! The MTU is the underlay's less 20 bytes. IPv4 only. Not modelled: the option
//! `DirectRouting`, with which nodes of one segment use no tunnel.

use std::net::Ipv4Addr;
use std::sync::Arc;

use plumbline_experiment::Family;
use plumbline_sys::netlink::{LinkSpec, RouteSpec, TunnelEnds};

use super::{About, Builtin, WireFormat, bridge};
use crate::need::{Need, PROBE, VETH, ends};
use crate::{Hop, Journal, LabError, Place, Topology};

/// IPv4 in IPv4.
pub(super) static IPIP: Need = Need::module("CONFIG_NET_IPIP", "ipip", |bench| {
    bench.device(LinkSpec::ip_in_ip(PROBE, ends(Ipv4Addr::LOCALHOST)))
})
.that_makes_devices();

pub(super) static NETWORK: Builtin = About {
    name: "ipip",
    aliases: &["flannel-ipip"],
    summary: "a bridge on each node, IP in IP between nodes",
    needs: &[&VETH, &bridge::DRIVER, &IPIP],
    wire: WireFormat::IpInIp,
    families: &[Family::V4],
    ..About::PLAIN
}
.attached_by(attach)
.joined_by(bridge::join_cni0::<HEADER_BYTES>);

const DEVICE: &str = "flannel.ipip";
/// What the outer header takes.
pub(super) const HEADER_BYTES: u32 = 20;

fn attach(topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
    let mtu = topology.mtu - HEADER_BYTES;
    for (own, node) in topology.numbered() {
        let ends = TunnelEnds {
            local: topology.addressing.node(own),
            remote: None,
        };
        let link = LinkSpec::ip_in_ip(DEVICE, ends).mtu(mtu).up();
        let device = journal.link(node, DEVICE, link)?;
        lead_to_others(topology, own, node, device, Topology::pods_of, journal)?;
    }
    let shape = bridge::attach(bridge::CNI0, topology, journal, mtu)?;
    Ok(shape.tunnel(DEVICE).hops(topology))
}

/// Gives the device of node `own` its address, and an on-link route to each other
/// node's pods by that node's own address.
pub(super) fn lead_to_others(
    topology: &Topology,
    own: u8,
    node: &Arc<Place>,
    device: u32,
    to: fn(&Topology, u8) -> RouteSpec,
    journal: &mut Journal,
) -> Result<(), LabError> {
    let addressing = topology.addressing;
    let address = addressing.subnet(own);
    journal.address(node, device, address, addressing.host_prefix())?;
    topology.remotes(own).try_for_each(|remote| {
        let route = to(topology, remote).via(addressing.node(remote));
        journal.add(node, route.dev(device).onlink())
    })
}
