//! Pairs of endpoints beside that of a path, for who works there meanwhile.

use std::sync::Arc;

use plumbline_agent::try_toil;
use plumbline_experiment::{NeighbourKind, Neighbours, Placement};
use plumbline_protocol::Toil;
use plumbline_sys::netlink::RouteSpec;

use super::dressed::{BarePath, NeighbourEnd, NeighbourPair};
use crate::error::LabError;
use crate::journal::Journal;
use crate::place::{NamespaceRole, Place};
use crate::topology::{NEAR_INDEX, Pod, Topology, UPLINK, veth};

/// Numbers of subnets of the second pair, and of the link that its nodes have for it, where
/// those of pods are numbered like their nodes.
const SUBNETS: [u8; 2] = [33, 34];
const LINK: u8 = 35;
/// Index numbers of its devices on nodes, above those of pods, and their names.
const FIRST_INDEX: u32 = NEAR_INDEX + 10;
const PORTS: [&str; 2] = ["beside1", "beside2"];
const LINK_DEVICE: &str = "beside";

/// Whether a network can have such neighbours, of which `has_pods` says whether its
/// endpoints are in pods.
///
/// # Errors
///
/// [`LabError::Unsupported`] where it cannot.
pub(super) fn check(neighbours: Neighbours, has_pods: bool) -> Result<(), LabError> {
    match neighbours.share_link() && !neighbours.are_alike() && !has_pods {
        true => Err(LabError::Unsupported {
            what: "share = \"link\" on a network whose endpoints are the nodes".to_owned(),
            needs: "it has no second pair of endpoints; use share = \"node\", or a network of pods"
                .to_owned(),
        }),
        false => Ok(()),
    }
}

/// Makes the endpoints of each neighbour, and finds out whether what they are to do is
/// possible. Those that do not share the network's own way have one pair of pods together.
///
/// # Errors
///
/// [`LabError::Unsupported`] where the kernel lacks something.
pub(super) fn put_on(
    neighbours: Neighbours,
    path: BarePath<'_>,
    journal: &mut Journal,
) -> Result<Vec<NeighbourPair>, LabError> {
    let topology = path.topology;
    if neighbours.is_none() {
        return Ok(Vec::new());
    }
    if neighbours.share_link() && !topology.pods.is_empty() {
        return Ok(on_the_networks_way(topology));
    }
    let pair = match neighbours.kind {
        NeighbourKind::Cpu => on_the_far_node(topology),
        NeighbourKind::PolicyChurn => {
            let beside = on_the_far_node(topology);
            try_rules(
                &beside.server.place,
                Toil::Rules(topology.addressing.family()),
            )?;
            beside
        }
        NeighbourKind::None => between_nodes(topology),
        _ => on_own_links(topology, journal)?,
    };
    Ok(vec![pair; neighbours.number() as usize])
}

/// The last pods of a network.
fn on_the_networks_way(topology: &Topology) -> Vec<NeighbourPair> {
    let end = |pod: &Pod| NeighbourEnd {
        place: Arc::clone(&pod.place),
        address: pod.reached_by(),
    };
    let last = topology.pods.len() - 2 * topology.company.pairs;
    let pairs = topology.pods[last..].chunks_exact(2);
    let pairs = pairs.map(|pair| NeighbourPair {
        client: end(&pair[0]),
        server: end(&pair[1]),
        is_on_its_way: true,
    });
    pairs.collect()
}

/// Where endpoints are on the nodes, those of all pairs are.
fn between_nodes(topology: &Topology) -> NeighbourPair {
    NeighbourPair {
        client: on_node(topology, 0),
        server: on_node(topology, far(topology)),
        is_on_its_way: true,
    }
}

/// Work that sends nothing is done on the receiver's node.
fn on_the_far_node(topology: &Topology) -> NeighbourPair {
    let end = on_node(topology, far(topology));
    NeighbourPair {
        client: end.clone(),
        server: end,
        is_on_its_way: false,
    }
}

fn on_node(topology: &Topology, node: usize) -> NeighbourEnd {
    NeighbourEnd {
        place: Arc::clone(&topology.nodes[node]),
        address: topology.addressing.node(node as u8 + 1),
    }
}

fn far(topology: &Topology) -> usize {
    match topology.placement {
        Placement::CrossNode => 1,
        Placement::SameNode => 0,
    }
}

fn try_rules(node: &Place, rules: Toil) -> Result<(), LabError> {
    let tried = node.namespace.run(|| try_toil(rules))?;
    tried.map_err(|error| match error.is_unsupported() {
        true => LabError::Unsupported {
            what: "neighbours = \"policy-churn\"".to_owned(),
            needs: format!("needs CONFIG_NF_TABLES; try `modprobe nf_tables` ({error})"),
        },
        false => node.failed(error),
    })
}

/// Two pods that are routed by their nodes, over a link of their own.
fn on_own_links(topology: &Topology, journal: &mut Journal) -> Result<NeighbourPair, LabError> {
    let addressing = topology.addressing;
    let (prefix, family) = (addressing.subnet_prefix(), addressing.family());
    let homes = [0, far(topology)];
    let mut ends = Vec::new();
    for (at, home) in homes.into_iter().enumerate() {
        let (node, subnet, port) = (&topology.nodes[home], SUBNETS[at], PORTS[at]);
        let place = Place::create(format!("neighbour{}", at + 1), NamespaceRole::Pod, family)?;
        let index = FIRST_INDEX + at as u32;
        let spec = veth(port, index, UPLINK, &place, topology.mtu);
        let near = journal.link(node, port, spec)?;
        journal.address(node, near, addressing.gateway(subnet), prefix)?;
        let device = place.bring_up(UPLINK)?;
        let address = addressing.pod(subnet, 0);
        journal.address(&place, device, address, prefix)?;
        let out = RouteSpec::default_via(addressing.gateway(subnet)).dev(device);
        journal.add(&place, out)?;
        node.settle(port)?;
        place.settle(UPLINK)?;
        ends.push(NeighbourEnd { place, address });
    }
    if topology.placement == Placement::CrossNode {
        join(topology, journal)?;
    }
    let [client, server] = <[NeighbourEnd; 2]>::try_from(ends).unwrap_or_else(|_| unreachable!());
    Ok(NeighbourPair {
        client,
        server,
        is_on_its_way: false,
    })
}

/// Gives the nodes a link of their own for the second pair, and routes over it.
fn join(topology: &Topology, journal: &mut Journal) -> Result<(), LabError> {
    let addressing = topology.addressing;
    let prefix = addressing.subnet_prefix();
    let (first, second) = (&topology.nodes[0], &topology.nodes[1]);
    let index = FIRST_INDEX + PORTS.len() as u32;
    let spec = veth(LINK_DEVICE, index, LINK_DEVICE, second, topology.mtu);
    journal.link(first, LINK_DEVICE, spec)?;
    second.bring_up(LINK_DEVICE)?;
    let own = |at: usize| addressing.pod(LINK, at as u8);
    for (at, node) in [first, second].into_iter().enumerate() {
        let device = node.index(LINK_DEVICE)?;
        journal.address(node, device, own(at), prefix)?;
        let other = 1 - at;
        let route = RouteSpec::to(addressing.subnet(SUBNETS[other]), prefix);
        journal.add(node, route.via(own(other)).dev(device))?;
        node.settle(LINK_DEVICE)?;
    }
    Ok(())
}
