//! `romana`: a veth and a host route per pod, as `routed`, but with every packet
//! looked up in a table of Romana's own before the main one, and pods that
//! resolve every address by themselves (romana/core, files of 2017; @2d72a8e,
//! `cni/plugin.go` and `agent/rtable/route_table.go`; @281ac5e,
//! `cni/cnilink.go`; @cb43aac and @ac14fa8, `agent/simple/main.go` and
//! `routes.go`). The node answers for all of them: `proxy_arp` is on for all of
//! its devices, with no delay. Routes to the other nodes' blocks are in table 10,
//! by those nodes' addresses. IPv4 only, the MTU of the nodes. Not modelled: its
//! agent and its policies.

use std::net::{IpAddr, Ipv4Addr};

use plumbline_experiment::{Enforcer, Family};
use plumbline_sys::netlink::{RouteSpec, RuleSelector, RuleSpec};

use super::shape::{Shape, port_name};
use super::{About, Builtin};
use crate::need::VETH;
use crate::{Hop, Journal, LabError, Pod, Topology, UPLINK};

pub(super) static NETWORK: Builtin = About {
    name: "romana",
    summary: "a veth and a host route per pod, routes between nodes in a table before the main one",
    needs: &[&VETH],
    families: &[Family::V4],
    enforcer: Enforcer::Romana,
    ..About::PLAIN
}
.attached_by(attach)
.joined_by(join);

const PORT: &str = "romana-";
const TABLE: u32 = 10;
/// What the kernel gives a rule for which none is asked: before the main table.
const PRIORITY: u32 = 32765;
/// The gateway that Romana names in every pod.
const GATEWAY: IpAddr = IpAddr::V4(Ipv4Addr::new(172, 142, 0, 1));

fn attach(topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
    for (own, node) in topology.numbered() {
        let proxy = |area: &str| (format!("net/ipv4/conf/{area}/proxy_arp"), "1".into());
        journal.sysctls(node, &[proxy("all"), proxy("default")])?;
        journal.add(node, RuleSpec::new(RuleSelector::AllV4, TABLE, PRIORITY))?;
        topology.route_to_others(own, node, journal, |it| topology.pods_of(it).table(TABLE))?;
    }
    for pod in &topology.pods {
        join(topology, pod, journal)?;
    }
    let shape = Shape {
        port: Some(PORT),
        ..Shape::POD
    };
    Ok(shape.hops(topology))
}

/// Attaches a pod to its node.
fn join(topology: &Topology, pod: &Pod, journal: &mut Journal) -> Result<(), LabError> {
    let host = topology.addressing.host_prefix();
    let (node, place) = (topology.home(pod), &pod.place);
    let name = port_name(PORT, pod);
    let port = pod.port(&name, topology.mtu);
    let port = journal.link(node, &name, port)?;
    journal.done("device");
    let at_once = (format!("net/ipv4/neigh/{name}/proxy_delay"), "0".into());
    journal.device_sysctls(node, &[at_once])?;
    journal.done("sysctls");
    journal.add(node, RouteSpec::to(pod.address, host).dev(port))?;
    journal.done("route");

    let device = place.bring_up(UPLINK)?;
    journal.address(place, device, pod.address, host)?;
    journal.done("address");
    journal.add(place, RouteSpec::to(GATEWAY, host).dev(device))?;
    let everything = RouteSpec::to(Ipv4Addr::UNSPECIFIED.into(), 0).dev(device);
    journal.add(place, everything)?;
    journal.done("gateway");
    Ok(())
}
