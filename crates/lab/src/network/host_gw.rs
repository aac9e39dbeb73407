//! `host-gw`: a bridge on each node and a route to each other node's pods
//! through that node's address, as Flannel's `host-gw` backend
//! (flannel-io/flannel, `pkg/backend/hostgw/hostgw.go`@9428fb8 and
//! `pkg/backend/route_network.go`@0f89b8d): one route per remote subnet, its
//! gateway the node's address, out of the external interface, with that
//! interface's MTU. Kopeio's provider `layer2` sets the same routes
//! (kopeio/networking@133dbaf, `pkg/routing/layer2/provider.go`).

use plumbline_experiment::Family;
use plumbline_sys::netlink::RouteSpec;

use super::{About, Network, WireFormat, bridge};
use crate::error::LabError;
use crate::hop::Hop;
use crate::journal::Journal;
use crate::need::VETH;
use crate::topology::{Topology, UPLINK, Underlay};

pub(super) struct HostGw;

static ABOUT: About = About {
    name: "host-gw",
    aliases: &["flannel-host-gw", "kopeio-layer2"],
    summary: "a bridge on each node, routes between nodes, no encapsulation",
    needs: &[&VETH, &bridge::DRIVER],
    underlay: Underlay::Wire,
    wire: WireFormat::Plain,
    families: Family::BOTH,
    pods: true,
};

impl Network for HostGw {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn attach(&self, topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
        bridge::attach(topology, journal, topology.mtu)?;
        let addressing = topology.addressing;
        for (own, node) in topology.numbered() {
            let uplink = node.index(UPLINK)?;
            for remote in topology.remotes(own) {
                let route = RouteSpec::to(addressing.subnet(remote), addressing.subnet_prefix());
                journal.route(node, route.via(addressing.node(remote)).dev(uplink))?;
            }
        }
        Ok(bridge::SHAPE.hops(topology))
    }
}
