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
//! policy (at least one look-up each per packet and direction), load balancing
//! of services, the check of a pod's source address. Nor `cilium_host` itself,
//! which no packet between pods crosses, tcx in place of tc where a kernel has
//! it, and netkit.

mod datapath;

use std::net::IpAddr;
use std::sync::Arc;

use plumbline_experiment::Family;
use plumbline_sys::netlink::{CollectMetadata, LinkSpec, RouteSpec};

use self::datapath::{CiliumDatapath, CiliumProgram};
use super::shape::{Shape, port_name};
use super::{About, Network, WireFormat, geneve, tunnel};
use crate::error::LabError;
use crate::hop::Hop;
use crate::journal::Journal;
use crate::need::{Need, VETH};
use crate::place::Place;
use crate::topology::{Pod, Topology, UPLINK, Underlay};

/// How packets get from node to node.
pub(super) enum Cilium {
    Native,
    Vxlan,
    Geneve,
}

/// eBPF programs at tc, which need rights on the machine itself too.
static EBPF: Need = Need::other(
    "needs eBPF at tc (CONFIG_BPF_SYSCALL, CONFIG_NET_CLS_BPF)",
    |bench| datapath::attempt(bench.netlink(), bench.parent),
);

static NATIVE: About = About {
    name: "cilium",
    aliases: &["cilium-native"],
    summary: "eBPF hands packets from pod to pod, routes between nodes, no bridge",
    needs: &[&VETH, &EBPF],
    underlay: Underlay::Wire,
    wire: WireFormat::Plain,
    families: Family::BOTH,
    pods: true,
};

static VXLAN: About = About {
    name: "cilium-vxlan",
    aliases: &[],
    summary: "eBPF hands packets from pod to pod, VXLAN between nodes, no bridge",
    needs: &[&VETH, &tunnel::VXLAN, &EBPF],
    underlay: Underlay::Wire,
    wire: WireFormat::Udp { port: VXLAN_PORT },
    families: Family::BOTH,
    pods: true,
};

static GENEVE: About = About {
    name: "cilium-geneve",
    aliases: &[],
    summary: "eBPF hands packets from pod to pod, Geneve between nodes, no bridge",
    needs: &[&VETH, &geneve::GENEVE, &EBPF],
    underlay: Underlay::Wire,
    wire: WireFormat::Udp { port: GENEVE_PORT },
    families: Family::BOTH,
    pods: true,
};

const PORT: &str = "lxc";
const VXLAN_PORT: u16 = 8472;
const GENEVE_PORT: u16 = 6081;

/// A tunnel device: its name, what it speaks, and on which UDP port.
type TunnelDevice = (&'static str, CollectMetadata, u16);

impl Network for Cilium {
    fn about(&self) -> &About {
        match self {
            Self::Native => &NATIVE,
            Self::Vxlan => &VXLAN,
            Self::Geneve => &GENEVE,
        }
    }

    fn attach(&self, topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
        let tunnel = self.tunnel();
        let mut datapaths = Vec::new();
        for (number, node) in topology.numbered() {
            let datapath = self.attach_node(topology, journal, number, node)?;
            datapaths.push(Arc::new(datapath));
        }
        let shape = Shape {
            tunnel: tunnel.map(|(name, ..)| name),
            ..Shape::default()
        };
        let metered = |hop: Hop| {
            let pod = topology
                .pods
                .iter()
                .find(|pod| Arc::ptr_eq(&pod.place, &hop.place));
            let Some(pod) = pod else { return Ok(hop) };
            let port = topology.home(pod).index(&port_name(PORT, pod))?;
            Ok(hop.metered(datapath::meter(&datapaths[pod.node], port)))
        };
        shape.hops(topology).into_iter().map(metered).collect()
    }
}

impl Cilium {
    fn tunnel(&self) -> Option<TunnelDevice> {
        match self {
            Self::Native => None,
            Self::Vxlan => Some(("cilium_vxlan", CollectMetadata::Vxlan, VXLAN_PORT)),
            Self::Geneve => Some(("cilium_geneve", CollectMetadata::Geneve, GENEVE_PORT)),
        }
    }

    fn attach_node(
        &self,
        topology: &Topology,
        journal: &mut Journal,
        number: u8,
        node: &Arc<Place>,
    ) -> Result<CiliumDatapath, LabError> {
        let encapsulating = match self.tunnel() {
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
        for pod in topology
            .pods
            .iter()
            .filter(|pod| Arc::ptr_eq(topology.home(pod), node))
        {
            let port = self.attach_pod(topology, journal, pod, &mut datapath)?;
            datapath.attach(journal, port, CiliumProgram::Container)?;
        }
        let uplink = node.index(UPLINK)?;
        datapath.attach(journal, uplink, CiliumProgram::Netdev)?;
        match encapsulating {
            Some(device) => datapath.attach(journal, device, CiliumProgram::Overlay)?,
            None => route_to_others(topology, journal, number, node, uplink)?,
        }
        Ok(datapath)
    }

    /// Gives the index of the node's end.
    fn attach_pod(
        &self,
        topology: &Topology,
        journal: &mut Journal,
        pod: &Pod,
        datapath: &mut CiliumDatapath,
    ) -> Result<u32, LabError> {
        let (node, place) = (topology.home(pod), &pod.place);
        let name = port_name(PORT, pod);
        let port = pod.port(&name, topology.mtu);
        let port = journal.link(node, &name, port)?;
        let device = place.bring_up(UPLINK)?;
        datapath.add_endpoint(pod.address, port, mac(place, UPLINK)?, mac(node, &name)?)?;

        let addressing = topology.addressing;
        let host = addressing.host_prefix();
        journal.address(place, device, pod.address, host)?;
        let gateway = addressing.gateway(topology.home_number(pod));
        journal.route(place, RouteSpec::to(gateway, host).dev(device))?;
        let out = RouteSpec::default_via(gateway).dev(device);
        journal.route(place, out.mtu(self.route_mtu(topology)))?;
        Ok(port)
    }

    /// MTU of a pod's default route in bytes.
    fn route_mtu(&self, topology: &Topology) -> u32 {
        match self {
            Self::Native => topology.mtu,
            Self::Vxlan | Self::Geneve => super::tunnel::inner_mtu(topology),
        }
    }
}

/// The routes that Cilium sets where all nodes are on one link
/// (`auto-direct-node-routes`).
fn route_to_others(
    topology: &Topology,
    journal: &mut Journal,
    number: u8,
    node: &Arc<Place>,
    uplink: u32,
) -> Result<(), LabError> {
    let addressing = topology.addressing;
    for remote in topology.remotes(number) {
        let route = RouteSpec::to(addressing.subnet(remote), addressing.subnet_prefix());
        let gateway: IpAddr = addressing.node(remote);
        journal.route(node, route.via(gateway).dev(uplink))?;
    }
    Ok(())
}

fn mac(place: &Place, device: &str) -> Result<plumbline_sys::netlink::Mac, LabError> {
    let link = place.netlink().link(device);
    let link = link.map_err(|error| place.failed(error))?;
    // A veth is an Ethernet device.
    Ok(link.mac.unwrap_or_default())
}
