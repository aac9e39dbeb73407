//! `ipip`: a bridge on each node and IP in IP between nodes, as Flannel's `ipip`
//! backend (flannel-io/flannel@067ed7f, `pkg/backend/ipip/ipip.go`): one device
//! `flannel.ipip` with the node's address as its local end and no remote one,
//! the subnet's first address on it, and an on-link route to each remote subnet
//! by that node's own address, which the kernel takes as the outer destination.
//! The MTU is the underlay's less 20 bytes. IPv4 only. Not modelled: the option
//! `DirectRouting`, with which nodes of one segment use no tunnel.

use std::net::Ipv4Addr;

use plumbline_experiment::Family;
use plumbline_sys::netlink::{LinkSpec, TunnelEnds};

use super::{About, Builtin, WireFormat, bridge};
use crate::need::{Need, PROBE, VETH, ends};
use crate::{Hop, Journal, LabError, Topology};

/// IPv4 in IPv4.
pub(super) static IPIP: Need = Need::module("CONFIG_NET_IPIP", "ipip", |bench| {
    bench.device(LinkSpec::ip_in_ip(PROBE, ends(Ipv4Addr::LOCALHOST)))
});

pub(super) static NETWORK: Builtin = About {
    name: "ipip",
    aliases: &["flannel-ipip"],
    summary: "a bridge on each node, IP in IP between nodes",
    needs: &[&VETH, &bridge::DRIVER, &IPIP],
    wire: WireFormat::IpInIp,
    families: &[Family::V4],
    ..About::PLAIN
}
.attached_by(attach);

const DEVICE: &str = "flannel.ipip";
const HEADER_BYTES: u32 = 20;

fn attach(topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
    let addressing = topology.addressing;
    let mtu = topology.mtu - HEADER_BYTES;
    for (own, node) in topology.numbered() {
        let ends = TunnelEnds {
            local: addressing.node(own),
            remote: None,
        };
        let link = LinkSpec::ip_in_ip(DEVICE, ends).mtu(mtu).up();
        let device = journal.link(node, DEVICE, link)?;
        let address = addressing.subnet(own);
        journal.address(node, device, address, addressing.host_prefix())?;
        for remote in topology.remotes(own) {
            let pods = topology.pods_of(remote);
            let route = pods.via(addressing.node(remote)).dev(device).onlink();
            journal.route(node, route)?;
        }
    }
    bridge::attach(topology, journal, mtu)?;
    Ok(bridge::SHAPE.tunnel(DEVICE).hops(topology))
}
