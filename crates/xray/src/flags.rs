//! The flags of `plumbline xray`, and what they ask for. Nothing here touches the system.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use plumbline_tracer::AtSockets;

use crate::error::XrayError;
use crate::order::XrayOrder;

/// The target whose networks are looked into by consent.
const CLUSTER: &str = "kubernetes";

/// What consent is asked for.
const WOULD_MAKE: &str = "--target kubernetes: beside the pods of a run, xray would make a \
    namespace under the privileged profile and in it, on each node of a path, a pod in the node's \
    network, as root with the capabilities BPF and PERFMON and no others. It would load programs \
    into the nodes' kernels that run for each packet of anybody while a trial lasts, and keep \
    times and numbers of devices, no content. `plumbline manifest tracing` shows the pod; \
    --allow-tracing allows it";

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
    /// Follow one of so many requests, or fewer where that costs too much; taps follow one in 16
    /// at most, and in a power of two
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub one_in: u64,
    /// Where the networks are
    #[arg(
        long,
        default_value = "lab",
        value_parser = PossibleValuesParser::new(["lab", CLUSTER, "hosts"])
    )]
    pub target: String,
    /// In a cluster: allow a pod on each node of a path that may load programs into its kernel
    #[arg(long)]
    pub allow_tracing: bool,
    /// Have each node follow its half of the way apart, as nodes with kernels of their own do
    #[arg(long, conflicts_with = "taps")]
    pub by_node: bool,
    /// Use only what this version of Linux shows of messages at their sockets
    #[arg(
        long,
        value_name = "VERSION",
        conflicts_with = "taps",
        value_parser = PossibleValuesParser::new(AtSockets::VERSIONS.map(|(version, _)| version))
    )]
    pub as_linux: Option<String>,
    /// Tell apart what netfilter's hooks on the nodes take, as root: their cost is in it, of
    /// networks that have no rules too
    #[arg(long, conflicts_with_all = ["by_node", "taps"])]
    pub netfilter: bool,
    /// Use taps on the devices although programs at the kernel's tracepoints could be had
    #[arg(long)]
    pub taps: bool,
    /// Keep idle CPUs from halting: in a virtual machine they may come back late
    #[arg(long)]
    pub awake: bool,
    /// Write a page with a bar of hops for each network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The flags of a run whose networks are looked into when it has ended.
#[derive(Debug, Args)]
pub struct BesideArgs {
    /// Afterwards show where the microseconds of a request go on each path: `plumbline xray`
    #[arg(long, conflicts_with_all = ["kernel", "anonymise"])]
    pub xray: bool,
    /// In a cluster: allow a pod on each node of a path that may load programs into its kernel
    #[arg(long, requires = "xray")]
    pub allow_tracing: bool,
}

impl BesideArgs {
    /// Refuses what cannot be looked into: `target` is its word, `is_many` whether it is more
    /// than one pair of nodes in one cluster that stands.
    ///
    /// # Errors
    ///
    /// [`XrayError::Refused`], as [`XrayArgs::order`].
    pub fn check(&self, target: &str, is_many: bool) -> Result<(), XrayError> {
        if !self.xray {
            return Ok(());
        }
        let many = || {
            is_many.then(|| {
                "--xray: looks into one pair of nodes in one cluster that stands: leave it out of \
                 meshes, pairs, several clusters and those that are made for the run"
                    .to_owned()
            })
        };
        match without_leave(target, self.allow_tracing).or_else(many) {
            Some(why) => Err(XrayError::Refused(why)),
            None => Ok(()),
        }
    }
}

/// Why packets of this target are not followed, with that leave.
fn without_leave(target: &str, allow_tracing: bool) -> Option<String> {
    match (target, allow_tracing) {
        (CLUSTER, false) => Some(WOULD_MAKE.to_owned()),
        ("hosts", _) => Some(
            "--target hosts: xray looks into networks of a lab and of clusters, so far; between \
             hosts it would take a program with CAP_BPF and CAP_PERFMON on each"
                .to_owned(),
        ),
        ("lab", true) => Some(
            "--allow-tracing is for clusters; in the lab root needs no leave: leave it out, or \
             say --target kubernetes too"
                .to_owned(),
        ),
        _ => None,
    }
}

