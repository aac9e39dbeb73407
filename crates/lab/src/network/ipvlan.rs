//! `ipvlan-l2`, `ipvlan-l3` and `ipvlan-l3s`: each pod has a device of its own on top of the
//! node's uplink that shares its hardware address, as the CNI plugin `ipvlan`
//! makes it (containernetworking/plugins, `plugins/main/ipvlan/ipvlan.go`,
//! @d385120 for the modes, of which `l2` is its default, and @06ba001: made in
//! the pod under a passing name, with the uplink's MTU unless told otherwise,
//! and announced once by `arp_notify`, which is not modelled). In L2 mode pods
//! resolve each other; in L3 mode the node's routing table decides where packets
//! leave (torvalds/linux@254a142, `Documentation/networking/ipvlan.rst`); in L3S
//! mode it also decides about what comes in, which so passes its netfilter; and
//! the lab gives each node a route to the other node's pods, which the plugin
//! leaves to whoever runs the network.

use plumbline_experiment::Family;
use plumbline_sys::netlink::{IpvlanMode, LinkSpec, RouteSpec};

use super::shape::Shape;
use super::{About, Network, WireFormat};
use crate::error::LabError;
use crate::hop::Hop;
use crate::journal::Journal;
use crate::need::{Need, ScratchNamespace, VETH};
use crate::topology::{Topology, UPLINK, Underlay};

pub(super) struct Ipvlan(pub(super) IpvlanMode);

/// Ipvlan devices.
pub(super) static IPVLAN: Need = Need::module("CONFIG_IPVLAN", "ipvlan", |bench| {
    bench.device(LinkSpec::ipvlan(
        ScratchNamespace::NAME,
        bench.parent,
        IpvlanMode::L2,
    ))
});

/// Ipvlan devices in mode L3S.
static IPVLAN_L3S: Need = Need::module("CONFIG_IPVLAN with CONFIG_IPVLAN_L3S", "ipvlan", |bench| {
    bench.device(LinkSpec::ipvlan(
        ScratchNamespace::NAME,
        bench.parent,
        IpvlanMode::L3s,
    ))
});

static L2: About = About {
    name: "ipvlan-l2",
    aliases: &["ipvlan"],
    summary: "an ipvlan device per pod on the node's uplink, switched by address",
    needs: &[&VETH, &IPVLAN],
    underlay: Underlay::Wire,
    wire: WireFormat::Plain,
    families: Family::BOTH,
    pods: true,
};

static L3: About = About {
    name: "ipvlan-l3",
    aliases: &[],
    summary: "an ipvlan device per pod on the node's uplink, routed by the node",
    needs: &[&VETH, &IPVLAN],
    underlay: Underlay::Wire,
    wire: WireFormat::Plain,
    families: Family::BOTH,
    pods: true,
};

static L3S: About = About {
    name: "ipvlan-l3s",
    aliases: &[],
    summary: "an ipvlan device per pod on the node's uplink, routed by the node both ways",
    needs: &[&VETH, &IPVLAN, &IPVLAN_L3S],
    underlay: Underlay::Wire,
    wire: WireFormat::Plain,
    families: Family::BOTH,
    pods: true,
};

impl Network for Ipvlan {
    fn about(&self) -> &About {
        match self.0 {
            IpvlanMode::L2 => &L2,
            IpvlanMode::L3 => &L3,
            IpvlanMode::L3s => &L3S,
        }
    }

    fn attach(&self, topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
        for pod in &topology.pods {
            let link = |name: &str, parent| LinkSpec::ipvlan(name, parent, self.0);
            topology.place_on_uplink(pod, journal, link)?;
        }
        if self.0 != IpvlanMode::L2 {
            route_between_nodes(topology, journal)?;
        }
        Ok(Shape::default().hops(topology))
    }
}

fn route_between_nodes(topology: &Topology, journal: &mut Journal) -> Result<(), LabError> {
    let addressing = topology.addressing;
    for (own, node) in topology.numbered() {
        let uplink = node.index(UPLINK)?;
        for remote in topology.remotes(own) {
            let route = RouteSpec::to(addressing.subnet(remote), addressing.subnet_prefix());
            journal.route(node, route.via(addressing.node(remote)).dev(uplink))?;
        }
    }
    Ok(())
}
