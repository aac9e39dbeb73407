//! The flags of clusters: one, several side by side, or one after the other.

use plumbline_experiment::{Experiment, Layout as Pairs};
use plumbline_harness::Target;
use plumbline_kubernetes::{ClusterError, ClusterLayout, ClusterRequest};

use super::of_clusters::OfClusters;
use crate::cli::{PairingArgs, TargetArgs};
use crate::command::BadUsage;
use crate::progress::say;

/// The target of what was typed. Connects to nothing yet.
pub(super) fn pick(
    target: &TargetArgs,
    experiment: Option<&Experiment>,
    OfClusters {
        across_environments,
        logs,
    }: OfClusters,
) -> anyhow::Result<Box<dyn Target>> {
    let args = &target.cluster;
    let request = ClusterRequest {
        contexts: args.context.clone(),
        provision: args.provision.clone(),
        unprovision: args.unprovision.clone(),
        nodes: args.nodes.clone(),
        namespace: args.namespace.clone(),
        image: args.image.clone(),
        host_network: args.allow_host_network,
        policy: !args.no_policy,
        layout: layout(&target.pairing),
        across_environments,
        logs,
        interrupted: plumbline_sys::signal::interruption()?,
    };
    request
        .open_target(experiment, &say)
        .map_err(|error| match error {
            ClusterError::Options(text) => BadUsage(text).into(),
            ClusterError::Experiment(error) => error.into(),
            other => other.into(),
        })
}

fn layout(pairing: &PairingArgs) -> ClusterLayout {
    match (pairing.layout(), pairing.pairs) {
        (Some(Pairs::Pairs), Some(pairs)) => ClusterLayout::Pairs(pairs as usize),
        (Some(_), _) => ClusterLayout::Mesh,
        (None, _) => ClusterLayout::Pair,
    }
}
