//! `routed`: no bridge and no encapsulation. Pods are attached as Calico does
//! it (see [`calico`](super::calico)), and each node has a route to the other
//! node's block through that node's address, which Calico has from BGP, or sets
//! itself where both nodes are in one subnet (projectcalico/calico,
//! `confd/etc/calico/confd/templates/bird.cfg.template`@efd2a12 and
//! `felix/dataplane/linux/route_mgr.go`@006d24a). Pods have the MTU of the nodes.

use plumbline_experiment::Family;
use plumbline_sys::netlink::RouteSpec;

use super::{About, Network, WireFormat, calico};
use crate::error::LabError;
use crate::hop::Hop;
use crate::journal::Journal;
use crate::need::VETH;
use crate::topology::{Topology, UPLINK, Underlay};

pub(super) struct Routed;

static ABOUT: About = About {
    name: "routed",
    aliases: &["calico", "calico-bgp"],
    summary: "a veth and a host route per pod, routes between nodes, no bridge",
    needs: &[&VETH],
    underlay: Underlay::Wire,
    wire: WireFormat::Plain,
    families: Family::BOTH,
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
