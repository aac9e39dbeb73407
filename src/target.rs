//! The target that was asked for.

mod hosts;
#[cfg(feature = "kubernetes")]
mod kubernetes;
mod of_clusters;

use plumbline_experiment::Experiment;
use plumbline_harness::Target;

use crate::cli::{TargetArgs, TargetKind};
use crate::command::{BadUsage, linux};
pub(crate) use of_clusters::OfClusters;

/// What kind of target was asked for.
///
/// # Errors
///
/// Flags of a target that was not.
pub(crate) fn kind(
    args: &TargetArgs,
    experiment: Option<&Experiment>,
) -> Result<TargetKind, BadUsage> {
    let kind = args.kind(experiment.map_or("", Experiment::target));
    let given = [
        (TargetKind::Lab, args.lab.given()),
        (TargetKind::Kubernetes, args.cluster.given()),
        (TargetKind::Hosts, args.hosts.given()),
    ];
    for (of, flag) in given {
        if let (true, Some(flag)) = (of != kind, flag) {
            let name = of.name();
            return Err(BadUsage(format!("{flag}: say --target {name} too")));
        }
    }
    match (kind, args.pairing.given()) {
        (TargetKind::Lab, Some(flag)) => Err(BadUsage(format!(
            "{flag}: a lab has two nodes; say --target kubernetes or --target hosts too"
        ))),
        _ => Ok(kind),
    }
}

/// The target of that kind, with nothing done in it yet.
///
/// To be called before the first thread: only a process without threads can enter a
/// user namespace, which the lab needs.
pub(crate) fn pick(
    kind: TargetKind,
    args: &TargetArgs,
    experiment: Option<&Experiment>,
    of_clusters: OfClusters,
) -> anyhow::Result<Box<dyn Target>> {
    match kind {
        TargetKind::Lab => linux::target(&args.lab),
        TargetKind::Hosts => hosts::pick(&args.hosts, &args.pairing, experiment),
        TargetKind::Kubernetes => clusters(&args.cluster, &args.pairing, experiment, of_clusters),
    }
}

#[cfg(feature = "kubernetes")]
pub(crate) use kubernetes::pick as clusters;

#[cfg(not(feature = "kubernetes"))]
pub(crate) fn clusters(
    _: &crate::cli::ClusterArgs,
    _: &crate::cli::PairingArgs,
    _: Option<&Experiment>,
    _: OfClusters,
) -> anyhow::Result<Box<dyn Target>> {
    Err(crate::command::no_clusters())
}
