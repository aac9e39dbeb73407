//! `aws-vpc`: a bridge on each node, and between the nodes a router that knows
//! each node's pods, as Flannel's `aws-vpc` backend arranges it
//! (flannel-io/flannel@f6d7239, `backend/awsvpc/awsvpc.go`, and @718dfc4,
//! `Documentation/aws-vpc-backend.md`). The backend writes one route per node
//! into the VPC's route table, from the node's subnet to its network interface,
//! and lets that interface carry addresses that are not its own. It makes no
//! device and no route on the node, whose packets to other pods leave by the
//! default route, with the interface's own MTU. It knows IPv4 only; IPv6 is
//! arranged alike here. The router is a namespace that forwards; what a cloud's
//! fabric adds (rate limits, distance, its MTU of 9001) is not modelled, nor
//! that nodes of one VPC subnet reach each other, not their pods, directly.

use super::{About, Builtin, bridge};
use crate::need::VETH;
use crate::{Hop, Journal, LabError, Topology, Underlay};

pub(super) static NETWORK: Builtin = About {
    name: "aws-vpc",
    aliases: &["flannel-aws-vpc"],
    summary: "a bridge on each node, a router between nodes that knows each node's pods",
    needs: &[&VETH, &bridge::DRIVER],
    underlay: Underlay::Router,
    ..About::PLAIN
}
.attached_by(attach)
.joined_by(bridge::join_cni0::<0>);

fn attach(topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
    let shape = bridge::attach(bridge::CNI0, topology, journal, topology.mtu)?;
    let addressing = topology.addressing;
    if let Some(router) = &topology.router {
        for (number, node) in topology.numbered() {
            let port = router.index(&node.name)?;
            let route = topology.pods_of(number);
            let route = route.via(addressing.node(number)).dev(port).onlink();
            journal.add(router, route)?;
        }
    }
    Ok(shape.hops(topology))
}
