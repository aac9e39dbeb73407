//! Nodes, pods and the underlay between nodes, before any network.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use plumbline_experiment::{Family, Link, Placement};
use plumbline_sys::namespace::Namespace;
use plumbline_sys::netlink::{Address, LinkSpec, NetlinkError, RouteSpec, Socket};
use plumbline_sys::sysctl;

use crate::addressing::Addressing;
use crate::error::LabError;
use crate::journal::Journal;

/// The device of a node or pod that leads out of it.
pub const UPLINK: &str = "eth0";

/// Index number of the near end of the first pair that a namespace has; what
/// follows is for other pairs. Above what the kernel makes by itself in a new
/// namespace, and small, for maps of eBPF programs are tables by index. The
/// reason is at [`Pod::port_index`].
pub(crate) const NEAR_INDEX: u32 = 40;
/// Longest wait for a device. The kernel may take a second (`linkwatch`).
const SETTLE_LIMIT: Duration = Duration::from_secs(3);
const SETTLE_PAUSE: Duration = Duration::from_micros(200);

/// A namespace with a name.
#[derive(Debug)]
pub struct Place {
    /// `node1`, `pod2`, `router`.
    pub name: String,
    /// The namespace itself.
    pub namespace: Namespace,
}

impl Place {
    fn create(name: String, role: Role, family: Family) -> Result<Arc<Self>, LabError> {
        let namespace = Namespace::create()?;
        let settings = quiet(role, family);
        sysctl::set(&namespace, &settings).map_err(|source| LabError::Sysctl {
            place: name.clone(),
            source,
        })?;
        Ok(Arc::new(Self { name, namespace }))
    }

    /// The netlink socket inside.
    pub fn netlink(&self) -> &Socket {
        self.namespace.netlink()
    }

    /// The index of a device.
    pub fn index(&self, device: &str) -> Result<u32, LabError> {
        let link = self.netlink().link(device);
        link.map(|link| link.index)
            .map_err(|error| self.failed(error))
    }

    /// Brings a device up, and gives its index.
    pub fn bring_up(&self, device: &str) -> Result<u32, LabError> {
        let index = self.index(device)?;
        let up = self.netlink().set_link_up(index, true);
        up.map(|()| index).map_err(|error| self.failed(error))
    }

    /// Waits until a device carries packets and its addresses may be used. The
    /// kernel notices in the background that a link is up; until then IPv6 has
    /// no link-local address, and a first packet would wait a second.
    pub fn settle(&self, device: &str) -> Result<(), LabError> {
        let deadline = Instant::now() + SETTLE_LIMIT;
        while !self
            .is_settled(device)
            .map_err(|error| self.failed(error))?
        {
            if Instant::now() > deadline {
                return Err(LabError::Unsettled {
                    place: self.name.clone(),
                    device: device.into(),
                    limit: SETTLE_LIMIT,
                });
            }
            std::thread::sleep(SETTLE_PAUSE);
        }
        Ok(())
    }

    fn is_settled(&self, device: &str) -> Result<bool, NetlinkError> {
        let link = self.netlink().link(device)?;
        // Kernel 6.1, for one, takes a veth as running until it knows better.
        let carries = link.running && (link.state_known || link.kind != "veth");
        // Where no neighbour is looked for, nobody needs the address of the link,
        // which kernel 6.1 for one leaves tentative for up to a second there.
        let is_needed = |it: &Address| link.finds_neighbours || !is_link_local(it.address);
        let waits = |it: &Address| it.device == link.index && it.tentative && is_needed(it);
        Ok(carries && !self.netlink().addresses()?.iter().any(waits))
    }

    /// An error that happened here.
    pub fn failed(&self, source: NetlinkError) -> LabError {
        LabError::Netlink {
            place: self.name.clone(),
            source,
        }
    }
}

/// A pod: a namespace that belongs to a node.
#[derive(Debug)]
pub struct Pod {
    /// Its namespace.
    pub place: Arc<Place>,
    /// Index in [`Topology::nodes`] of the node that it runs on.
    pub node: usize,
    /// The address that the lab has for it, once a network has attached it.
    pub address: IpAddr,
    /// The address that a network gave it instead, where it gives out its own.
    pub assigned: OnceLock<IpAddr>,
    /// Position among all pods, from 1: unique in device names.
    pub number: usize,
}

