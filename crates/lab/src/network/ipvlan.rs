//! `ipvlan-l2`, `ipvlan-l3` and `ipvlan-l3s`: each pod has a device of its own on top of the
//! node's uplink that shares its hardware address, as the CNI plugin `ipvlan`
//! makes it (containernetworking/plugins, `plugins/main/ipvlan/ipvlan.go`,
//! @d385120 for the modes, of which `l2` is its default, and @06ba001: made in
//! the pod under a passing name, with the uplink's MTU unless configured otherwise,
//! and announced once by `arp_notify`, which is not modelled). In L2 mode pods
//! resolve each other; in L3 mode the node's routing table decides where packets
//! leave (torvalds/linux@254a142, `Documentation/networking/ipvlan.rst`); in L3S
//! mode it also routes what comes in, which then passes the node's netfilter. The
//! lab gives each node a route to the other node's pods, which the plugin
//! leaves to the operator of the network.

use plumbline_sys::netlink::{IpVlanMode, LinkSpec};

use super::shape::Shape;
use super::{About, Builtin};
use crate::need::{Need, PROBE, VETH};
use crate::{Hop, Journal, LabError, Pod, Topology};

/// Ipvlan devices.
pub(super) static IPVLAN: Need = Need::module("CONFIG_IPVLAN", "ipvlan", |bench| {
    bench.device(LinkSpec::ipvlan(PROBE, bench.parent, IpVlanMode::L2))
});

/// Ipvlan devices in mode L3S.
static IPVLAN_L3S: Need = Need::module("CONFIG_IPVLAN with CONFIG_IPVLAN_L3S", "ipvlan", |bench| {
    bench.device(LinkSpec::ipvlan(PROBE, bench.parent, IpVlanMode::L3S))
});

pub(super) static L2: Builtin = About {
    name: "ipvlan-l2",
    aliases: &["ipvlan"],
    summary: "an ipvlan device per pod on the node's uplink, switched by address",
    needs: &[&VETH, &IPVLAN],
    ..About::PLAIN
}
.attached_by(|topology, journal| attach(IpVlanMode::L2, topology, journal))
.joined_by(|topology, pod, journal| join(IpVlanMode::L2, topology, pod, journal));

pub(super) static L3: Builtin = About {
    name: "ipvlan-l3",
    summary: "an ipvlan device per pod on the node's uplink, routed by the node",
    needs: &[&VETH, &IPVLAN],
    ..About::PLAIN
}
.attached_by(|topology, journal| attach(IpVlanMode::L3, topology, journal))
.joined_by(|topology, pod, journal| join(IpVlanMode::L3, topology, pod, journal));

pub(super) static L3S: Builtin = About {
    name: "ipvlan-l3s",
    summary: "an ipvlan device per pod on the node's uplink, routed by the node both ways",
    needs: &[&VETH, &IPVLAN, &IPVLAN_L3S],
    ..About::PLAIN
}
.attached_by(|topology, journal| attach(IpVlanMode::L3S, topology, journal))
.joined_by(|topology, pod, journal| join(IpVlanMode::L3S, topology, pod, journal));

fn attach(
    mode: IpVlanMode,
    topology: &Topology,
    journal: &mut Journal,
) -> Result<Vec<Hop>, LabError> {
    for pod in &topology.pods {
        join(mode, topology, pod, journal)?;
    }
    if mode != IpVlanMode::L2 {
        topology.route_between_nodes(journal)?;
    }
    Ok(Shape::POD.hops(topology))
}

fn join(
    mode: IpVlanMode,
    topology: &Topology,
    pod: &Pod,
    journal: &mut Journal,
) -> Result<(), LabError> {
    let link = |name: &str, parent| LinkSpec::ipvlan(name, parent, mode);
    topology.place_on_uplink(pod, journal, link)
}
