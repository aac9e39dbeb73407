//! `routed`: no bridge and no encapsulation. Pods are attached as Calico does
//! it (see [`calico`](super::calico)), and each node has a route to the other
//! node's block through that node's address, as Calico's BIRD installs it from
//! BGP within one subnet. Romana programs the same kernel path, a veth with a
//! host route per pod and routes between nodes (romana/core 2.0).

use plumbline_sys::netlink::RouteSpec;

use super::{About, Network, calico};
use crate::error::LabError;
use crate::hop::Hop;
use crate::journal::Journal;
use crate::probe::Need;
use crate::topology::{Topology, UPLINK, Underlay};

pub(super) struct Routed;

static ABOUT: About = About {
    name: "routed",
    aliases: &["calico", "romana"],
    summary: "a veth and a host route per pod, routes between nodes, no bridge",
    needs: &[Need::Veth],
    underlay: Underlay::Wire,
    pods: true,
};

impl Network for Routed {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn attach(&self, topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
        let addressing = topology.addressing;
        for (own, node) in topology.numbered() {
            calico::default_route(topology, node, journal)?;
            let uplink = node.index(UPLINK)?;
            for remote in topology.remotes(own) {
                let (network, prefix) = calico::block(addressing, remote);
                let route = RouteSpec::to(network, prefix).via(addressing.node(remote));
                journal.route(node, route.dev(uplink))?;
            }
        }
        calico::attach(topology, journal, topology.mtu)?;
        Ok(calico::SHAPE.hops(topology))
    }
}
