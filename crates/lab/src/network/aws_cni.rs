//! `aws-cni`: the Amazon VPC CNI plugin. Pods have addresses of the VPC itself,
//! on a network interface (ENI) of the node that is there for pods, and rules
//! decide by address (aws/amazon-vpc-cni-k8s@0089259,
//! `cmd/routed-eni-cni-plugin/driver/driver.go` and
//! `pkg/networkutils/network.go`).
//!
//! - A pod has a veth, its address alone, a gateway that exists nowhere
//!   (169.254.1.1, fe80::1), and a permanent neighbour for it: the hardware
//!   address of the node's end. Nothing is resolved, and no device answers
//!   for another.
//! - The node has a route to each pod in the main table, the rule `to <pod>` to
//!   that table (512), and for pods on a second ENI the rule `from <pod>` (1536)
//!   to the ENI's table, with a default route to the gateway of its subnet.
//! - For IPv6 pods are on the first ENI, whose prefix they share, and only the
//!   first rule is there.
//! - The VPC is a router that knows which interface has which address; it
//!   delivers to the interface's hardware address without asking.
//!
//! The MTU is the underlay's (9001 in a VPC, unless configured otherwise). Not
//! modelled: the rules of netfilter and the mark for node ports and source
//! translation, security groups per pod (their VLANs), prefixes in place of
//! single addresses, what the fabric itself costs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use plumbline_experiment::{Family, Placement};
use plumbline_sys::netlink::{Mac, NeighbourSpec, RouteSpec, RuleSelector, RuleSpec};

use super::shape::port_name;
use super::{About, Builtin};
use crate::need::VETH;
use crate::topology::{NEAR_INDEX, veth};
use crate::{Hop, Journal, LabError, Place, Pod, Topology, UPLINK, Underlay};

/// Index numbers of the router's ports to second interfaces, less the node's number:
/// behind those of its ports to first ones.
const SECOND_PORTS: u32 = NEAR_INDEX + 8;

pub(super) static NETWORK: Builtin = About {
    name: "aws-cni",
    aliases: &["amazon-vpc-cni", "eks"],
    summary: "an interface per node for pods, a veth and rules by address per pod, by a router",
    needs: &[&VETH],
    underlay: Underlay::Router,
    ..About::PLAIN
}
.attached_by(attach);

const PORT: &str = "eni";
/// The second ENI: device number 1, and so table 2.
const SECOND: &str = "eth1";
const SECOND_TABLE: u32 = 2;
const MAIN_TABLE: u32 = 254;
const TO_POD: u32 = 512;
const FROM_POD: u32 = 1536;

/// A node's interface for pods, and the router's port that leads to it.
struct Interface {
    device: &'static str,
    mac: Mac,
    port: String,
}

fn attach(topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
    // The underlay is one with a router.
    let Some(router) = &topology.router else {
        return Ok(Vec::new());
    };
    let mut interfaces = Vec::new();
    for (number, node) in topology.numbered() {
        interfaces.push(match topology.addressing.family() {
            Family::V4 => second_interface(topology, router, number, node, journal)?,
            Family::V6 => interface(node, UPLINK, node.name.clone())?,
        });
    }
    for pod in &topology.pods {
        attach_pod(topology, pod, journal)?;
        let interface = &interfaces[pod.node];
        let port = router.index(&interface.port)?;
        let host = topology.addressing.host_prefix();
        journal.add(router, RouteSpec::to(pod.address, host).dev(port))?;
        let known = NeighbourSpec::permanent(port, pod.address, interface.mac);
        journal.add(router, known)?;
    }
    Ok(hops(topology, router, &interfaces))
}

/// Gives a node its second ENI, with the table that leads out of it.
fn second_interface(
    topology: &Topology,
    router: &Arc<Place>,
    number: u8,
    node: &Arc<Place>,
    journal: &mut Journal,
) -> Result<Interface, LabError> {
    let addressing = topology.addressing;
    let host = addressing.host_prefix();
    let name = format!("{}-{SECOND}", node.name);
    let index = SECOND_PORTS + u32::from(number);
    let link = veth(&name, index, SECOND, node, topology.mtu);
    let port = journal.link(router, &name, link)?;
    let gateway = addressing.gateway(number);
    journal.address(router, port, gateway, host)?;

    let device = node.bring_up(SECOND)?;
    topology.put_behind(node, SECOND)?;
    // The subnet's own route is deleted from the main table; here it is not made.
    journal.address(node, device, addressing.interface(number), host)?;
    let on_link = RouteSpec::to(gateway, host).dev(device);
    journal.add(node, on_link.table(SECOND_TABLE))?;
    let out = RouteSpec::default_via(gateway).dev(device);
    journal.add(node, out.table(SECOND_TABLE))?;
    interface(node, SECOND, name)
}

fn interface(node: &Arc<Place>, device: &'static str, port: String) -> Result<Interface, LabError> {
    let mac = node.mac(device)?;
    Ok(Interface { device, mac, port })
}

fn attach_pod(topology: &Topology, pod: &Pod, journal: &mut Journal) -> Result<(), LabError> {
    let addressing = topology.addressing;
    let host = addressing.host_prefix();
    let (node, place) = (topology.home(pod), &pod.place);
    let name = port_name(PORT, pod);
    let port = pod.port(&name, topology.mtu);
    let port = journal.link(node, &name, port)?;
    if addressing.family() == Family::V6 {
        journal.device_sysctls(node, &port_sysctls(&name))?;
    }
    journal.add(node, RouteSpec::to(pod.address, host).dev(port))?;
    let to = RuleSelector::To(pod.address, host);
    journal.add(node, RuleSpec::new(to, MAIN_TABLE, TO_POD))?;

    let gateway: IpAddr = match addressing.family() {
        Family::V4 => {
            let from = RuleSelector::From(pod.address, host);
            journal.add(node, RuleSpec::new(from, SECOND_TABLE, FROM_POD))?;
            Ipv4Addr::new(169, 254, 1, 1).into()
        }
        Family::V6 => Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1).into(),
    };
    let device = place.bring_up(UPLINK)?;
    journal.address(place, device, pod.address, host)?;
    journal.add(place, RouteSpec::to(gateway, host).dev(device))?;
    journal.add(place, RouteSpec::default_via(gateway).dev(device))?;
    let known = NeighbourSpec::permanent(device, gateway, node.mac(&name)?);
    journal.add(place, known)
}

fn port_sysctls(port: &str) -> Vec<(String, String)> {
    [
        ("accept_ra", "0"),
        ("accept_redirects", "1"),
        ("forwarding", "0"),
    ]
    .map(|(key, value)| (format!("net/ipv6/conf/{port}/{key}"), value.into()))
    .to_vec()
}

fn hops(topology: &Topology, router: &Arc<Place>, interfaces: &[Interface]) -> Vec<Hop> {
    let (client, server) = (&topology.pods[0], &topology.pods[1]);
    let (from, to) = (topology.home(client), topology.home(server));
    let mut hops = vec![
        Hop::sends(&client.place, UPLINK),
        Hop::receives(from, &port_name(PORT, client)),
    ];
    if topology.placement == Placement::CrossNode {
        let (near, far) = (&interfaces[client.node], &interfaces[server.node]);
        hops.extend([
            Hop::sends(from, near.device),
            Hop::receives(router, &near.port),
            Hop::sends(router, &far.port),
            Hop::receives(to, far.device),
        ]);
    }
    hops.extend([
        Hop::sends(to, &port_name(PORT, server)),
        Hop::receives(&server.place, UPLINK),
    ]);
    hops
}