impl Pod {
    /// The veth pair that joins the pod to its node, with [`UPLINK`] in the pod
    /// and `name` on the node, which is up; `mtu` in bytes.
    ///
    /// The two ends have different index numbers, which in two new namespaces
    /// would be equal by chance: kernels such as 6.1 take a device that has the
    /// number of its other end for one without another end, and tell that it is
    /// up only with the events of the next second (`linkwatch_urgent_event`).
    pub fn port(&self, name: &str, mtu: u32) -> LinkSpec<'_> {
        let peer = LinkSpec::peer(UPLINK)
            .mtu(mtu)
            .inside(&self.place.namespace);
        LinkSpec::veth(name, peer)
            .index(NEAR_INDEX + self.number as u32)
            .mtu(mtu)
            .up()
    }

    /// The address that others reach it by.
    pub fn reached_by(&self) -> IpAddr {
        *self.assigned.get().unwrap_or(&self.address)
    }
}

/// What joins the nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Underlay {
    /// A link between two nodes.
    #[default]
    Wire,
    /// A router with a link to each node, as the fabric of a cloud is.
    Router,
}

/// Nodes joined by an underlay, and pods that no network has attached yet.
///
/// All of it lives by its namespaces: dropping it is enough.
#[derive(Debug)]
pub struct Topology {
    /// `node1`, `node2`, …
    pub nodes: Vec<Arc<Place>>,
    /// Client first, then server. Empty where endpoints are on the nodes.
    pub pods: Vec<Pod>,
    /// The router between nodes, where there is one.
    pub router: Option<Arc<Place>>,
    /// The addresses.
    pub addressing: Addressing,
    /// MTU of the underlay in bytes.
    pub mtu: u32,
    /// Where the endpoints are.
    pub placement: Placement,
    /// What the underlay is made to be.
    pub link: Link,
}

/// Nodes of a lab.
const NODES: u8 = 2;

impl Topology {
    /// Makes the nodes, joins them, and makes the pods, one for the client and
    /// one for the server, unless `with_pods` is false.
    pub fn build(
        underlay: Underlay,
        with_pods: bool,
        placement: Placement,
        family: Family,
        mtu: u32,
    ) -> Result<Self, LabError> {
        let addressing = Addressing::new(family);
        let nodes = (1..=NODES)
            .map(|number| Place::create(format!("node{number}"), Role::Node, family))
            .collect::<Result<Vec<_>, _>>()?;
        let router = match underlay {
            Underlay::Wire => None,
            Underlay::Router => Some(Place::create("router".into(), Role::Node, family)?),
        };
        let homes: &[usize] = match (with_pods, placement) {
            (false, _) => &[],
            (true, Placement::CrossNode) => &[0, 1],
            (true, Placement::SameNode) => &[0, 0],
        };
        let mut pods: Vec<Pod> = Vec::new();
        for (at, node) in homes.iter().copied().enumerate() {
            let neighbours = pods.iter().filter(|pod| pod.node == node).count();
            pods.push(Pod {
                place: Place::create(format!("pod{}", at + 1), Role::Pod, family)?,
                node,
                address: addressing.pod(number(node), neighbours as u8),
                assigned: OnceLock::new(),
                number: at + 1,
            });
        }
        let topology = Self {
            nodes,
            pods,
            router,
            addressing,
            mtu,
            placement,
            link: Link {
                mtu,
                ..Link::default()
            },
        };
        match &topology.router {
            None => topology.wire()?,
            Some(router) => topology.route_through(router)?,
        }
        for node in &topology.nodes {
            node.settle(UPLINK)?;
        }
        Ok(topology)
    }

    /// Each node's number, from 1, and its namespace.
    pub fn numbered(&self) -> impl Iterator<Item = (u8, &Arc<Place>)> {
        self.nodes
            .iter()
            .enumerate()
            .map(|(at, node)| (number(at), node))
    }

    /// For each node, all the other nodes' numbers.
    pub fn remotes(&self, own: u8) -> impl Iterator<Item = u8> {
        (1..=self.nodes.len() as u8).filter(move |number| *number != own)
    }

    /// The node that a pod runs on.
    pub fn home(&self, pod: &Pod) -> &Arc<Place> {
        &self.nodes[pod.node]
    }

    /// The number, from 1, of the node that a pod runs on.
    pub fn home_number(&self, pod: &Pod) -> u8 {
        number(pod.node)
    }

