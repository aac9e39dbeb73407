//! `cilium`, `cilium-vxlan`, `cilium-geneve`: pods attached as Cilium attaches
//! them with veth and BPF host routing (its default on kernels from 5.10): eBPF
//! at tc finds the pod that a packet is for and hands it to the far end of that
//! pod's veth. No bridge, and neither the node's IP stack nor its netfilter is
//! on the way. Nodes route natively, or by a tunnel device that takes the
//! destination from each packet's metadata.
//!
//! What was read in cilium/cilium, and is done here:
//! - `bpf/lib/local_delivery.h`@02446a8: the TTL goes down by one, the hardware
//!   addresses are those of the endpoint's entry, `bpf_redirect_peer`; what came
//!   from the tunnel becomes a packet for this host first.
//! - `bpf/lib/fib.h`@0267401: `bpf_fib_lookup`, then `bpf_redirect`, or
//!   `bpf_redirect_neigh` where the next hop is not resolved.
//! - `bpf/lib/encap.h`@002eef7, `bpf/lib/overloadable_skb.h`@035b6ee:
//!   `bpf_skb_set_tunnel_key` with the pod's identity as tunnel identifier, the
//!   node's address, a TTL of 64 and, over IPv4, no UDP checksum; no hop is
//!   counted before the tunnel.
//! - `bpf/lib/eps.h`@045dd2c: the endpoint map and the map from addresses to
//!   nodes, which is looked up first. `bpf/lib/arp.h`@01ba1fb: the program
//!   answers a pod's ARP with the address of the node's end, whatever is asked.
//! - `pkg/datapath/connector/veth.go`@f1b71da, `ipam.go`@25972d8: names and MTU
//!   of the veth; a pod's routes, by the address of the node's `cilium_host`.
//! - `pkg/datapath/loader/netlink.go` (`setupVxlanDevice`) and
//!   `pkg/mtu/mtu.go`@314ca7b: pods have the MTU of the nodes, a pod's
//!   default route 50 bytes less (70 over IPv6, by the constants of newer
//!   versions). Which MTU a tunnel device is given was not seen; here the nodes'.
//!
//! Not modelled, though a pod of Cilium pays for it: connection tracking and
//! policy (at least one look-up each per packet and direction) where policies with the
//! enforcer `cilium` do not add them, load balancing of services, the check of a
//! pod's source address. Nor `cilium_host` itself,
//! which no packet between pods crosses, tcx in place of tc where a kernel has
//! it, and netkit.

mod datapath;

use std::sync::Arc;

use plumbline_experiment::Enforcer;
use plumbline_sys::netlink::{CollectMetadata, LinkSpec, RouteSpec};

use self::datapath::{CiliumDatapath, CiliumProgram};
use super::shape::{Shape, port_name};
use super::tunnel::inner_mtu;
use super::{About, Builtin, WireFormat, geneve, tunnel};
use crate::need::{Need, VETH};
use crate::{Hop, Journal, LabError, Place, Pod, Topology, UPLINK};

/// eBPF programs at tc, which need rights on the machine itself too.
static EBPF: Need = Need::other(
    "needs eBPF at tc (CONFIG_BPF_SYSCALL, CONFIG_NET_CLS_BPF)",
    |bench| datapath::attempt(bench.netlink(), bench.parent),
);

pub(super) static NATIVE: Builtin = About {
    name: "cilium",
    aliases: &["cilium-native"],
    summary: "eBPF hands packets from pod to pod, routes between nodes, no bridge",
    needs: &[&VETH, &EBPF],
    enforcer: Enforcer::Cilium,
    ..About::PLAIN
}
.attached_by(|topology, journal| attach(None, topology, journal));

pub(super) static VXLAN: Builtin = About {
    name: "cilium-vxlan",
    summary: "eBPF hands packets from pod to pod, VXLAN between nodes, no bridge",
    needs: &[&VETH, &tunnel::VXLAN, &EBPF],
    wire: WireFormat::Udp { port: VXLAN_PORT },
    enforcer: Enforcer::Cilium,
    ..About::PLAIN
}
.attached_by(|topology, journal| {
    let tunnel = ("cilium_vxlan", CollectMetadata::Vxlan, VXLAN_PORT);
    attach(Some(tunnel), topology, journal)
});

