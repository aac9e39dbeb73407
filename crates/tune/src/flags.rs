//! The flags of `plumbline tune`.

use std::ffi::OsString;

use clap::{ArgGroup, Args};

/// The flags of `plumbline tune`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["show", "restore", "command"])))]
pub struct TuneArgs {
    /// Print what would be set on this machine, and why; sets nothing, and needs no root
    #[arg(long)]
    pub show: bool,
    /// Put back what a killed `plumbline tune` or `run --tune` has left
    #[arg(long)]
    pub restore: bool,
    /// With --show, print JSON
    #[arg(long, conflicts_with_all = ["restore", "command"])]
    pub json: bool,
    /// Command to run meanwhile; its exit code is passed on
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
