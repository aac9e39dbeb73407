//! `flannel-udp`: a bridge on each node, and between nodes a program that carries
//! packets from a TUN device by UDP, as Flannel's `udp` backend
//! (flannel-io/flannel@067ed7f, `pkg/backend/udp/udp_network_amd64.go`: the device
//! `flannel0` with the subnet's address and a route to the network of all nodes,
//! MTU less 28, a socket at the node's address; @9428fb8, `udp_amd64.go`: port
//! 8285; @1ba5635, `proxy_amd64.c`: the program).
//!
//! The program is a process of its own on each node, so that its CPU time is the
//! network's and nobody else's. The real one is one thread in C among those of
//! `flanneld`, with the same system calls in the same order. IPv4 only, as there.
//! Not modelled: the lookup of subnets, which fills the routes before, and the
//! answer to packets for a network that no node has.

mod proxy;

use std::net::{IpAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;

use plumbline_experiment::Family;
use plumbline_sys::forwarder::Forwarder;
use plumbline_sys::netlink::RouteSpec;
use plumbline_sys::tun::Tun;

use self::proxy::{Proxy, ProxyRoute};
use super::shape::Shape;
use super::{About, Network, WireFormat, bridge};
use crate::error::LabError;
use crate::hop::Hop;
use crate::journal::Journal;
use crate::need::{Need, ScratchNamespace, VETH};
use crate::place::Place;
use crate::topology::{Topology, Underlay};

pub(super) struct FlannelUdp;

/// TUN devices.
static TUN: Need = Need::module("CONFIG_TUN and /dev/net/tun", "tun", |bench| {
    bench.open(|| Tun::open(ScratchNamespace::NAME).map(drop))
});

static ABOUT: About = About {
    name: "flannel-udp",
    aliases: &[],
    summary: "a bridge on each node, a program that carries packets by UDP between nodes",
    needs: &[&VETH, &bridge::DRIVER, &TUN],
    underlay: Underlay::Wire,
    wire: WireFormat::Udp { port: PORT },
    families: &[Family::V4],
    pods: true,
};

const DEVICE: &str = "flannel0";
const PORT: u16 = 8285;
/// The outer IP header and that of UDP, in bytes.
const OVERHEAD: u32 = 20 + 8;

impl Network for FlannelUdp {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn attach(&self, topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
        let mtu = topology.mtu - OVERHEAD;
        for (number, node) in topology.numbered() {
            join(topology, number, node, mtu, journal)?;
        }
        bridge::attach(topology, journal, mtu)?;
        let shape = Shape {
            tunnel: Some(DEVICE),
            ..bridge::SHAPE
        };
        Ok(shape.hops(topology))
    }
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
    let at = endpoint(addressing.node(number));
    let opened = node
        .namespace
        .run(|| Ok((Tun::open(DEVICE)?, UdpSocket::bind(at)?)))?;
    let (tun, socket) = opened.map_err(LabError::Forwarder)?;
    let route = |remote| {
        let node = endpoint(addressing.node(remote));
        let network = v4(addressing.subnet(remote));
        ProxyRoute::new(network, addressing.subnet_prefix(), node)
    };
    let routes = topology.remotes(number).map(route).collect();
    let mut proxy = Proxy::new(tun, socket, routes, mtu);
    let forwarder = Forwarder::start(c"flannel-udp", &mut proxy);
    journal.forwarder(forwarder.map_err(LabError::Forwarder)?);

    let failed = |error| node.failed(error);
    let device = node.index(DEVICE)?;
    node.netlink().set_link_mtu(device, mtu).map_err(failed)?;
    node.bring_up(DEVICE)?;
    let own = addressing.subnet(number);
    journal.address(node, device, own, addressing.host_prefix())?;
    let all = RouteSpec::to(addressing.cluster(), addressing.cluster_prefix());
    journal.route(node, all.dev(device))
}

fn endpoint(address: IpAddr) -> SocketAddrV4 {
    SocketAddrV4::new(v4(address), PORT)
}

fn v4(address: IpAddr) -> std::net::Ipv4Addr {
    match address {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => unreachable!("the network is of IPv4 only, and was checked to be"),
    }
}
