//! The command line. Nothing here touches the system.

mod cluster;
mod flags;
#[cfg(target_os = "linux")]
mod linux;
mod plugin;
mod target;

#[cfg(not(target_os = "linux"))]
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use plumbline_gate::GateArgs;
use plumbline_report::gap_limit::GapLimit;

#[cfg(feature = "kubernetes")]
pub(crate) use cluster::ManifestKind;
pub(crate) use cluster::{CleanupArgs, ImageArgs, ManifestArgs};
pub(crate) use flags::FlagArgs;
#[cfg(target_os = "linux")]
pub(crate) use linux::{DoctorArgs, FloorArgs, LabAction, LabArgs, LinuxCommand, XrayCommand};
pub(crate) use plugin::{is_plugin, typed};
pub(crate) use target::{ClusterArgs, InLabArgs, Kernel, PairingArgs, TargetArgs, TargetKind};

/// Measures what a container network costs, against plain host networking,
/// with an honest interval around every number.
///
/// `plumbline run` alone takes the tour: one network for each usual way from node
/// to node, in about a minute, without root.
#[derive(Debug, Parser)]
#[command(
    name = "plumbline",
    version,
    max_term_width = 100,
    propagate_version = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Run an experiment and report on it
    Run(Box<RunArgs>),
    /// Run a command while traffic goes on, again and again: what broke, and for how long;
    /// exit 1 when a limit is broken
    Survive(Box<SurviveArgs>),
    /// Find out whether a network is worse than another, for CI: exit 1 when it is, 2 when that
    /// is undecided
    Gate(Box<GateRunArgs>),
    /// Print verdicts, within a run or between runs; exit 1 when a limit is broken
    Compare(CompareArgs),
    /// Render a run again: HTML, Markdown, CSV, JSON or the terminal's table
    Report(ReportArgs),
    /// List experiments, networks or workloads
    List(ListArgs),
    #[cfg(target_os = "linux")]
    #[command(flatten)]
    Linux(LinuxCommand),
    #[cfg(not(target_os = "linux"))]
    #[command(external_subcommand)]
    Linux(Vec<OsString>),
    /// Make the image for pods: this program and nothing else
    ///
    /// The file loads into nodes without a registry:
    ///   containerd  ctr --namespace k8s.io images import FILE   (on each node)
    ///   kind        kind load image-archive FILE
    ///   k3s         k3s ctr images import FILE                  (on each node)
    ///   minikube    minikube image load FILE
    ///   registry    skopeo copy oci-archive:FILE docker://REFERENCE, then run with --image REFERENCE
    #[command(verbatim_doc_comment)]
    Image(ImageArgs),
    /// Remove what killed runs have left in a cluster
    Cleanup(CleanupArgs),
    /// Print manifests for the administrator of a cluster
    Manifest(ManifestArgs),
    /// Print a completion script
    Completions {
        /// Which shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write those of all commands into a directory
    Man {
        /// Write one page per command into this directory
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A ready-made experiment (`plumbline list experiments`) or a TOML file
    #[arg(default_value = "tour", conflicts_with = "resume")]
    pub(crate) experiment: String,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) flags: FlagArgs<true>,
    #[cfg(target_os = "linux")]
    #[command(flatten)]
    pub(crate) beside: plumbline_xray::BesideArgs,
    /// Set any key of the experiment, such as design.retries=3
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Directory in which to make the directory of the run
    #[arg(
        long,
        value_name = "DIR",
        default_value = "runs",
        conflicts_with = "resume"
    )]
    pub(crate) out: PathBuf,
    /// Continue a run that was cut off, as it was planned
    #[arg(long, value_name = "RUN", conflicts_with = "set")]
    pub(crate) resume: Option<PathBuf>,
    /// With --resume, continue although the environment has changed since the run was started;
    /// with several clusters, compare them although their nodes differ
    #[arg(long)]
    pub(crate) across_environments: bool,
    /// With --resume, go on although another build of Plumbline began the run; tables say so
    #[arg(long, requires = "resume")]
    pub(crate) mix_builds: bool,
    /// Record and show pseudonyms in place of names, addresses and paths; cannot be resumed
    #[arg(long, conflicts_with = "resume")]
    pub(crate) anonymise: bool,
    /// Run the commands that the experiment's file, or the run to resume, names; without it
    /// they are only shown
    #[arg(long)]
    pub(crate) allow_commands: bool,
    /// Print the result as JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(mut_arg("experiment", |it| it.default_value("survive")))]
pub(crate) struct SurviveArgs {
    /// Exit with code 1 when any repetition has a longer gap, such as gap=1s
    #[arg(long, value_name = "gap=TIME")]
    pub(crate) limit: Option<GapLimit>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(Debug, Args)]
#[command(mut_arg("experiment", |it| it.default_value("gate")))]
pub(crate) struct GateRunArgs {
    #[command(flatten)]
    pub(crate) gate: GateArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// One run directory, or several to compare with the first
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// Exit with code 1 when an overhead is larger, such as p50=10%
    #[arg(long, value_name = "METRIC=SHARE")]
    pub(crate) limit: Vec<String>,
    /// Compare although the environments differ
    #[arg(long)]
    pub(crate) across_environments: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The table that `run` prints
    Terminal,
    /// One page that opens without a network
    Html,
    /// For a pull request or a wiki
    Markdown,
    /// One row per treatment and metric
    Csv,
    /// For scripts
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The run directory
    pub(crate) run: PathBuf,
    /// Format of the output
    #[arg(long, value_enum, default_value = "terminal")]
    pub(crate) format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Compare with this network of the run instead of the run's own baseline
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<String>,
    /// Show pseudonyms in place of names, addresses and paths
    #[arg(long)]
    pub(crate) anonymise: bool,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Listing {
    /// Ready-made experiments
    Experiments,
    /// Networks, with "available" or what is missing
    Networks,
    /// Kinds of load
    Workloads,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// What to list
    #[arg(value_enum, default_value = "networks")]
    pub(crate) what: Listing,
    /// Kernel whose networks to list; uml needs Debian's packages user-mode-linux and kmod
    #[arg(long, value_enum, default_value = "host")]
    pub(crate) kernel: Kernel,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
