//! `kube-router` and `kube-router-ipip`: a bridge on each node whose packets
//! pass through netfilter, a rule by which what pods send is looked up in a table
//! of its own first, and routes between nodes (cloudnativelabs/kube-router).
//!
//! - The bridge `kube-bridge` is that of the CNI plugin `bridge`, with the MTU of
//!   the node's interface, and `bridge-nf-call-iptables` is set (@8bb50d5,
//!   `pkg/controllers/routing/network_routes_controller.go`).
//! - The rule `from <pods of the node> lookup 77` is there unless overlays are
//!   switched off (@148736b, `pkg/controllers/routing/pbr.go`).
//! - To a node of the same subnet: a route by that node's address.
//! - To a node of another subnet (`kube-router-ipip`): a tunnel device with both
//!   ends set, the node itself through it in table 77, its pods through it in the
//!   main table, with the own address as source (@8bb50d5; @2a01df3,
//!   `pkg/tunnels/linux_tunnels.go`). The lab's nodes are then joined by a router.
//!
//! Pods keep the interface's MTU, also where a tunnel takes 20 bytes: larger
//! packets are answered by ICMP, and senders learn the path's MTU. Versions before
//! 2 took the bytes off the pods' MTU. Not modelled: BGP, policies, masquerading
//! and IPVS (no rule is in netfilter, so the cost is that of its hooks); tunnels
//! in UDP; names of tunnels, which are a hash there; the option that limits
//! nesting, which `ip` adds to tunnels between IPv6 addresses.

use std::net::Ipv6Addr;

use plumbline_experiment::{Enforcer, Family};
use plumbline_sys::netlink::{LinkSpec, RouteSpec, RuleSelector, RuleSpec};

use super::shape::{Shape, TunnelName};
use super::{About, Builtin, WireFormat, bridge, ipip, point};
use crate::need::{Need, PROBE, Presence, VETH, ends};
use crate::place::has_bridge_netfilter;
use crate::{Journal, LabError, Pod, Topology, Underlay};

/// IPv6 in IPv6.
static IP6_TUNNEL: Need = Need::module("CONFIG_IPV6_TUNNEL", "ip6_tunnel", |bench| {
    bench.device(LinkSpec::ip_in_ip(PROBE, ends(Ipv6Addr::LOCALHOST)))
})
.that_makes_devices();

/// Netfilter for what bridges carry.
static BRIDGE_NETFILTER: Need = Need::module("CONFIG_BRIDGE_NETFILTER", "br_netfilter", |_| {
    Ok(match has_bridge_netfilter() {
        true => Presence::Present,
        false => Presence::Missing,
    })
});

pub(super) static ONE_SUBNET: Builtin = About {
    name: "kube-router",
    summary: "a bridge with netfilter on each node, a rule by source, routes between nodes",
    needs: &[&VETH, &bridge::DRIVER, &BRIDGE_NETFILTER],
    enforcer: Enforcer::KubeRouter,
    ..About::PLAIN
}
.attached_by(|topology, journal| {
    let shape = attach(topology, journal)?;
    topology.route_between_nodes(journal)?;
    Ok(shape.hops(topology))
})
.joined_by(join);

pub(super) static TWO_SUBNETS: Builtin = About {
    name: "kube-router-ipip",
    summary: "as kube-router with nodes in two subnets: IP in IP between them, by a router",
    needs: &[
        &VETH,
        &bridge::DRIVER,
        &BRIDGE_NETFILTER,
        &ipip::IPIP,
        &IP6_TUNNEL,
    ],
    underlay: Underlay::Router,
    wire: WireFormat::IpInIp,
    enforcer: Enforcer::KubeRouter,
    ..About::PLAIN
}
.attached_by(|topology, journal| {
    let shape = attach(topology, journal)?;
    tunnel_between_nodes(topology, journal)?;
    Ok(shape.tunnel_to(TUNNEL).hops(topology))
})
.joined_by(join);

const BRIDGE: &str = "kube-bridge";
const TABLE: u32 = 77;
/// What the kernel gives a rule for which none is asked: before the main table.
const PRIORITY: u32 = 32765;
const TUNNEL: TunnelName = |_, remote| format!("tun-{remote}");

fn attach(topology: &Topology, journal: &mut Journal) -> Result<Shape, LabError> {
    let addressing = topology.addressing;
    for (own, node) in topology.numbered() {
        journal.sysctls(node, &bridge_netfilter(addressing.family()))?;
        let (pods, prefix) = (addressing.subnet(own), addressing.subnet_prefix());
        journal.add(
            node,
            RuleSpec::new(RuleSelector::From(pods, prefix), TABLE, PRIORITY),
        )?;
    }
    bridge::attach(BRIDGE, topology, journal, topology.mtu)
}

fn join(topology: &Topology, pod: &Pod, journal: &mut Journal) -> Result<(), LabError> {
    bridge::join(BRIDGE, topology, pod, journal, topology.mtu)
}

fn tunnel_between_nodes(topology: &Topology, journal: &mut Journal) -> Result<(), LabError> {
    let addressing = topology.addressing;
    let mtu = topology.mtu - addressing.header_bytes();
    point::attach(topology, journal, TUNNEL, |name, ends| {
        LinkSpec::ip_in_ip(name, ends).mtu(mtu)
    })?;
    for (own, node) in topology.numbered() {
        for remote in topology.remotes(own) {
            let device = node.index(&TUNNEL(addressing, remote))?;
            let far = RouteSpec::to(addressing.node(remote), addressing.host_prefix());
            journal.add(node, far.dev(device).table(TABLE))?;
        }
    }
    Ok(())
}

fn bridge_netfilter(family: Family) -> Vec<(String, String)> {
    let tables: &[&str] = match family {
        Family::V4 => &["iptables"],
        Family::V6 => &["iptables", "ip6tables"],
    };
    tables
        .iter()
        .map(|table| (format!("net/bridge/bridge-nf-call-{table}"), "1".into()))
        .collect()
}
