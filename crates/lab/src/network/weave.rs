//! What both of Weave's data paths have: on each node a bridge `weave` with the
//! pods as its ports, and a veth pair that leads from the bridge to whatever
//! carries frames to other nodes (weaveworks/weave@039750a, `net/bridge.go`;
//! @0257274, `net/veth.go`: pods with the bridge's MTU). All pods share one
//! Ethernet segment and one subnet. The bridge has a hardware address that was
//! set, and an address in the subnet, which is the pods' way out. Bridge and
//! pods check their neighbours every few seconds (@73b321d, `net/arp.go`).
//!
//! IPv4 only, as there. Not modelled: netfilter rules, the announcement of a
//! pod's address and the route for multicast, which touch no packet between
//! pods.

use plumbline_experiment::Family;
use plumbline_sys::netlink::{LinkSpec, Mac, RouteSpec};

use super::shape::{Shape, port_name};
use crate::{Journal, LabError, Topology, UPLINK};

const BRIDGE: &str = "weave";
const PORT: &str = "vethwepl";
/// The bridge's end of the pair.
const BRIDGE_END: &str = "vethwe-bridge";

/// What Weave carries.
pub(super) const FAMILIES: &[Family] = &[Family::V4];

/// The devices of a pod and its node, when `end` is the far end of the pair.
pub(super) const fn shape(end: &'static str) -> Shape {
    Shape {
        port: Some(PORT),
        // The bridge only carries frames between its ports: its own device sees none.
        pair: Some((BRIDGE_END, end)),
        ..Shape::POD
    }
}

/// The hardware address of a node's bridge, which is the node's name too. Weave
/// derives it from the machine's identity; it only has to be a node's own.
pub(super) fn name(number: u8) -> Mac {
    [0x02, 0x50, 0x4c, 0x42, 0x57, number]
}

/// Makes bridges, pairs and pods; `mtu` in bytes, and `end` what the far end of
/// the pair is called.
pub(super) fn attach(
    topology: &Topology,
    journal: &mut Journal,
    mtu: u32,
    end: &str,
) -> Result<(), LabError> {
    let addressing = topology.addressing;
    let prefix = addressing.cluster_prefix();
    let mut bridges = Vec::new();
    for (number, node) in topology.numbered() {
        let bridge = LinkSpec::bridge(BRIDGE).mac(name(number)).mtu(mtu).up();
        let bridge = journal.link(node, BRIDGE, bridge)?;
        let pair = LinkSpec::veth(BRIDGE_END, LinkSpec::peer(end).mtu(mtu));
        let pair = pair.mtu(mtu).master(bridge).up();
        journal.link(node, BRIDGE_END, pair)?;
        node.bring_up(end)?;
        journal.device_sysctls(node, &neighbour_checks(BRIDGE))?;
        journal.address(node, bridge, addressing.gateway(number), prefix)?;
        bridges.push(bridge);
    }
    for pod in &topology.pods {
        let name = port_name(PORT, pod);
        let port = pod.port(&name, mtu).master(bridges[pod.node]);
        journal.link(topology.home(pod), &name, port)?;
        let device = pod.place.bring_up(UPLINK)?;
        journal.device_sysctls(&pod.place, &neighbour_checks(UPLINK))?;
        journal.address(&pod.place, device, pod.address, prefix)?;
        let gateway = addressing.gateway(topology.home_number(pod));
        journal.add(&pod.place, RouteSpec::default_via(gateway).dev(device))?;
    }
    Ok(())
}

/// The sysctls of a device by which a neighbour that has moved is found soon.
fn neighbour_checks(device: &str) -> [(String, String); 4] {
    [
        ("neigh", "base_reachable_time", "5"),
        ("neigh", "delay_first_probe_time", "2"),
        ("neigh", "ucast_solicit", "1"),
        ("conf", "arp_accept", "1"),
    ]
    .map(|(table, key, value)| (format!("net/ipv4/{table}/{device}/{key}"), value.into()))
}
