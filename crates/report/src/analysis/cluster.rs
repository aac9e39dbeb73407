//! What a run found in a cluster: its network, by configuration, daemons and devices.

use plumbline_record::{
    DeviceFingerprint, Fingerprint, KUBE_PROXY_FACTS, KUBE_PROXY_SILENT as SILENT, Run, Trial,
};
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
    /// The two nodes that stand in all figures, each with its kernel; of a mesh or
    /// of pairs all nodes.
    pub nodes: Vec<FoundNode>,
}

/// A node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundNode {
    /// Its name.
    pub name: String,
    /// The version of its kernel; `None` where it is unknown.
    pub kernel: Option<String>,
}

/// Systems by a part of their daemons' names. Canal is Calico's policy on Flannel, and the
/// name of Kube-OVN has that of another in it.
const SYSTEMS: [(&str, &str); 13] = [
    ("canal", "Canal"),
    ("cilium", "Cilium"),
    ("calico", "Calico"),
    ("flannel", "Flannel"),
    ("antrea", "Antrea"),
    ("weave", "Weave"),
    ("kube-router", "kube-router"),
    ("kindnet", "kindnet"),
    ("kube-ovn", "Kube-OVN"),
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
    all.filter(|(_, of)| is_cluster(of))
        .map(|(name, of)| one(name, of))
        .collect()
}

/// Whether it is the environment of a cluster, and not of a machine alone.
fn is_cluster(of: &Fingerprint) -> bool {
    of.versions.contains_key("kubernetes")
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
    FoundCluster {
        name,
        network: system.map(str::to_owned),
        transport: transport(system, of),
        mtu: mtu(of),
        proxy: proxy(of),
        policy: of.versions.contains_key("policy of the run"),
        nodes: nodes(of),
    }
}

/// The two of all figures, and then the others of a mesh or of pairs.
fn nodes(of: &Fingerprint) -> Vec<FoundNode> {
    let sides = ["client", "server"].map(|side| of.versions.get(&format!("{side} node name")));
    let mut names: Vec<&str> = sides.into_iter().flatten().map(String::as_str).collect();
    let all = of.versions.keys();
    for name in all.filter_map(|fact| fact.strip_prefix("node ")) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let node = |(at, name): (usize, &str)| FoundNode {
        name: name.to_owned(),
        kernel: kernel(of, at, name),
    };
    names.into_iter().enumerate().map(node).collect()
}

/// That of the node at a place: as an agent saw it there, else as the API server shows it, and
/// where neither says anything the nodes share one.
fn kernel(of: &Fingerprint, at: usize, name: &str) -> Option<String> {
    let machine = |name: &str| of.others.get(name).filter(|it| !is_cluster(it));
    let seen = match at {
        0 => Some(of),
        1 => machine("server").or_else(|| machine(name)),
        _ => machine(name),
    };
    let shown = || {
        let facts = of.versions.get(&format!("node {name}"))?;
        Some(facts.rsplit_once(", ")?.1)
    };
    let seen = seen.map(|it| it.kernel.as_str());
    let kernel = seen.filter(|it| !it.is_empty()).or_else(shown);
    let kernel = kernel.unwrap_or(&of.kernel);
    (!kernel.is_empty()).then(|| kernel.to_owned())
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
    Some(match KUBE_PROXY_FACTS.map(fact) {
        [None, None] => return None,
        [Some(SILENT), Some(SILENT) | None] | [None, Some(SILENT)] => {
            "no kube-proxy that answers".to_owned()
        }
        [Some(SILENT), Some(mode)] | [Some(mode), Some(SILENT)] => {
            format!("kube-proxy with {mode} on one node, and none that answers on the other")
        }
        [Some(near), Some(far)] if near != far => format!("kube-proxy with {near} and with {far}"),
        [Some(mode), _] | [_, Some(mode)] => format!("kube-proxy with {mode}"),
    })
}
