//! `flannel-udp`: a bridge on each node, and between nodes a program that carries
//! packets from a TUN device by UDP, as Flannel's `udp` backend
//! (flannel-io/flannel@067ed7f, `pkg/backend/udp/udp_network_amd64.go`: the device
//! `flannel0` with the subnet's address and a route to the network of all nodes,
//! MTU less 28, a socket at the node's address; @9428fb8, `udp_amd64.go`: port
//! 8285; @1ba5635, `proxy_amd64.c`: the program).
//!
//! The program is a process of its own on each node, so that its CPU time is the
//! network's alone. The real one is one thread in C among those of
//! `flanneld`, with the same system calls in the same order. IPv4 only, as there.
//! Not modelled: the lookup of subnets, which fills the routes before, and the
//! answer to packets for a network that no node has.

mod proxy;

use std::net::{SocketAddrV4, UdpSocket};
use std::sync::Arc;

use plumbline_experiment::Family;
use plumbline_sys::forwarder::Forwarder;
use plumbline_sys::netlink::RouteSpec;
use plumbline_sys::tun::Tun;

use self::proxy::{Proxy, ProxyRoute};
use super::{About, Builtin, WireFormat, bridge};
use crate::need::{Need, PROBE, VETH};
use crate::{Hop, Journal, LabError, Place, Topology};

/// TUN devices.
static TUN: Need = Need::module("CONFIG_TUN and /dev/net/tun", "tun", |bench| {
    bench.open(|| Tun::open(PROBE).map(drop))
});

pub(super) static NETWORK: Builtin = About {
    name: "flannel-udp",
    summary: "a bridge on each node, a program that carries packets by UDP between nodes",
    needs: &[&VETH, &bridge::DRIVER, &TUN],
    wire: WireFormat::Udp { port: PORT },
    families: &[Family::V4],
    ..About::PLAIN
}
.attached_by(attach)
.joined_by(bridge::join_cni0::<OVERHEAD>);

const DEVICE: &str = "flannel0";
const PORT: u16 = 8285;
/// The outer IP header and that of UDP, in bytes.
const OVERHEAD: u32 = 20 + 8;

fn attach(topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
    let mtu = topology.mtu - OVERHEAD;
    for (number, node) in topology.numbered() {
        join(topology, number, node, mtu, journal)?;
    }
    let shape = bridge::attach(bridge::CNI0, topology, journal, mtu)?;
    Ok(shape.tunnel(DEVICE).hops(topology))
}

/// Makes the device of a node, and starts its program.
fn join(
    topology: &Topology,
    number: u8,
    node: &Arc<Place>,
    mtu: u32,
    journal: &mut Journal,
) -> Result<(), LabError> {
    let addressing = topology.addressing;
    let endpoint = |number| SocketAddrV4::new(addressing.node_v4(number), PORT);
    let at = endpoint(number);
    let opened = node
        .namespace
        .run(|| Ok((Tun::open(DEVICE)?, UdpSocket::bind(at)?)))?;
    let (tun, socket) = opened.map_err(LabError::Forwarder)?;
    let route = |remote| {
        let network = addressing.subnet_v4(remote);
        ProxyRoute::new(network, addressing.subnet_prefix(), endpoint(remote))
    };
    let routes = topology.remotes(number).map(route).collect();
    let mut proxy = Proxy::new(tun, socket, routes, mtu);
    let forwarder = Forwarder::start(c"flannel-udp", &mut proxy);
    journal.forwarder(forwarder.map_err(LabError::Forwarder)?);

    let device = node.index(DEVICE)?;
    node.ask(|netlink| netlink.set_link_mtu(device, mtu))?;
    node.bring_up(DEVICE)?;
    let own = addressing.subnet(number);
    journal.address(node, device, own, addressing.host_prefix())?;
    let all = RouteSpec::to(addressing.cluster(), addressing.cluster_prefix());
    journal.add(node, all.dev(device))
}
