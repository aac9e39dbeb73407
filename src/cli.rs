//! The command line. Nothing here touches the system.

mod cluster;
mod find_max;
mod flags;
mod load;
mod plugin;
mod target;
mod value;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use plumbline_experiment::DriverChoice;

#[cfg(feature = "kubernetes")]
pub(crate) use cluster::ManifestKind;
pub(crate) use cluster::{CleanupArgs, ImageArgs, ManifestArgs};
pub(crate) use find_max::FindMaxArgs;
pub(crate) use flags::FlagArgs;
pub(crate) use load::{LoadArgs, ServeArgs};
pub(crate) use plugin::{is_plugin, typed};
#[cfg(feature = "kubernetes")]
pub(crate) use target::ClusterArgs;
pub(crate) use target::{HostsArgs, Kernel, PairingArgs, TargetArgs, TargetKind};

/// Measures what a container network costs, against plain host networking,
/// with an honest interval around every number.
///
/// `plumbline run` alone takes the tour: every network that this machine can
/// build, in about a minute, without root.
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
    /// Print verdicts, within a run or between runs; exit 1 when a limit is broken
    Compare(CompareArgs),
    /// Render a run again: HTML, Markdown, CSV, JSON or the terminal's table
    Report(ReportArgs),
    /// List experiments, networks or workloads
    List(ListArgs),
    /// Report what on this machine will disturb measurements, and how to remedy it
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Keep a lab standing to look around in it
    Lab(LabArgs),
    /// Send load to a server, like wrk or iperf3
    Load(Box<LoadArgs>),
    /// Answer load, as the other end of `load`
    Serve(ServeArgs),
    /// Run our engine against the tools that are installed, and print how far they agree
    Validate(ValidateArgs),
    /// Make the image for pods: this program and nothing else
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
    /// Be one endpoint of a trial (started by `run`, not by hand)
    #[command(hide = true)]
    Agent,
    /// Be the first process of a kernel (started by `--kernel uml`, not by hand)
    #[command(hide = true)]
    Guest(GuestArgs),
    /// Keep a pod alive so that agents can be started in it (started by `run`)
    #[command(hide = true)]
    Hold,
    /// Bare blocking round trips: what no generator can go below (started by `validate`)
    #[command(hide = true)]
    Floor(FloorArgs),
}

#[derive(Debug, Args)]
pub(crate) struct GuestArgs {
    /// What the kernel adds to its own command line
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) ignored: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A ready-made experiment (`plumbline list experiments`) or a TOML file
    #[arg(default_value = "tour", conflicts_with = "resume")]
    pub(crate) experiment: String,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) flags: FlagArgs,
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
    /// Print the result as JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
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

#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) action: LabAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabAction {
    /// Build a network between two nodes and keep it until Ctrl-C
    Up {
        /// Name of the network
        network: String,
        /// Directory with the plugins of `cni:FILE`
        #[arg(long, value_name = "DIR")]
        cni_bin: Vec<PathBuf>,
        /// cross-node or same-node
        #[arg(long, default_value = "cross-node")]
        placement: String,
        /// 4 or 6
        #[arg(long, default_value_t = 4)]
        family: u8,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Alternating pairs of each comparison; the interval needs six
    #[arg(long, value_name = "N", default_value_t = 6)]
    pub(crate) pairs: u32,
    /// Measured seconds of each run
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) seconds: u32,
    /// Only these comparisons, such as wrk,stream
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Also print the target of each figure, and whether it is reached
    #[arg(long)]
    pub(crate) figures: bool,
    /// Exit with code 1 when a figure misses its target
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FloorArgs {
    /// Where the server listens
    pub(crate) address: SocketAddr,
    /// Be the server
    #[arg(long)]
    pub(crate) serve: bool,
    /// Bytes each way
    #[arg(long, value_name = "BYTES", default_value_t = 16)]
    pub(crate) size: usize,
    /// Seconds to measure
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) seconds: u64,
    /// Instead of pinging, request `/` from an HTTP server over this many connections
    #[arg(long, value_name = "CONNECTIONS", conflicts_with_all = ["serve", "size"])]
    pub(crate) http: Option<usize>,
    /// System interface that carries requests and answers
    #[arg(long, value_parser = value::driver(), default_value = "epoll", requires = "http")]
    pub(crate) driver: DriverChoice,
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
