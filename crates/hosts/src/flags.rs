//! The flags of a target of hosts.

use std::path::PathBuf;

use clap::Args;

/// `--target hosts`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Two hosts (--target hosts)")]
pub struct HostsArgs {
    /// The machines, by their names for ssh: the sender, then the receiver; more with
    /// --mesh or --pairs
    #[arg(long, value_name = "HOST", conflicts_with = "pair")]
    pub host: Vec<String>,
    /// Two machines, compared with others as a network of this name, such as vm=user@a,user@b
    #[arg(long, value_name = "NAME=HOST,HOST")]
    pub pair: Vec<String>,
    /// Network to use between them, as a network, address or device, for both or for each
    #[arg(long, value_name = "[NAME=]WHAT[,WHAT]")]
    pub address: Vec<String>,
    /// Program to copy to them instead of this one, such as a static build
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Directory on them for the program; TMPDIR or /tmp unless given
    #[arg(long, value_name = "DIR")]
    pub host_directory: Option<String>,
    /// Configuration file for ssh instead of your own
    #[arg(long, value_name = "FILE")]
    pub ssh_config: Option<PathBuf>,
    /// Allow load to an address that is not loopback, private or reserved for benchmarks
    #[arg(long)]
    pub i_own_this: bool,
}

impl HostsArgs {
    /// The first flag that was given, for a message.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--host", !self.host.is_empty()),
            ("--pair", !self.pair.is_empty()),
            ("--address", !self.address.is_empty()),
            ("--program", self.program.is_some()),
            ("--host-directory", self.host_directory.is_some()),
            ("--ssh-config", self.ssh_config.is_some()),
            ("--i-own-this", self.i_own_this),
        ];
        given.iter().find(|(_, is)| *is).map(|(flag, _)| *flag)
    }
}
