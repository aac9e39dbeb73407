//! Nodes, pods and the underlay between nodes, before any network.

use std::net::IpAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

use plumbline_experiment::{Family, Link, Placement, Tuning};
use plumbline_sys::netlink::{AddressSpec, LinkSpec, RouteSpec};
use plumbline_sys::scratch::Scratch;

use crate::addressing::Addressing;
use crate::error::LabError;
use crate::journal::Journal;
use crate::place::{NamespaceRole, Place};

/// The device of a node or pod that leads out of it.
pub const UPLINK: &str = "eth0";

/// Index number of the near end of the first pair that a namespace has; what
/// follows is for other pairs. Above what the kernel makes by itself in a new
/// namespace, and small, for maps of eBPF programs are tables by index. The
/// reason is at [`Pod::port`].
pub(crate) const NEAR_INDEX: u32 = 40;

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
    /// number of its other end for one without another end, and report it as
    /// up only with the events of the next second (`linkwatch_urgent_event`).
    pub fn port(&self, name: &str, mtu: u32) -> LinkSpec<'_> {
        let index = NEAR_INDEX + self.number as u32;
        veth(name, index, UPLINK, &self.place, mtu)
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

/// Pods that stand beside the client and the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Company {
    /// How many stand beside the server and do nothing.
    pub idle: usize,
    /// How many further pairs there are, placed as the first.
    pub pairs: usize,
}

/// Nodes joined by an underlay, and pods that no network has attached yet.
///
/// All of it lives by its namespaces: dropping it is enough.
#[derive(Debug)]
pub struct Topology {
    /// `node1`, `node2`, …
    pub nodes: Vec<Arc<Place>>,
    /// Client first, then server, then whoever stands beside them, further pairs last.
    /// Empty where endpoints are on the nodes.
    pub pods: Vec<Pod>,
    /// Who stands beside them.
    pub company: Company,
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
    /// What networks set differently as they make their devices, and what is set on them
    /// when they stand.
    pub tuning: Tuning,
    /// Where the programs that attach pods keep what they have to remember, once there are
    /// any.
    pub(crate) storage: OnceLock<Arc<Scratch>>,
    /// Addresses of each node that pods had which are gone.
    pub(crate) used: AtomicUsize,
}

/// Nodes of a lab.
const NODES: u8 = 2;

