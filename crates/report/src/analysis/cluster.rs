//! What a run found in a cluster: its network, by configuration, daemons and devices.

use plumbline_record::{DeviceFingerprint, Fingerprint, Run, Trial};
use serde::Serialize;

/// A cluster that a run measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundCluster {
    /// Its name, where there are several.
    pub name: Option<String>,
    /// The system that made its network, such as `Calico`; `None` where it is unknown.
    pub network: Option<String>,
    /// How packets go from node to node, such as `VXLAN` or `native routes`; `None`
    /// where it is unknown.
    pub transport: Option<String>,
    /// The MTU between pods.
    pub mtu: Option<u32>,
    /// The mode of kube-proxy, or what replaces it; `None` where it is unknown.
    pub proxy: Option<String>,
    /// Whether a NetworkPolicy of the run stood before the pods that received.
    pub policy: bool,
    /// The two nodes that stand in all figures, each with its kernel.
    pub nodes: Vec<FoundNode>,
}

/// A node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundNode {
    /// Its name.
    pub name: String,
    /// The version of its kernel.
    pub kernel: String,
}

/// Systems by a part of their daemons' names. Canal is Calico's policy on Flannel.
const SYSTEMS: [(&str, &str); 12] = [
    ("canal", "Canal"),
    ("cilium", "Cilium"),
    ("calico", "Calico"),
    ("flannel", "Flannel"),
    ("antrea", "Antrea"),
    ("weave", "Weave"),
    ("kube-router", "kube-router"),
    ("kindnet", "kindnet"),
    ("ovn", "OVN-Kubernetes"),
    ("aws-node", "Amazon VPC CNI"),
    ("azure-cni", "Azure CNI"),
    ("gke-netd", "GKE netd"),
];

/// Facts by which a system is known whose daemons the API server does not show.
const TRACES: [(&str, &str); 5] = [
    ("network api cilium.io", "Cilium"),
    ("client node network projectcalico.org", "Calico"),
    ("network api crd.projectcalico.org", "Calico"),
    ("client node network flannel.alpha.coreos.com", "Flannel"),
    ("network api crd.antrea.io", "Antrea"),
];

/// Those of a run; none outside of Kubernetes. Where clusters were brought up for it,
/// the first of each network.
pub(super) fn found(run: &Run, trials: &[Trial]) -> Vec<FoundCluster> {
    let mut clusters: Vec<FoundCluster> = Vec::new();
    for set_up in trials.iter().filter_map(Trial::set_up) {
        let name = Some(set_up.network.clone());
        let is_new = clusters.iter().all(|it| it.name != name);
        if let Some(of) = set_up.fingerprint.as_ref().filter(|_| is_new) {
            clusters.push(one(name, of));
        }
    }
    if clusters.is_empty() {
        standing(run)
    } else {
        clusters
    }
}

/// Those that stood before the run.
fn standing(run: &Run) -> Vec<FoundCluster> {
    let whole = &run.fingerprint;
    let first = whole.devices.keys().next();
    let first = first.and_then(|path| Some(path.split_once('/')?.0.to_owned()));
    let others = whole.others.iter();
    let others = others.map(|(name, other)| (Some(name.clone()), other));
    let all = [(first, whole)].into_iter().chain(others);
    all.filter(|(_, of)| of.versions.contains_key("kubernetes"))
        .map(|(name, of)| one(name, of))
        .collect()
}

fn one(name: Option<String>, of: &Fingerprint) -> FoundCluster {
    let has_daemon = |part: &str| {
        let mut facts = of.versions.keys();
        facts.any(|fact| {
            fact.strip_prefix("daemon ")
                .is_some_and(|it| it.contains(part))
        })
    };
    let by_daemon = SYSTEMS.iter().find(|(part, _)| has_daemon(part));
    let by_trace = || {
        TRACES
            .iter()
            .find(|(fact, _)| of.versions.contains_key(*fact))
    };
    let system = by_daemon.or_else(by_trace).map(|(_, system)| *system);
    let node = |side: &str, machine: Option<&Fingerprint>| {
        Some(FoundNode {
            name: of.versions.get(&format!("{side} node name"))?.clone(),
            kernel: machine.unwrap_or(of).kernel.clone(),
        })
    };
    let nodes = [
        node("client", None),
        node("server", of.others.get("server")),
    ];
    FoundCluster {
        name,
        network: system.map(str::to_owned),
        transport: transport(system, of),
        mtu: mtu(of),
        proxy: proxy(of),
        policy: of.versions.contains_key("policy of the run"),
        nodes: nodes.into_iter().flatten().collect(),
    }
}

