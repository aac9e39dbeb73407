//! `gre`: a bridge on each node and GRE between nodes, as a reference for the
//! plain encapsulation (RFC 2784; torvalds/linux@254a142, `net/ipv4/ip_gre.c`):
//! a device for each other node, both ends set, no keys and no checksums, and a
//! route to that node's pods through it. The MTU is the underlay's less what GRE
//! (4 bytes) and the outer IP header (20, 40) take. `kopeio-gre` is what a real
//! system makes of it.

use std::net::{Ipv4Addr, Ipv6Addr};

use plumbline_sys::netlink::LinkSpec;

use super::shape::TunnelName;
use super::{About, Builtin, WireFormat, bridge, point};
use crate::need::{Need, PROBE, VETH, ends};
use crate::{Hop, Journal, LabError, Topology};

/// IANA's protocol number.
pub(super) const PROTOCOL: u8 = 47;

/// GRE over IPv4.
pub(super) static GRE: Need = Need::module("CONFIG_NET_IPGRE", "ip_gre", |bench| {
    let ends = ends(Ipv4Addr::LOCALHOST);
    bench.device(LinkSpec::gre(PROBE, ends, 0))
})
.that_makes_devices();

/// GRE over IPv6.
static IP6_GRE: Need = Need::module("CONFIG_IPV6_GRE", "ip6_gre", |bench| {
    let ends = ends(Ipv6Addr::LOCALHOST);
    bench.device(LinkSpec::gre(PROBE, ends, 0))
})
.that_makes_devices();

pub(super) static NETWORK: Builtin = About {
    name: "gre",
    summary: "a bridge on each node, GRE between nodes",
    needs: &[&VETH, &bridge::DRIVER, &GRE, &IP6_GRE],
    wire: WireFormat::IpProtocol(PROTOCOL),
    ..About::PLAIN
}
.attached_by(attach)
.joined_by(|topology, pod, journal| {
    bridge::join(bridge::CNI0, topology, pod, journal, mtu(topology))
});

const NAME: TunnelName = |_, remote| format!("gre.{remote}");
const GRE_BYTES: u32 = 4;
/// As the inner packet.
const TTL: u8 = 0;

fn mtu(topology: &Topology) -> u32 {
    topology.mtu - topology.addressing.header_bytes() - GRE_BYTES
}

fn attach(topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
    let mtu = mtu(topology);
    point::attach(topology, journal, NAME, |name, ends| {
        LinkSpec::gre(name, ends, TTL).mtu(mtu)
    })?;
    let shape = bridge::attach(bridge::CNI0, topology, journal, mtu)?;
    Ok(shape.tunnel_to(NAME).hops(topology))
}
