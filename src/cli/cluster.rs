//! Commands for clusters other than `run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct ImageArgs {
    /// File to write the archive to
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Program to put into it instead of this one: static, for the nodes' architecture
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
    /// Reference of the image
    #[arg(long, value_name = "REFERENCE")]
    pub(crate) reference: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CleanupArgs {
    /// Runs to remove, as the list shows them; without any, those that you started from
    /// this machine
    #[arg(value_name = "RUN", conflicts_with = "all")]
    pub(crate) runs: Vec<String>,
    /// Look in the namespace that runs share, and not for namespaces of runs
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Remove what the runs of others left too
    #[arg(long)]
    pub(crate) all: bool,
    /// Context of the kubeconfig instead of the current one
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Remove it; without this flag it is only listed. A run that may go on is never removed
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ManifestKind {
    /// The rights that a run needs in one namespace (--namespace)
    Role,
    /// The right to see the nodes, which a mesh and pairs need besides
    Nodes,
    /// The pod from which `xray` follows packets on a node (--allow-tracing), to read
    Tracing,
    /// The pod from which a run tunes a node (--allow-tuning), to read
    Tuning,
}

#[derive(Debug, Args)]
pub(crate) struct ManifestArgs {
    /// Which manifest
    #[arg(value_enum)]
    pub(crate) what: ManifestKind,
}
