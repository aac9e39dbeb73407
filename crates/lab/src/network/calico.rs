//! Pods attached as Calico attaches them: a veth to each pod, the pod's own
//! address as its whole network, and a link-local gateway that exists nowhere.
//! For IPv4 it is 169.254.1.1, answered by proxy ARP; for IPv6 it is the
//! link-local address of the node's end, which Calico gives the hardware
//! address ee:ee:ee:ee:ee:ee (projectcalico/calico@2fcbec1,
//! `cni-plugin/pkg/dataplane/linux/dataplane_linux.go`: devices, routes and
//! sysctls; @03807af, `felix/dataplane/linux/endpoint_mgr.go`: the sysctls
//! again, by Felix).
//!
//! Not modelled: policy, masquerading and the check of a pod's source address,
//! which are netfilter or eBPF rules; the route that drops what is for an unused
//! address of the node's own block, which no packet of a lab takes; and that
//! Felix tells the node each pod's hardware address, which it asks for here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use plumbline_experiment::Family;
use plumbline_sys::netlink::RouteSpec;

use crate::network::shape::{Shape, port_name};
use crate::{Journal, LabError, Place, Pod, Topology, UPLINK};

const PORT: &str = "cali";
const PORT_MAC: [u8; 6] = [0xee; 6];
const GATEWAY_V4: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 1);
/// What the kernel derives from [`PORT_MAC`] (RFC 4291, appendix A).
const GATEWAY_V6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0xecee, 0xeeff, 0xfeee, 0xeeee);

/// The devices of a pod that is routed to.
pub(super) const SHAPE: Shape = Shape {
    port: Some(PORT),
    ..Shape::POD
};

/// A route to the block of addresses that a node routes, of Calico's default size, /26
/// and /122 (projectcalico/calico@04b4464, `api/pkg/apis/projectcalico/v3/ippool.go`).
pub(super) fn block(topology: &Topology, number: u8) -> RouteSpec {
    let addressing = topology.addressing;
    RouteSpec::to(addressing.subnet(number), addressing.host_prefix() - 6)
}

/// Addresses of such a block for pods that come and go: a hundred on two nodes have room.
pub(super) const ROOM: usize = 54;

/// Attaches the pods; `mtu` in bytes.
pub(super) fn attach(topology: &Topology, journal: &mut Journal, mtu: u32) -> Result<(), LabError> {
    let mut pods = topology.pods.iter();
    pods.try_for_each(|pod| join(topology, pod, journal, mtu))
}

/// Attaches a pod to its node.
pub(super) fn join(
    topology: &Topology,
    pod: &Pod,
    journal: &mut Journal,
    mtu: u32,
) -> Result<(), LabError> {
    let addressing = topology.addressing;
    let host = addressing.host_prefix();
    let node = topology.home(pod);
    let name = port_name(PORT, pod);
    let port = pod.port(&name, mtu).mac(PORT_MAC);
    let port = journal.link(node, &name, port)?;
    journal.done("device");
    journal.device_sysctls(node, &port_sysctls(&name, addressing.family()))?;
    journal.done("sysctls");
    journal.add(node, RouteSpec::to(pod.address, host).dev(port))?;
    journal.done("route");

    let device = pod.place.bring_up(UPLINK)?;
    journal.address(&pod.place, device, pod.address, host)?;
    journal.done("address");
    let gateway = gateway(addressing.family());
    if gateway.is_ipv4() {
        let on_link = RouteSpec::to(gateway, host).dev(device);
        journal.add(&pod.place, on_link)?;
    }
    journal.add(&pod.place, RouteSpec::default_via(gateway).dev(device))?;
    journal.done("gateway");
    Ok(())
}

/// Gives a node the default route that every real node has. No packet of a lab
/// takes it, but without any route to the gateway's address the kernel does not
/// answer for it.
pub(super) fn default_route(
    topology: &Topology,
    node: &Arc<Place>,
    journal: &mut Journal,
) -> Result<(), LabError> {
    if topology.addressing.family() == Family::V4 {
        let uplink = node.index(UPLINK)?;
        let out = RouteSpec::default_via(topology.addressing.router());
        journal.add(node, out.dev(uplink))?;
    }
    Ok(())
}

fn gateway(family: Family) -> IpAddr {
    match family {
        Family::V4 => GATEWAY_V4.into(),
        Family::V6 => GATEWAY_V6.into(),
    }
}

/// What Calico sets on the node's end. It leaves the reverse path filter as it is
/// by default on the node (`felix/dataplane/linux/int_dataplane.go`@00157c1).
fn port_sysctls(port: &str, family: Family) -> Vec<(String, String)> {
    let settings: &[(&str, &str, &str)] = match family {
        Family::V4 => &[
            ("ipv4/conf", "route_localnet", "1"),
            ("ipv4/conf", "proxy_arp", "1"),
            ("ipv4/neigh", "proxy_delay", "0"),
            ("ipv4/conf", "forwarding", "1"),
        ],
        Family::V6 => &[
            ("ipv6/conf", "proxy_ndp", "1"),
            ("ipv6/conf", "forwarding", "1"),
            ("ipv6/conf", "accept_ra", "0"),
        ],
    };
    settings
        .iter()
        .map(|(area, key, value)| (format!("net/{area}/{port}/{key}"), value.to_string()))
        .collect()
}
