//! `host`: the baseline. Endpoints are in the nodes' own namespaces.

use plumbline_experiment::{Family, Placement};

use super::shape::between_nodes;
use super::{About, Network, WireFormat};
use crate::error::LabError;
use crate::hop::Hop;
use crate::journal::Journal;
use crate::need::VETH;
use crate::topology::{Topology, Underlay};

pub(super) struct Host;

static ABOUT: About = About {
    name: "host",
    aliases: &["host-network", "baseline"],
    summary: "endpoints in the nodes' own namespaces, no pods",
    needs: &[&VETH],
    underlay: Underlay::Wire,
    wire: WireFormat::Plain,
    families: Family::BOTH,
    pods: false,
};

impl Network for Host {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn attach(&self, topology: &Topology, _: &mut Journal) -> Result<Vec<Hop>, LabError> {
        Ok(match topology.placement {
            Placement::CrossNode => between_nodes(topology),
            Placement::SameNode => vec![Hop::sends(&topology.nodes[0], "lo")],
        })
    }
}
