//! `ipip`: a bridge on each node and IP in IP between nodes, as Flannel's `ipip`
//! backend (flannel-io/flannel@067ed7f, `pkg/backend/ipip/ipip.go`): one device
//! `flannel.ipip` with the node's address as its local end and no remote one,
//! the subnet's first address on it, and an on-link route to each remote subnet
//! by that node's own address, which the kernel takes as the outer destination.
//! The MTU is the underlay's less 20 bytes. IPv4 only. Not modelled: the option
//! `DirectRouting`, with which nodes of one segment use no tunnel.

use std::net::Ipv4Addr;

use plumbline_experiment::Family;
use plumbline_sys::netlink::{LinkSpec, RouteSpec, TunnelEnds};

use super::shape::Shape;
use super::{About, Network, WireFormat, bridge};
use crate::error::LabError;
use crate::hop::Hop;
use crate::journal::Journal;
use crate::need::{Need, ScratchNamespace, VETH};
use crate::topology::{Topology, Underlay};

pub(super) struct IpIp;

/// IPv4 in IPv4.
pub(super) static IPIP: Need = Need::module("CONFIG_NET_IPIP", "ipip", |bench| {
    bench.device(LinkSpec::ip_in_ip(
        ScratchNamespace::NAME,
        ScratchNamespace::ends(Ipv4Addr::LOCALHOST),
    ))
});

static ABOUT: About = About {
    name: "ipip",
    aliases: &["flannel-ipip"],
    summary: "a bridge on each node, IP in IP between nodes",
    needs: &[&VETH, &bridge::DRIVER, &IPIP],
    underlay: Underlay::Wire,
    wire: WireFormat::IpInIp,
    families: &[Family::V4],
    pods: true,
};

const DEVICE: &str = "flannel.ipip";
const HEADER_BYTES: u32 = 20;

impl Network for IpIp {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn attach(&self, topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
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
                let pods = RouteSpec::to(addressing.subnet(remote), addressing.subnet_prefix());
                let route = pods.via(addressing.node(remote)).dev(device).onlink();
                journal.route(node, route)?;
            }
        }
        bridge::attach(topology, journal, mtu)?;
        let shape = Shape {
            tunnel: Some(DEVICE),
            ..bridge::SHAPE
        };
        Ok(shape.hops(topology))
    }
}
