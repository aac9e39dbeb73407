//! The commands that need Linux.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use plumbline_doctor::PathTrials;
use plumbline_experiment::DriverChoice;
use plumbline_generator::{LoadArgs, ServeArgs, driver_word};
use plumbline_lab::{FAULTS, PathFault};
use plumbline_tune::TuneArgs;
use plumbline_validation::ValidateArgs;
use plumbline_xray::XrayArgs;

use super::flags::FlagArgs;
use super::target::{ClusterArgs, TargetArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum LinuxCommand {
    /// Report what on this machine will disturb measurements, or what is wrong with a path, and
    /// how to remedy it
    Doctor(Box<DoctorArgs>),
    /// Set what makes this machine's figures steadier, as root, while a command runs
    Tune(TuneArgs),
    /// Show where the microseconds of a request go: the path, hop by hop
    Xray(Box<XrayCommand>),
    /// Keep a lab standing to look around in it
    Lab(LabArgs),
    /// Send load to a server, like wrk or iperf3
    Load(Box<LoadArgs>),
    /// Answer load, as the other end of `load`
    Serve(ServeArgs),
    /// Run our engine against the tools that are installed, and print how far they agree
    Validate(ValidateArgs),
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
pub(crate) struct XrayCommand {
    #[command(flatten)]
    pub(crate) args: XrayArgs,
    /// Directory with the plugins of `cni:FILE`, in a lab
    #[arg(long, value_name = "DIR", conflicts_with = "allow_tracing")]
    pub(crate) cni_bin: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) flags: FlagArgs<false>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Look at a path instead: of a network that is built for it in a lab, or, with --target,
    /// between two hosts or two pods, also of pods that are there (NAMESPACE/NAME twice)
    #[arg(long, value_name = "NETWORK|ENDS", num_args = 0..=2)]
    pub(crate) path: Option<Vec<String>>,
    #[command(flatten)]
    pub(crate) trials: PathTrials,
    /// Plant a fault on the path, in a lab
    #[arg(long, requires = "path", value_parser = fault())]
    pub(crate) fault: Option<&'static PathFault>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) flags: FlagArgs<false>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn fault() -> impl TypedValueParser<Value = &'static PathFault> {
    let words = FAULTS.iter();
    let words = words.map(|it| PossibleValue::new(it.name).help(it.about));
    PossibleValuesParser::new(words).try_map(|typed| {
        let found = FAULTS.iter().find(|it| it.name == typed);
        found.ok_or("no such fault")
    })
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
        /// Plant a fault on its path
        #[arg(long, value_parser = fault())]
        fault: Option<&'static PathFault>,
        /// Directory with the plugins of `cni:FILE`
        #[arg(long, value_name = "DIR")]
        cni_bin: Vec<PathBuf>,
        #[command(flatten)]
        flags: FlagArgs<false>,
    },
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
    #[arg(long, value_parser = driver_word(), default_value = "epoll", requires = "http")]
    pub(crate) driver: DriverChoice,
}
