//! Where an experiment runs.

use clap::{Args, ValueEnum};

/// A kind of place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TargetKind {
    /// Networks between namespaces of this machine
    Lab,
    /// Pods of a Kubernetes cluster
    Kubernetes,
    /// Two machines that are reached by ssh
    Hosts,
}

impl TargetKind {
    /// As it is typed, and as run directories record it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lab => "lab",
            Self::Kubernetes => "kubernetes",
            Self::Hosts => "hosts",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// Where to run
    #[arg(long, value_enum, default_value = "lab")]
    pub(crate) target: TargetKind,
}
