//! The flags of clusters: one, several side by side, or one after the other.

use plumbline_experiment::Experiment;
use plumbline_harness::Target;
use plumbline_kubernetes::{ClusterError, ClusterLayout, ClusterRequest};

use super::of_clusters::OfClusters;
use crate::cli::{ClusterArgs, PairingArgs};
use crate::command::BadUsage;
use crate::progress::say;

/// The target of what was typed. Connects to nothing yet.
pub(crate) fn pick(
    args: &ClusterArgs,
    pairing: &PairingArgs,
    experiment: Option<&Experiment>,
    also: OfClusters,
) -> anyhow::Result<Box<dyn Target>> {
    let request = ClusterRequest {
        contexts: args.context.clone(),
        provision: args.provision.clone(),
        unprovision: args.unprovision.clone(),
        nodes: args.nodes.clone(),
        namespace: args.namespace.clone(),
        image: args.image.clone(),
        host_network: args.allow_host_network,
        policy: !args.no_policy,
        tracing: also.tracing,
        tuning: args.allow_tuning,
        layout: match pairing.pairs {
            Some(pairs) => ClusterLayout::Pairs(pairs as usize),
            None if pairing.mesh => ClusterLayout::Mesh,
            None => ClusterLayout::Pair,
        },
        between: also.between,
        across_environments: also.across_environments,
        logs: also.logs,
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