impl XrayArgs {
    /// Whether it is a cluster's networks that are asked for.
    pub fn is_in_cluster(&self) -> bool {
        self.target == CLUSTER
    }

    /// What the flags ask for, beside the networks; `of_clusters` is a flag that was given and
    /// is for clusters.
    ///
    /// # Errors
    ///
    /// [`XrayError::Refused`] for targets whose packets cannot be followed yet, for a cluster
    /// without leave, and for flags of another target.
    pub fn order(&self, of_clusters: Option<&str>) -> Result<XrayOrder, XrayError> {
        match self.refusal(of_clusters) {
            Some(why) => Err(XrayError::Refused(why)),
            None => Ok(XrayOrder {
                rounds: self.rounds as usize,
                one_in: self.one_in,
                taps: self.taps,
                netfilter: self.netfilter,
                by_node: self.by_node,
                at_sockets: self.as_linux.as_deref().and_then(AtSockets::of),
                ..XrayOrder::default()
            }),
        }
    }

    fn refusal(&self, of_clusters: Option<&str>) -> Option<String> {
        let of_lab = [
            ("--taps", self.taps),
            ("--netfilter", self.netfilter),
            ("--awake", self.awake),
            ("--as-linux", self.as_linux.is_some()),
        ];
        let of_lab = of_lab.iter().find(|(_, is_given)| *is_given);
        without_leave(&self.target, self.allow_tracing).or_else(|| match self.is_in_cluster() {
            true => of_lab.map(|(flag, _)| format!("{flag} is for a lab: leave it out")),
            false => of_clusters.map(|flag| format!("{flag}: say --target kubernetes too")),
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

    fn order(typed: &[&str]) -> Result<XrayOrder, XrayError> {
        let typed = [&["xray"], typed].concat();
        Typed::parse_from(typed).args.order(None)
    }

    fn refusal(typed: &[&str]) -> String {
        let refused = order(typed).unwrap_err();
        assert!(refused.is_usage());
        refused.to_string()
    }

    #[test]
    fn a_cluster_is_looked_into_by_consent_to_what_is_said() {
        let refused = refusal(&["--target", "kubernetes"]);
        for part in [
            "would make a namespace",
            "BPF and PERFMON",
            "--allow-tracing",
        ] {
            assert!(refused.contains(part), "{part} is not in {refused}");
        }
        assert!(order(&["--target", "kubernetes", "--allow-tracing"]).is_ok());
    }

    #[test]
    fn flags_of_another_target_are_refused() {
        assert!(refusal(&["--target", "hosts"]).contains("CAP_BPF"));
        assert!(refusal(&["--allow-tracing"]).contains("for clusters"));
        let by_taps = ["--target", "kubernetes", "--allow-tracing", "--taps"];
        assert!(refusal(&by_taps).contains("--taps is for a lab"));
        let in_lab = Typed::parse_from(["xray"]).args;
        let refused = in_lab.order(Some("--image")).unwrap_err().to_string();
        assert!(
            refused.contains("--image: say --target kubernetes"),
            "{refused}"
        );
    }

    #[test]
    fn a_run_is_refused_before_it_begins_what_it_could_not_look_into() {
        let check = |xray, allow_tracing, target, is_many| {
            let beside = BesideArgs {
                xray,
                allow_tracing,
            };
            let refused = beside.check(target, is_many).err();
            refused.map(|it| it.to_string()).unwrap_or_default()
        };
        assert!(check(true, false, CLUSTER, false).contains("--allow-tracing allows it"));
        assert!(check(true, true, CLUSTER, true).contains("one cluster that stands"));
        assert!(check(true, false, "hosts", false).contains("CAP_BPF"));
        assert_eq!(check(true, true, CLUSTER, false), "");
        assert_eq!(check(true, false, "lab", false), "");
        assert_eq!(check(false, false, "hosts", true), "");
    }

    #[test]
    fn twelve_rounds_of_the_usual_networks_are_the_default() {
        let args = Typed::parse_from(["xray"]).args;
        assert_eq!(args.network, ["usual"]);
        assert_eq!(args.order(None).unwrap().rounds, 12);
    }
}
