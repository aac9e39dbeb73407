//! The flags of clusters: one, several side by side, or one after the other.

use plumbline_experiment::{Experiment, Layout as Pairs};
use plumbline_harness::Target;
use plumbline_kubernetes::{ClusterError, ClusterLayout, ClusterRequest};

use crate::cli::{ClusterArgs, PairingArgs, RunArgs};
use crate::command::BadUsage;
use crate::progress::say;

/// The target of what was typed. Connects to nothing yet.
pub(super) fn pick(
    run: &RunArgs,
    experiment: Option<&Experiment>,
) -> anyhow::Result<Box<dyn Target>> {
    let args = &run.target.cluster;
    check_commands(args, experiment)?;
    let request = ClusterRequest {
        contexts: args.context.clone(),
        provision: args.provision.clone(),
        unprovision: args.unprovision.clone(),
        nodes: args.nodes.clone(),
        namespace: args.namespace.clone(),
        image: args.image.clone(),
        host_network: args.allow_host_network,
        policy: !args.no_policy,
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

/// Refuses commands that were not typed: a file, or a run to resume, may come from
/// somebody else.
fn check_commands(args: &ClusterArgs, experiment: Option<&Experiment>) -> anyhow::Result<()> {
    let file = experiment.map(Experiment::provision).transpose()?;
    let file = file.unwrap_or_default();
    let stands = !args.context.is_empty();
    let up = file.up.filter(|_| args.provision.is_none() && !stands);
    let makes = up.is_some() || args.provision.is_some();
    let down = file.down.filter(|_| args.unprovision.is_none() && makes);
    let named = [("up", up), ("down", down)].into_iter();
    let named: Vec<String> = named
        .filter_map(|(key, command)| Some(format!("\n  {key} = {}", command?)))
        .collect();
    if named.is_empty() || args.allow_commands {
        return Ok(());
    }
    Err(BadUsage(format!(
        "the experiment names commands that would be run on this machine:{}\nread them, and say \
         --allow-commands to have them run",
        named.concat()
    ))
    .into())
}

fn layout(pairing: &PairingArgs) -> ClusterLayout {
    match (pairing.layout(), pairing.pairs) {
        (Some(Pairs::Pairs), Some(pairs)) => ClusterLayout::Pairs(pairs as usize),
        (Some(_), _) => ClusterLayout::Mesh,
        (None, _) => ClusterLayout::Pair,
    }
}
