//! The flags of clusters: one, several side by side, or one after the other.

use std::fs::File;

use plumbline_experiment::{Experiment, Provision, Wanted};
use plumbline_harness::Target;
use plumbline_kubernetes::{
    Cluster, ClusterOptions, Clusters, Layout, ProvisionOptions, Provisioned, image,
};

use crate::cli::{ClusterArgs, PairingArgs, RunArgs};
use crate::command::BadUsage;
use crate::progress::say;

/// The target of what was typed. Connects to nothing yet.
pub(super) fn pick(
    run: &RunArgs,
    experiment: Option<&Experiment>,
) -> anyhow::Result<Box<dyn Target>> {
    let args = &run.target.cluster;
    let in_file = experiment.map(Experiment::provision).transpose()?;
    let commands = commands(args, in_file.unwrap_or_default());
    let pairing = &run.target.pairing;
    if let Some(flag) = pairing.given()
        && (commands.up.is_some() || args.context.len() > 1)
    {
        return Err(BadUsage(format!(
            "{flag}: the nodes of one cluster are measured; leave out --provision, or all but one \
             --context"
        ))
        .into());
    }
    let mut options = options(args)?;
    if let Some(up) = commands.up {
        options.host_network = true;
        let logs = match &run.resume {
            Some(directory) => directory.join("provision"),
            // Moved into the run directory when there is one.
            None => run.out.join(format!("provision-{}", std::process::id())),
        };
        let mut target = Provisioned::new(ProvisionOptions {
            up,
            down: commands.down,
            limit: commands.limit,
            logs,
            across_environments: run.across_environments,
            cluster: options,
        })?;
        hand_image(&mut target, args);
        return Ok(Box::new(target));
    }
    if commands.down.is_some() {
        return Err(BadUsage(
            "--unprovision: takes down what --provision brought up; say that too".to_owned(),
        )
        .into());
    }
    if let Some(network) = names_a_cluster(experiment)?
        && args.context.len() < 2
    {
        return Err(BadUsage(format!(
            "`{network}` is to be the network of a cluster of its own: give --provision 'COMMAND', \
             which brings a cluster up with {{network}}, or --context for each that stands"
        ))
        .into());
    }
    if let [_, _, ..] = &args.context[..] {
        let across = run.across_environments;
        return Ok(Box::new(Clusters::open(&args.context, &options, across)?));
    }
    options.context = args.context.first().cloned();
    options.layout = layout(pairing);
    Ok(Box::new(Cluster::open(options)?))
}

/// The first network of an experiment of networks and paths that is no word for
/// all of them.
fn names_a_cluster(experiment: Option<&Experiment>) -> anyhow::Result<Option<String>> {
    let Some(experiment) = experiment else {
        return Ok(None);
    };
    if experiment.paths()?.is_empty() {
        return Ok(None);
    }
    let networks = experiment.networks()?;
    let is_cluster = |it: &String| Wanted::new(it).name().is_some();
    Ok(networks.into_iter().find(is_cluster))
}

/// What was typed outranks what the file says; contexts name clusters that stand.
fn commands(args: &ClusterArgs, in_file: Provision) -> Provision {
    let in_file = if args.context.is_empty() {
        in_file
    } else {
        Provision::default()
    };
    Provision {
        up: args.provision.clone().or(in_file.up),
        down: args.unprovision.clone().or(in_file.down),
        limit: in_file.limit,
    }
}

/// Which nodes are measured with which.
fn layout(pairing: &PairingArgs) -> Layout {
    match (pairing.pairs, pairing.given()) {
        (Some(pairs), _) => Layout::Pairs(pairs as usize),
        (None, Some(_)) => Layout::Mesh,
        (None, None) => Layout::Pair,
    }
}

fn options(args: &ClusterArgs) -> anyhow::Result<ClusterOptions> {
    let reference = || image::local_reference(env!("CARGO_PKG_VERSION"));
    Ok(ClusterOptions {
        kubeconfig: None,
        context: None,
        layout: Layout::Pair,
        nodes: args.nodes.clone(),
        image: args.image.clone().unwrap_or_else(reference),
        host_network: args.allow_host_network,
        started_by: started_by(),
        interrupted: plumbline_sys::signal::interruption()?,
    })
}

/// Hands the image of this program to the command that makes clusters, if it is
/// one that can be in an image and nobody named another.
fn hand_image(target: &mut Provisioned, args: &ClusterArgs) {
    if args.image.is_some() || std::env::var_os("PLUMBLINE_IMAGE").is_some() {
        return;
    }
    let reference = image::local_reference(env!("CARGO_PKG_VERSION"));
    let program = std::env::current_exe().and_then(File::open);
    let handed = program
        .map_err(image::ImageError::from)
        .and_then(|mut program| target.hand_image(&mut program, &reference));
    if let Err(error) = handed {
        say(&format!(
            "no image of this program for the clusters: {error}; so the command that brings them \
             up has to load {reference} itself, or name another with --image"
        ));
    }
}

/// Tells people who find the namespaces of a run whose they are.
fn started_by() -> String {
    let user = std::env::var("USER").unwrap_or_else(|_| "somebody".to_owned());
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let host = host.unwrap_or_else(|_| "an unnamed machine".to_owned());
    let host = host.trim();
    format!("{user} on {host}, process {}", std::process::id())
}
