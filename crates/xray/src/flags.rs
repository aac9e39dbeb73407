//! The flags of `plumbline xray`, and what they ask for. Nothing here touches the system.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::error::XrayError;
use crate::order::XrayOrder;

/// The flags of `plumbline xray`.
#[derive(Debug, Args)]
pub struct XrayArgs {
    /// Networks, such as host-gw,vxlan, the first of which the others are compared with; those
    /// of the tour unless given
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "usual",
        hide_default_value = true
    )]
    pub network: Vec<String>,
    /// Load whose requests are followed: rr, over one TCP connection
    #[arg(long, value_name = "KIND", default_value = "rr", value_parser = PossibleValuesParser::new(["rr"]))]
    pub workload: String,
    /// How often each network is looked at; intervals need six
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Follow one of so many requests, or fewer where that costs too much
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub one_in: u64,
    /// Where the networks are
    #[arg(
        long,
        default_value = "lab",
        value_parser = PossibleValuesParser::new(["lab", "kubernetes", "hosts"])
    )]
    pub target: String,
    /// In a cluster: allow a pod that may load programs into the kernels of its nodes
    #[arg(long)]
    pub allow_tracing: bool,
    /// Have each node follow its half of the way apart, as nodes with kernels of their own would
    #[arg(long, conflicts_with = "taps")]
    pub by_node: bool,
    /// Use taps on the devices although programs at the kernel's tracepoints could be had
    #[arg(long)]
    pub taps: bool,
    /// Keep idle CPUs from halting, as root: in a virtual machine they may come back late
    #[arg(long)]
    pub awake: bool,
    /// Write a page with a bar of hops for each network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl XrayArgs {
    /// What the flags ask for, beside the networks.
    ///
    /// # Errors
    ///
    /// [`XrayError::Refused`] for targets whose packets cannot be followed yet.
    pub fn order(&self) -> Result<XrayOrder, XrayError> {
        if self.target != "lab" {
            return Err(XrayError::Refused(format!(
                "--target {}: xray looks into the lab's networks only, so far; what it would take \
                 elsewhere is a program with CAP_BPF and CAP_PERFMON on each node",
                self.target
            )));
        }
        if self.allow_tracing {
            return Err(XrayError::Refused(
                "--allow-tracing is for clusters; in the lab root needs no leave: leave it out"
                    .to_owned(),
            ));
        }
        Ok(XrayOrder {
            rounds: self.rounds as usize,
            one_in: self.one_in,
            taps: self.taps,
            by_node: self.by_node,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        args: XrayArgs,
    }

    fn refusal(typed: &[&str]) -> String {
        let typed = [&["xray"], typed].concat();
        let args = Typed::parse_from(typed).args;
        let refused = args.order().unwrap_err();
        assert!(refused.is_usage());
        refused.to_string()
    }

    #[test]
    fn what_is_not_followed_yet_is_refused_with_the_reason() {
        assert!(refusal(&["--target", "kubernetes"]).contains("CAP_BPF"));
        assert!(refusal(&["--allow-tracing"]).contains("clusters"));
    }

    #[test]
    fn twelve_rounds_of_the_usual_networks_are_the_default() {
        let args = Typed::parse_from(["xray"]).args;
        assert_eq!(args.network, ["usual"]);
        assert_eq!(args.order().unwrap().rounds, 12);
    }
}
