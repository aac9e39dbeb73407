//! `gre`: a bridge on each node and GRE between nodes, as a reference for the
//! plain encapsulation (RFC 2784; torvalds/linux@254a142, `net/ipv4/ip_gre.c`):
//! a device for each other node, both ends set, no keys and no checksums, and a
//! route to that node's pods through it. The MTU is the underlay's less what GRE
//! (4 bytes) and the outer IP header (20, 40) take. `kopeio-gre` is what a real
//! system makes of it.

use std::net::{Ipv4Addr, Ipv6Addr};

use plumbline_experiment::Family;
use plumbline_sys::netlink::LinkSpec;

use super::shape::{Shape, TunnelName};
use super::{About, Network, WireFormat, bridge, point};
use crate::error::LabError;
use crate::hop::Hop;
use crate::journal::Journal;
use crate::need::{Need, ScratchNamespace, VETH};
use crate::topology::{Topology, Underlay};

pub(super) struct Gre;

/// IANA's protocol number.
pub(super) const PROTOCOL: u8 = 47;

/// GRE over IPv4.
pub(super) static GRE: Need = Need::module("CONFIG_NET_IPGRE", "ip_gre", |bench| {
    let ends = ScratchNamespace::ends(Ipv4Addr::LOCALHOST);
    bench.device(LinkSpec::gre(ScratchNamespace::NAME, ends, 0))
});

/// GRE over IPv6.
static IP6_GRE: Need = Need::module("CONFIG_IPV6_GRE", "ip6_gre", |bench| {
    let ends = ScratchNamespace::ends(Ipv6Addr::LOCALHOST);
    bench.device(LinkSpec::gre(ScratchNamespace::NAME, ends, 0))
});

static ABOUT: About = About {
    name: "gre",
    aliases: &[],
    summary: "a bridge on each node, GRE between nodes",
    needs: &[&VETH, &bridge::DRIVER, &GRE, &IP6_GRE],
    underlay: Underlay::Wire,
    wire: WireFormat::IpProtocol(PROTOCOL),
    families: Family::BOTH,
    pods: true,
};

const NAME: TunnelName = |_, remote| format!("gre.{remote}");
const GRE_BYTES: u32 = 4;
/// As the inner packet.
const TTL: u8 = 0;

impl Network for Gre {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn attach(&self, topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
        let mtu = topology.mtu - topology.addressing.header_bytes() - GRE_BYTES;
        point::attach(topology, journal, NAME, |name, ends| {
            LinkSpec::gre(name, ends, TTL).mtu(mtu)
        })?;
        bridge::attach(topology, journal, mtu)?;
        let shape = Shape {
            tunnel_to: Some(NAME),
            ..bridge::SHAPE
        };
        Ok(shape.hops(topology))
    }
}
