//! `host`: the baseline. Endpoints are in the nodes' own namespaces.

use plumbline_experiment::Placement;

use super::shape::between_nodes;
use super::{About, Builtin};
use crate::need::VETH;
use crate::{Hop, Journal, LabError, Topology};

pub(super) static NETWORK: Builtin = About {
    name: "host",
    aliases: &["host-network", "baseline"],
    summary: "endpoints in the nodes' own namespaces, no pods",
    needs: &[&VETH],
    pods: false,
    ..About::PLAIN
}
.attached_by(attach);

fn attach(topology: &Topology, _: &mut Journal) -> Result<Vec<Hop>, LabError> {
    Ok(match topology.placement {
        Placement::CrossNode => between_nodes(topology),
        Placement::SameNode => vec![Hop::sends(&topology.nodes[0], "lo")],
    })
}