impl Topology {
    /// Makes the nodes, joins them by `link`, and makes the pods, one for the client
    /// and one for the server, unless `with_pods` is false; and those that stand beside
    /// them. What is set differently on the network is `tuning`.
    pub fn build(
        underlay: Underlay,
        with_pods: bool,
        company: Company,
        placement: Placement,
        family: Family,
        (link, tuning): (Link, Tuning),
    ) -> Result<Self, LabError> {
        let addressing = Addressing::new(family);
        let nodes = (1..=NODES)
            .map(|number| Place::create(format!("node{number}"), NamespaceRole::Node, family))
            .collect::<Result<Vec<_>, _>>()?;
        let router = match underlay {
            Underlay::Wire => None,
            Underlay::Router => Some(Place::create("router".into(), NamespaceRole::Node, family)?),
        };
        let far = match placement {
            Placement::CrossNode => 1,
            Placement::SameNode => 0,
        };
        let homes = match with_pods {
            false => Vec::new(),
            true => {
                let pairs = [0, far].repeat(company.pairs);
                [vec![0, far], vec![far; company.idle], pairs].concat()
            }
        };
        let mut pods: Vec<Pod> = Vec::new();
        for (at, node) in homes.into_iter().enumerate() {
            let others = pods.iter().filter(|pod| pod.node == node).count();
            pods.push(Pod {
                place: Place::create(format!("pod{}", at + 1), NamespaceRole::Pod, family)?,
                node,
                address: addressing.pod(number(node), others as u8),
                assigned: OnceLock::new(),
                number: at + 1,
            });
        }
        let topology = Self {
            nodes,
            pods,
            company,
            router,
            addressing,
            mtu: link.mtu,
            placement,
            link,
            tuning,
            storage: OnceLock::new(),
            used: AtomicUsize::new(0),
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

    /// Makes a further pod on a node, which no network has attached yet. Its number is unique
    /// among all pods; `index` is its place among the addresses of the node.
    pub(crate) fn further_pod(
        &self,
        of_pod: usize,
        node: usize,
        index: u8,
    ) -> Result<Pod, LabError> {
        let family = self.addressing.family();
        Ok(Pod {
            place: Place::create(format!("pod{of_pod}"), NamespaceRole::Pod, family)?,
            node,
            address: self.addressing.pod(number(node), index),
            assigned: OnceLock::new(),
            number: of_pod,
        })
    }

    /// Each node's number, from 1, and its namespace.
    pub fn numbered(&self) -> impl Iterator<Item = (u8, &Arc<Place>)> {
        self.nodes
            .iter()
            .enumerate()
            .map(|(at, node)| (number(at), node))
    }

    /// The address of a node, or else that of the router between nodes.
    pub(crate) fn address_of(&self, place: &Arc<Place>) -> IpAddr {
        let mut nodes = self.numbered();
        let node = nodes.find(|(_, node)| Arc::ptr_eq(node, place));
        node.map_or(self.addressing.router(), |(number, _)| {
            self.addressing.node(number)
        })
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
        place.ask(|it| it.rename_link(device, UPLINK))?;
        place.bring_up(UPLINK)?;
        journal.done("device");
        journal.address(place, device, pod.address, self.addressing.cluster_prefix())?;
        journal.done("address");
        Ok(())
    }

    /// A route to the pods of node `number`.
    pub(crate) fn pods_of(&self, number: u8) -> RouteSpec {
        let addressing = self.addressing;
        RouteSpec::to(addressing.subnet(number), addressing.subnet_prefix())
    }

    /// Gives each node a route to each other node's pods, by that node's address.
    pub(crate) fn route_between_nodes(&self, journal: &mut Journal) -> Result<(), LabError> {
        self.numbered().try_for_each(|(own, node)| {
            self.route_to_others(own, node, journal, |remote| self.pods_of(remote))
        })
    }

    /// Gives node `own` the route `to` each other node, by that node's address.
    pub(crate) fn route_to_others(
        &self,
        own: u8,
        node: &Arc<Place>,
        journal: &mut Journal,
        to: impl Fn(u8) -> RouteSpec,
    ) -> Result<(), LabError> {
        let uplink = node.index(UPLINK)?;
        self.remotes(own).try_for_each(|remote| {
            let gateway = self.addressing.node(remote);
            journal.add(node, to(remote).via(gateway).dev(uplink))
        })
    }

    fn wire(&self) -> Result<(), LabError> {
        let (first, second) = (&self.nodes[0], &self.nodes[1]);
        first.ask(|it| it.add_link(veth(UPLINK, NEAR_INDEX, UPLINK, second, self.mtu)))?;
        for (number, node) in self.numbered() {
            let device = node.bring_up(UPLINK)?;
            let address = self.addressing.node(number);
            let address = AddressSpec::new(device, address, self.addressing.underlay_prefix());
            node.ask(|it| it.add(&address))?;
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
            let index = NEAR_INDEX + u32::from(number);
            router.ask(|it| it.add_link(veth(&node.name, index, UPLINK, node, self.mtu)))?;
            let port = router.index(&node.name)?;
            router.ask(|it| it.add(&AddressSpec::new(port, gateway, host)))?;
            router.ask(|it| it.add(&RouteSpec::to(address, host).dev(port)))?;

            let device = node.bring_up(UPLINK)?;
            let out = RouteSpec::default_via(gateway).dev(device).onlink();
            node.ask(|it| it.add(&AddressSpec::new(device, address, host)))?;
            node.ask(|it| it.add(&out))?;
        }
        Ok(())
    }
}

/// A pair of devices of this MTU: `name` at `index`, which is up, and `peer_name`
/// in another place.
pub(crate) fn veth<'a>(
    name: &str,
    index: u32,
    peer_name: &str,
    peer_place: &'a Place,
    mtu: u32,
) -> LinkSpec<'a> {
    let peer = LinkSpec::peer(peer_name).mtu(mtu);
    let peer = peer.inside(&peer_place.namespace);
    LinkSpec::veth(name, peer).index(index).mtu(mtu).up()
}

fn number(node: usize) -> u8 {
    // A lab has a handful of nodes.
    node as u8 + 1
}
