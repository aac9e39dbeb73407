//! `calico-ipip`: pods are attached as Calico does it (see
//! [`calico`](super::calico)), with IP in IP between nodes
//! (projectcalico/calico; `felix/dataplane/linux/ipip_mgr.go` and
//! `route_mgr.go`@006d24a, `int_dataplane.go`@00157c1,
//! `dataplanedefs/dataplane_defs.go`@04df062): the module's own device `tunl0`,
//! with a single address and neither end set, and an on-link route to each
//! remote block by that node's own address. The MTU is the underlay's less 20
//! bytes, on pods too. IPv4 only. Where the module makes no `tunl0` in a
//! namespace (sysctl `net.core.fb_tunnels_only_for_init_net`), one of that name
//! is made. Not modelled: `CrossSubnet`, with which nodes of one subnet use no
//! tunnel; the route that drops what is for an unused address of the own block.

use plumbline_experiment::{Enforcer, Family};
use plumbline_sys::netlink::LinkSpec;

use super::{About, Builtin, WireFormat, calico, ipip};
use crate::need::VETH;
use crate::{Hop, Journal, LabError, Topology};

pub(super) static NETWORK: Builtin = About {
    name: "calico-ipip",
    summary: "a veth and a host route per pod, IP in IP between nodes, no bridge",
    needs: &[&VETH, &ipip::IPIP],
    wire: WireFormat::IpInIp,
    families: &[Family::V4],
    enforcer: Enforcer::CalicoIptables,
    ..About::PLAIN
}
.attached_by(attach)
.joined_by(|topology, pod, journal| {
    calico::join(topology, pod, journal, topology.mtu - ipip::HEADER_BYTES)
})
.with_room(calico::ROOM);

const DEVICE: &str = "tunl0";

fn attach(topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
    let mtu = topology.mtu - ipip::HEADER_BYTES;
    for (own, node) in topology.numbered() {
        let device = journal.adopt(node, DEVICE, LinkSpec::any_ip_in_ip(DEVICE), mtu)?;
        ipip::lead_to_others(topology, own, node, device, calico::block, journal)?;
        calico::default_route(topology, node, journal)?;
    }
    calico::attach(topology, journal, mtu)?;
    Ok(calico::SHAPE.tunnel(DEVICE).hops(topology))
}
