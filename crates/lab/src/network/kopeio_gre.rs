//! `kopeio-gre`: Kopeio's provider `gre` (kopeio/networking@218b112,
//! `pkg/routing/gre/provider.go`): a device for each other node, named after that
//! node's subnet, with both ends and TTL 255, and a route to the subnet through
//! it, without a gateway. Its MTU is the kernel's choice, the underlay's less 24
//! bytes, while pods, attached by the CNI plugin `bridge`, keep the full MTU, as
//! in [`kopeio_vxlan`](super::kopeio_vxlan). IPv4 only. One published version
//! (@05083f6, `cmd/networking-agent/main.go`) has the provider switched off.

use plumbline_experiment::Family;
use plumbline_sys::netlink::LinkSpec;

use super::kopeio_vxlan::BRIDGE;
use super::shape::TunnelName;
use super::{About, Builtin, WireFormat, bridge, gre, point};
use crate::need::VETH;
use crate::{Hop, Journal, LabError, Topology};

pub(super) static NETWORK: Builtin = About {
    name: "kopeio-gre",
    summary: "a bridge on each node, GRE between nodes, full MTU in the pods",
    needs: &[&VETH, &bridge::DRIVER, &gre::GRE],
    wire: WireFormat::IpProtocol(gre::PROTOCOL),
    families: &[Family::V4],
    ..About::PLAIN
}
.attached_by(attach)
.joined_by(|topology, pod, journal| bridge::join(BRIDGE, topology, pod, journal, topology.mtu));

const TTL: u8 = 255;
const NAME: TunnelName = |addressing, remote| {
    let [a, b, c, d] = addressing.subnet_v4(remote).octets();
    format!("k8s-{a:02x}-{b:02x}-{c:02x}-{d:02x}")
};

fn attach(topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
    point::attach(topology, journal, NAME, |name, ends| {
        LinkSpec::gre(name, ends, TTL)
    })?;
    let shape = bridge::attach(BRIDGE, topology, journal, topology.mtu)?;
    Ok(shape.tunnel_to(NAME).hops(topology))
}
