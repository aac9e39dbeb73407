//! `host-gw`: a bridge on each node and a route to each other node's pods
//! through that node's address, as Flannel's `host-gw` backend
//! (flannel-io/flannel, `pkg/backend/hostgw/hostgw.go`@9428fb8 and
//! `pkg/backend/route_network.go`@0f89b8d): one route per remote subnet, its
//! gateway the node's address, out of the external interface, with that
//! interface's MTU. Kopeio's provider `layer2` sets the same routes
//! (kopeio/networking@133dbaf, `pkg/routing/layer2/provider.go`).

use super::{About, Builtin, bridge};
use crate::need::VETH;
use crate::{Hop, Journal, LabError, Topology};

pub(super) static NETWORK: Builtin = About {
    name: "host-gw",
    aliases: &["flannel-host-gw", "kopeio-layer2"],
    summary: "a bridge on each node, routes between nodes, no encapsulation",
    needs: &[&VETH, &bridge::DRIVER],
    ..About::PLAIN
}
.attached_by(attach)
.joined_by(bridge::join_cni0::<0>);

fn attach(topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
    let shape = bridge::attach(bridge::CNI0, topology, journal, topology.mtu)?;
    topology.route_between_nodes(journal)?;
    Ok(shape.hops(topology))
}
