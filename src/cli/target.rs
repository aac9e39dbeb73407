//! Where an experiment runs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use plumbline_experiment::Layout;
use plumbline_hosts::HostsArgs;

use super::plugin::is_plugin;

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
    /// The name on the command line and in run directories.
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
    /// Where to run; unless given, where the experiment says, else in the lab, or under `kubectl
    /// plumbline` in the cluster
    #[arg(long, value_enum)]
    pub(crate) target: Option<TargetKind>,
    #[command(flatten)]
    pub(crate) lab: InLabArgs,
    #[command(flatten)]
    pub(crate) hosts: HostsArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) pairing: PairingArgs,
}

impl TargetArgs {
    /// The target given on the command line, or else the experiment's; else the
    /// lab, or under `kubectl plumbline` the cluster that kubectl speaks to.
    pub(crate) fn kind(&self, asked: &str) -> TargetKind {
        let named = || {
            let kinds = TargetKind::value_variants().iter();
            kinds.copied().find(|kind| kind.name() == asked)
        };
        let usual = if is_plugin() {
            TargetKind::Kubernetes
        } else {
            TargetKind::Lab
        };
        self.target.or_else(named).unwrap_or(usual)
    }

    /// The baseline where neither experiment nor flags name one and host
    /// networking does not serve: the first of several clusters, because the
    /// question is then about their networks; where host networking is not
    /// allowed, the path nearest to it. What makes a cluster for the run says whether
    /// it is allowed there.
    pub(crate) fn instead_of_host(&self, asked: &str, provisioned: bool) -> Option<&str> {
        if self.kind(asked) != TargetKind::Kubernetes || provisioned {
            return None;
        }
        match &self.cluster.context[..] {
            [first, _, ..] => Some(first),
            _ if self.cluster.allow_host_network => None,
            _ => Some("pod"),
        }
    }
}

/// `--target kubernetes`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Kubernetes (--target kubernetes)")]
pub(crate) struct ClusterArgs {
    /// Context of the kubeconfig instead of the current one; repeat it to compare clusters
    #[arg(long, value_name = "NAME", conflicts_with = "provision")]
    pub(crate) context: Vec<String>,
    /// Command that brings up a cluster with one network ({network}), in each block anew
    #[arg(long, value_name = "COMMAND")]
    pub(crate) provision: Option<String>,
    /// Command that takes it down again, unless --provision says how
    #[arg(long, value_name = "COMMAND")]
    pub(crate) unprovision: Option<String>,
    /// Nodes of sender and receiver, or all of a mesh or of pairs; workers unless given
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) nodes: Vec<String>,
    /// Namespace that an administrator made (`manifest role`); otherwise each run makes one
    #[arg(long, value_name = "NAME", conflicts_with = "provision")]
    pub(crate) namespace: Option<String>,
    /// Image of the pods, such as one in your registry; `plumbline image` makes it
    #[arg(long, value_name = "REFERENCE")]
    pub(crate) image: Option<String>,
    /// Also run pods in the nodes' own networks (the baseline), in a privileged namespace
    #[arg(long)]
    pub(crate) allow_host_network: bool,
    /// Tune the nodes while the run lasts (`plumbline tune`), from a privileged pod on each
    #[arg(long)]
    pub(crate) allow_tuning: bool,
    /// Make no NetworkPolicy, which otherwise admits only the run's own pods to its receivers
    #[arg(long)]
    pub(crate) no_policy: bool,
}

impl ClusterArgs {
    /// The first flag that was given, for a message.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--context", !self.context.is_empty()),
            ("--provision", self.provision.is_some()),
            ("--unprovision", self.unprovision.is_some()),
            ("--nodes", !self.nodes.is_empty()),
            ("--namespace", self.namespace.is_some()),
            ("--image", self.image.is_some()),
            ("--allow-host-network", self.allow_host_network),
            ("--allow-tuning", self.allow_tuning),
            ("--no-policy", self.no_policy),
        ];
        given.iter().find(|(_, is)| *is).map(|(flag, _)| *flag)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kernel {
    /// The kernel of this machine
    Host,
    /// User-mode Linux: has nearly every driver, runs as a program, needs no root
    Uml,
}

/// `--target lab`.
#[derive(Debug, Args)]
#[command(next_help_heading = "The lab (--target lab)")]
pub(crate) struct InLabArgs {
    /// Kernel to run in; uml needs Debian's packages user-mode-linux and kmod
    #[arg(long, value_enum, default_value = "host")]
    pub(crate) kernel: Kernel,
    /// Directory with plugins of CNI; CNI_PATH, else /usr/lib/cni and /opt/cni/bin
    #[arg(long, value_name = "DIR")]
    pub(crate) cni_bin: Vec<PathBuf>,
    /// Keep idle CPUs from halting: in a virtual machine they may come back late
    #[arg(long, conflicts_with = "kernel")]
    pub(crate) awake: bool,
    /// Set what makes this machine's figures steadier while the run lasts, as root (`plumbline tune`)
    #[arg(long, conflicts_with = "kernel")]
    pub(crate) tune: bool,
}

impl InLabArgs {
    /// The first flag that was given, for a message.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--kernel uml", self.kernel == Kernel::Uml),
            ("--cni-bin", !self.cni_bin.is_empty()),
            ("--awake", self.awake),
            ("--tune, in a cluster --allow-tuning", self.tune),
        ];
        given.iter().find(|(_, is)| *is).map(|(flag, _)| *flag)
    }
}

/// Many nodes instead of a pair.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Many nodes (--target kubernetes or hosts)")]
pub(crate) struct PairingArgs {
    /// Measure every node with every other, and name those that are unlike the rest
    #[arg(long, conflicts_with = "pairs")]
    pub(crate) mesh: bool,
    /// Run every trial on N pairs of nodes at the same time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) pairs: Option<u32>,
}

impl PairingArgs {
    /// The layout that was asked for.
    pub(crate) fn layout(&self) -> Option<Layout> {
        match self.pairs {
            Some(_) => Some(Layout::Pairs),
            None => self.mesh.then_some(Layout::Mesh),
        }
    }

    /// The flag that was given, for a message.
    pub(crate) fn given(&self) -> Option<&'static str> {
        self.layout().map(|layout| match layout {
            Layout::Mesh => "--mesh",
            Layout::Pairs => "--pairs",
        })
    }
}
