//! `routed`: no bridge and no encapsulation. Pods are attached as Calico does
//! it (see [`calico`](super::calico)), and each node has a route to the other
//! node's block through that node's address, which Calico has from BGP, or sets
//! itself where both nodes are in one subnet (projectcalico/calico,
//! `confd/etc/calico/confd/templates/bird.cfg.template`@efd2a12 and
//! `felix/dataplane/linux/route_mgr.go`@006d24a). Pods have the MTU of the nodes.

use plumbline_experiment::Enforcer;

use super::{About, Builtin, calico};
use crate::need::VETH;
use crate::{Hop, Journal, LabError, Topology};

pub(super) static NETWORK: Builtin = About {
    name: "routed",
    aliases: &["calico", "calico-bgp"],
    summary: "a veth and a host route per pod, routes between nodes, no bridge",
    needs: &[&VETH],
    enforcer: Enforcer::CalicoIptables,
    ..About::PLAIN
}
.attached_by(attach)
.joined_by(|topology, pod, journal| calico::join(topology, pod, journal, topology.mtu))
.with_room(calico::ROOM);

fn attach(topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
    for (own, node) in topology.numbered() {
        calico::default_route(topology, node, journal)?;
        topology.route_to_others(own, node, journal, |remote| calico::block(topology, remote))?;
    }
    calico::attach(topology, journal, topology.mtu)?;
    Ok(calico::SHAPE.hops(topology))
}
