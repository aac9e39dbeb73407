//! `calico-vxlan`: pods are attached as Calico does it (see
//! [`calico`](super::calico)), with VXLAN between nodes (projectcalico/calico;
//! `felix/dataplane/linux/vxlan_mgr.go` and `route_mgr.go`@006d24a: the device,
//! its single address, an on-link route to each remote block through the remote
//! device's address; `felix/vxlanfdb/vxlan_fdb.go`@3bbfaf9: a permanent
//! neighbour and forwarding entry for each remote node;
//! `felix/config/config_params.go`@bbcc9c8: VNI 4096, port 4789;
//! `felix/dataplane/linux/int_dataplane.go`@00157c1: the MTU, on pods too).
//! Nothing is learnt. The device's address is one that Calico's IPAM happens to
//! give it; here it is the first of the block. For IPv6 Calico has a device of
//! its own, `vxlan-v6.calico`; here it has the same name.

use plumbline_experiment::Enforcer;

use super::tunnel::{Tunnel, endpoint_mac, inner_mtu};
use super::{About, Builtin, WireFormat, calico, tunnel};
use crate::need::VETH;
use crate::{Hop, Journal, LabError, Topology};

pub(super) static NETWORK: Builtin = About {
    name: "calico-vxlan",
    summary: "a veth and a host route per pod, VXLAN between nodes, no bridge",
    needs: &[&VETH, &tunnel::VXLAN],
    wire: WireFormat::Udp { port: PORT },
    enforcer: Enforcer::CalicoIptables,
    ..About::PLAIN
}
.attached_by(attach)
.joined_by(|topology, pod, journal| calico::join(topology, pod, journal, inner_mtu(topology)))
.with_room(calico::ROOM);

const PORT: u16 = 4789;
const DEVICE: &str = "vxlan.calico";

fn attach(topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
    let tunnel = Tunnel {
        device: DEVICE,
        vni: 4096,
        port: PORT,
        mtu: inner_mtu(topology),
        mac: endpoint_mac,
        bound: true,
        block: calico::block,
    };
    tunnel.attach(topology, journal)?;
    for node in &topology.nodes {
        calico::default_route(topology, node, journal)?;
    }
    calico::attach(topology, journal, inner_mtu(topology))?;
    Ok(calico::SHAPE.tunnel(DEVICE).hops(topology))
}