/// By the system's own configuration; where that says nothing, by a tunnel's device.
fn transport(system: Option<&str>, of: &Fingerprint) -> Option<String> {
    let fact = |name: &str| of.versions.get(name).map(String::as_str);
    let annotation = |network: &str| fact(&format!("client node network {network}"));
    let said = match system {
        Some("Cilium") => {
            let tunnel = fact("cilium tunnel-protocol").or(fact("cilium tunnel"));
            match (fact("cilium routing-mode"), tunnel) {
                (Some("native"), _) | (None, Some("disabled")) => Some("native routes"),
                (_, Some(tunnel)) => Some(tunnel),
                // What Cilium does where its settings do not say it.
                _ => fact("cilium settings").map(|_| "vxlan"),
            }
        }
        Some("Calico") => annotation("projectcalico.org").map(|text| {
            let tunnel = |device: &str, mode: &str, everywhere, beyond| {
                let is_within = fact(mode) == Some("CrossSubnet");
                let taken = if is_within { beyond } else { everywhere };
                text.contains(device).then_some(taken)
            };
            let vxlan = "native routes within a subnet and VXLAN beyond";
            let ipip = "native routes within a subnet and IP in IP beyond";
            tunnel("VXLANTunnel", "calico vxlanMode", "vxlan", vxlan)
                .or_else(|| tunnel("IPIPTunnel", "calico ipipMode", "ipip", ipip))
                .unwrap_or("native routes")
        }),
        Some("Flannel" | "Canal") => {
            let backend = annotation("flannel.alpha.coreos.com");
            // Its UDP backend writes no type.
            backend.and_then(|text| match text.split_once('=')?.1 {
                "" => Some("udp"),
                backend => Some(backend),
            })
        }
        Some("kindnet") => Some("native routes"),
        _ => None,
    };
    let tunnels = ["vxlan", "geneve", "ipip", "wireguard"];
    let by_device = || {
        let devices = || of.devices.values().flatten();
        tunnels
            .into_iter()
            .find(|tunnel| devices().any(|it| it.driver == *tunnel))
    };
    said.or_else(by_device).map(in_words)
}

fn in_words(transport: &str) -> String {
    match transport {
        "vxlan" => "VXLAN",
        "geneve" => "Geneve",
        "ipip" => "IP in IP",
        "wireguard" => "WireGuard",
        "udp" => "UDP in user space",
        "host-gw" => "native routes (host-gw)",
        other => other,
    }
    .to_owned()
}

/// The least on the path from pod to pod, or by a service.
fn mtu(of: &Fingerprint) -> Option<u32> {
    let is_of_pods = |path: &str| {
        !path
            .rsplit('/')
            .next()
            .is_some_and(|it| it.starts_with("host"))
    };
    let paths = of.devices.iter().filter(|(path, _)| is_of_pods(path));
    let own = |device: &DeviceFingerprint| device.route_mtu.unwrap_or(device.mtu);
    paths.flat_map(|(_, devices)| devices).map(own).min()
}

fn proxy(of: &Fingerprint) -> Option<String> {
    let fact = |name: &str| of.versions.get(name).map(String::as_str);
    let replaced = fact("cilium kube-proxy-replacement");
    if replaced.is_some_and(|it| matches!(it, "true" | "strict")) {
        return Some("Cilium instead of kube-proxy".to_owned());
    }
    let sides = ["client node kube-proxy", "server node kube-proxy"];
    match sides.map(fact) {
        [Some(near), Some(far)] if near != far => {
            Some(format!("kube-proxy with {near} and with {far}"))
        }
        [Some("none answers"), _] => Some("no kube-proxy that answers".to_owned()),
        [Some(mode), _] | [_, Some(mode)] => Some(format!("kube-proxy with {mode}")),
        [None, None] => None,
    }
}
