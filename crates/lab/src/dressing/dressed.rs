//! What a dressing is laid on, and what it makes of that.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use plumbline_record::NodeRules;
use plumbline_sys::counters::conntrack;

use super::policies::enforcement::Enforcement;
use crate::error::LabError;
use crate::place::Place;
use crate::topology::Topology;

/// What a dressing is laid on.
#[derive(Clone, Copy)]
pub(crate) struct BarePath<'a> {
    pub(crate) topology: &'a Topology,
    pub(crate) client: &'a Place,
    pub(crate) server: &'a Place,
    /// Where the receiver is reached.
    pub(crate) receiver: IpAddr,
}

/// What a dressing makes of a path.
#[derive(Default)]
pub(crate) struct Dressed {
    /// Where the sender sends to, where that is not the receiver.
    pub(crate) front: Option<SocketAddr>,
    /// The port that the receiver has to listen on; 0 for any.
    pub(crate) port: u16,
    /// Whether services have sets of `ipset` on the nodes.
    pub(super) has_sets: bool,
    /// What was written on which node.
    pub(super) rules: Vec<(Arc<Place>, RuleCount)>,
    /// Shows whether policies act, where there are some.
    pub(crate) enforcement: Option<Enforcement>,
    /// The endpoints of each neighbour.
    pub(crate) beside: Vec<NeighbourPair>,
}

/// The pair of endpoints of a neighbour.
#[derive(Clone)]
pub(crate) struct NeighbourPair {
    pub(crate) client: NeighbourEnd,
    pub(crate) server: NeighbourEnd,
    /// Whether its packets cross the path's own devices on the nodes.
    pub(crate) is_on_its_way: bool,
}

/// An endpoint of it.
#[derive(Clone)]
pub(crate) struct NeighbourEnd {
    pub(crate) place: Arc<Place>,
    pub(crate) address: IpAddr,
}

/// How much was written on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RuleCount {
    pub(super) rules: u64,
    pub(super) chains: u64,
    pub(super) elements: u64,
}

impl Dressed {
    /// Adds what was written on a node.
    pub(super) fn count(&mut self, node: &Arc<Place>, count: RuleCount) {
        let mut nodes = self.rules.iter_mut();
        match nodes.find(|(known, _)| Arc::ptr_eq(known, node)) {
            Some((_, sum)) => {
                sum.rules += count.rules;
                sum.chains += count.chains;
                sum.elements += count.elements;
            }
            None => self.rules.push((Arc::clone(node), count)),
        }
    }

    /// What stands on each node, and how many connections it tracks.
    pub(crate) fn rules(&self) -> Result<Vec<NodeRules>, LabError> {
        let of_node = |(node, count): &(Arc<Place>, RuleCount)| {
            let tracked = node.namespace.run(conntrack)?;
            let tracked = tracked.map_err(|source| LabError::Counters {
                place: node.name.clone(),
                source,
            })?;
            Ok(NodeRules {
                namespace: node.name.clone(),
                rules: count.rules,
                chains: count.chains,
                elements: count.elements,
                connections: tracked.entries,
                connections_max: tracked.max,
                connections_dropped: tracked.dropped,
            })
        };
        self.rules.iter().map(of_node).collect()
    }
}