pub(super) static GENEVE: Builtin = About {
    name: "cilium-geneve",
    summary: "eBPF hands packets from pod to pod, Geneve between nodes, no bridge",
    needs: &[&VETH, &geneve::GENEVE, &EBPF],
    wire: WireFormat::Udp { port: GENEVE_PORT },
    enforcer: Enforcer::Cilium,
    ..About::PLAIN
}
.attached_by(|topology, journal| {
    let tunnel = ("cilium_geneve", CollectMetadata::Geneve, GENEVE_PORT);
    attach(Some(tunnel), topology, journal)
});

const PORT: &str = "lxc";
const VXLAN_PORT: u16 = 8472;
const GENEVE_PORT: u16 = 6081;

/// A tunnel device: its name, its encapsulation, and its UDP port.
type TunnelDevice = (&'static str, CollectMetadata, u16);

fn attach(
    tunnel: Option<TunnelDevice>,
    topology: &Topology,
    journal: &mut Journal,
) -> Result<Vec<Hop>, LabError> {
    let mut datapaths = Vec::new();
    for (number, node) in topology.numbered() {
        let datapath = attach_node(tunnel, topology, journal, number, node)?;
        datapaths.push(Arc::new(datapath));
    }
    let shape = Shape {
        tunnel: tunnel.map(|(name, ..)| name),
        ..Shape::POD
    };
    let metered = |hop: Hop| {
        let mut pods = topology.pods.iter();
        let Some(pod) = pods.find(|pod| Arc::ptr_eq(&pod.place, &hop.place)) else {
            return Ok(hop);
        };
        let port = topology.home(pod).index(&port_name(PORT, pod))?;
        Ok(hop.metered(datapath::meter(&datapaths[pod.node], port)))
    };
    shape.hops(topology).into_iter().map(metered).collect()
}

fn attach_node(
    tunnel: Option<TunnelDevice>,
    topology: &Topology,
    journal: &mut Journal,
    number: u8,
    node: &Arc<Place>,
) -> Result<CiliumDatapath, LabError> {
    let encapsulating = match tunnel {
        None => None,
        Some((name, encapsulation, port)) => {
            let link = LinkSpec::collect_metadata(name, encapsulation, port);
            Some(journal.link(node, name, link.mtu(topology.mtu).up())?)
        }
    };
    let mut datapath = CiliumDatapath::load(node, encapsulating)?;
    for pod in &topology.pods {
        let behind = topology.addressing.node(topology.home_number(pod));
        datapath.remember_pod(pod.address, behind)?;
    }
    // MTU of a pod's default route in bytes.
    let route_mtu = match tunnel {
        None => topology.mtu,
        Some(_) => inner_mtu(topology),
    };
    let is_here = |pod: &&Pod| Arc::ptr_eq(topology.home(pod), node);
    for pod in topology.pods.iter().filter(is_here) {
        let port = attach_pod(topology, journal, pod, route_mtu, &mut datapath)?;
        datapath.attach(journal, port, CiliumProgram::Container)?;
    }
    datapath.attach(journal, node.index(UPLINK)?, CiliumProgram::Netdev)?;
    match encapsulating {
        Some(device) => datapath.attach(journal, device, CiliumProgram::Overlay)?,
        // As Cilium does where all nodes are on one link (`auto-direct-node-routes`).
        None => topology.route_to_others(number, node, journal, |it| topology.pods_of(it))?,
    }
    Ok(datapath)
}

/// Gives the index of the node's end.
fn attach_pod(
    topology: &Topology,
    journal: &mut Journal,
    pod: &Pod,
    route_mtu: u32,
    datapath: &mut CiliumDatapath,
) -> Result<u32, LabError> {
    let (node, place) = (topology.home(pod), &pod.place);
    let name = port_name(PORT, pod);
    let port = journal.link(node, &name, pod.port(&name, topology.mtu))?;
    let device = place.bring_up(UPLINK)?;
    datapath.add_endpoint(pod.address, port, place.mac(UPLINK)?, node.mac(&name)?)?;

    let addressing = topology.addressing;
    let host = addressing.host_prefix();
    journal.address(place, device, pod.address, host)?;
    let gateway = addressing.gateway(topology.home_number(pod));
    journal.add(place, RouteSpec::to(gateway, host).dev(device))?;
    let out = RouteSpec::default_via(gateway).dev(device);
    journal.add(place, out.mtu(route_mtu))?;
    Ok(port)
}