    /// Gives a pod a device that shares its node's uplink, and its address in
    /// a network that all pods are in. `spec` takes the device's name and the
    /// uplink's index.
    pub fn place_on_uplink<'ns>(
        &self,
        pod: &'ns Pod,
        journal: &mut Journal,
        spec: impl FnOnce(&str, u32) -> LinkSpec<'ns>,
    ) -> Result<(), LabError> {
        let (home, place) = (self.home(pod), &pod.place);
        // Kernel 6.1, for one, refuses a name that the node has too, though the device
        // is made in the pod. So it gets its name there, as CNI plugins do it.
        let passing = format!("uplink{}", pod.number);
        let link = spec(&passing, home.index(UPLINK)?);
        journal.link_inside(home, place, link.mtu(self.mtu).inside(&place.namespace))?;
        let device = place.index(&passing)?;
        let renamed = place.netlink().rename_link(device, UPLINK);
        renamed.map_err(|error| place.failed(error))?;
        place.bring_up(UPLINK)?;
        journal.address(place, device, pod.address, self.addressing.cluster_prefix())
    }

    fn wire(&self) -> Result<(), LabError> {
        let (first, second) = (&self.nodes[0], &self.nodes[1]);
        let peer = LinkSpec::peer(UPLINK)
            .mtu(self.mtu)
            .inside(&second.namespace);
        let wire = LinkSpec::veth(UPLINK, peer)
            .index(NEAR_INDEX)
            .mtu(self.mtu)
            .up();
        first
            .netlink()
            .add_link(wire)
            .map_err(|error| first.failed(error))?;
        for (number, node) in self.numbered() {
            let device = node.bring_up(UPLINK)?;
            let address = self.addressing.node(number);
            node.netlink()
                .add_address(device, address, self.addressing.underlay_prefix())
                .map_err(|error| node.failed(error))?;
        }
        Ok(())
    }

    /// Joins every node to the router. A node knows its own address and the
    /// router, nothing else.
    fn route_through(&self, router: &Arc<Place>) -> Result<(), LabError> {
        let host = self.addressing.host_prefix();
        let gateway = self.addressing.router();
        for (number, node) in self.numbered() {
            let address = self.addressing.node(number);
            let peer = LinkSpec::peer(UPLINK).mtu(self.mtu).inside(&node.namespace);
            let link = LinkSpec::veth(&node.name, peer)
                .index(NEAR_INDEX + u32::from(number))
                .mtu(self.mtu)
                .up();
            let netlink = router.netlink();
            netlink
                .add_link(link)
                .map_err(|error| router.failed(error))?;
            let port = router.index(&node.name)?;
            let to_node = RouteSpec::to(address, host).dev(port);
            netlink
                .add_address(port, gateway, host)
                .and_then(|()| netlink.add_route(&to_node))
                .map_err(|error| router.failed(error))?;

            let device = node.bring_up(UPLINK)?;
            let out = RouteSpec::default_via(gateway).dev(device).onlink();
            node.netlink()
                .add_address(device, address, host)
                .and_then(|()| node.netlink().add_route(&out))
                .map_err(|error| node.failed(error))?;
        }
        Ok(())
    }
}

/// Whether a namespace forwards packets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Node,
    Pod,
}

/// Sysctls that make a namespace do nothing on its own, so that device counters
/// and latencies show the load alone. What a namespace would inherit from the
/// host or its modules (reverse path filters, netfilter on bridges) is set too,
/// for the same lab on every machine.
fn quiet(role: Role, family: Family) -> Vec<(String, String)> {
    let forward = if role == Role::Node { "1" } else { "0" };
    let mut settings = vec![("net/ipv4/ip_forward".to_string(), forward.to_string())];
    let mut both = |version: &str, key: &str, value: &str| {
        for device in ["all", "default"] {
            settings.push((format!("net/{version}/conf/{device}/{key}"), value.into()));
        }
    };
    both("ipv4", "rp_filter", "0");
    match family {
        Family::V4 if has_ipv6() => both("ipv6", "disable_ipv6", "1"),
        Family::V4 => {}
        Family::V6 => {
            both("ipv6", "disable_ipv6", "0");
            both("ipv6", "accept_dad", "0");
            both("ipv6", "accept_ra", "0");
            both("ipv6", "router_solicitations", "0");
            both("ipv6", "forwarding", forward);
        }
    }
    // Else a bridge hands each packet to netfilter, as routers do, on machines
    // that have the module: a cost of the machine that looks like the network's.
    if role == Role::Node && has_bridge_netfilter() {
        for table in ["arptables", "iptables", "ip6tables"] {
            settings.push((format!("net/bridge/bridge-nf-call-{table}"), "0".into()));
        }
    }
    settings
}

/// Whether bridged packets may be handed to netfilter (`br_netfilter`), and
/// namespaces can decline it.
pub(crate) fn has_bridge_netfilter() -> bool {
    std::path::Path::new("/proc/sys/net/bridge").exists()
}

/// Whether the kernel has IPv6.
pub(crate) fn has_ipv6() -> bool {
    std::path::Path::new("/proc/sys/net/ipv6").exists()
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(it) if it.is_unicast_link_local())
}

fn number(node: usize) -> u8 {
    // A lab has a handful of nodes.
    node as u8 + 1
}
