//! The flags of clusters: one, several side by side, or one after the other.

use plumbline_experiment::{Experiment, Layout as Pairs};
use plumbline_harness::Target;
use plumbline_kubernetes::{ClusterError, ClusterLayout, ClusterRequest};

use crate::cli::{PairingArgs, RunArgs};
use crate::command::BadUsage;
use crate::progress::say;

/// The target of what was typed. Connects to nothing yet.
pub(super) fn pick(
    run: &RunArgs,
    experiment: Option<&Experiment>,
) -> anyhow::Result<Box<dyn Target>> {
    let args = &run.target.cluster;
    let request = ClusterRequest {
        contexts: args.context.clone(),
        provision: args.provision.clone(),
        unprovision: args.unprovision.clone(),
        nodes: args.nodes.clone(),
        image: args.image.clone(),
        host_network: args.allow_host_network,
        layout: layout(&run.target.pairing),
        across_environments: run.across_environments,
        logs: match &run.resume {
            Some(directory) => directory.join("provision"),
            // Moved into the run directory when there is one.
            None => run.out.join(format!("provision-{}", std::process::id())),
        },
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

/// Which nodes are measured with which.
fn layout(pairing: &PairingArgs) -> ClusterLayout {
    match (pairing.layout(), pairing.pairs) {
        (Some(Pairs::Pairs), Some(pairs)) => ClusterLayout::Pairs(pairs as usize),
        (Some(_), _) => ClusterLayout::Mesh,
        (None, _) => ClusterLayout::Pair,
    }
}
