//! The environment: both nodes, the paths' devices, the cluster (C-13).

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use plumbline_experiment::Placement;
use plumbline_harness::TargetError;
use plumbline_record::{DeviceFingerprint, Fingerprint};

use crate::error::ClusterError;
use crate::path::ClusterPath;
use crate::policy::RunPolicy;
use crate::proxy_mode;
use crate::seat::PathKey;
use crate::session::ClusterConnection;

/// Annotations of nodes by which networks say what they are.
const NETWORK_ANNOTATIONS: &[&str] = &[
    "flannel.alpha.coreos.com/backend-type",
    // Calico's tunnels after its address, so that they stand where there are any.
    "projectcalico.org/IPv4Address",
    "projectcalico.org/IPv4VXLANTunnelAddr",
    "projectcalico.org/IPv4IPIPTunnelAddr",
    "network.cilium.io/ipv4-pod-cidr",
    "node.antrea.io/mac-address",
    "kube-router.io/pod-cidrs",
    "ovn.kubernetes.io/allocated",
];

/// Names of DaemonSets that are networks, or parts of one.
const NETWORK_DAEMONS: &[&str] = &[
    "flannel",
    "calico",
    "cilium",
    "antrea",
    "weave",
    "kube-router",
    "kindnet",
    "ovn",
    "canal",
    "aws-node",
    "azure-cni",
    "gke-netd",
    "multus",
];

/// Groups of the API by which networks are known whose daemons are not DaemonSets.
const NETWORK_APIS: &[&str] = &["cilium.io", "crd.projectcalico.org", "crd.antrea.io"];

/// What of Cilium's configuration says which way packets take.
const CILIUM_SETTINGS: &[&str] = &[
    "routing-mode",
    "tunnel-protocol",
    "tunnel",
    "kube-proxy-replacement",
];

/// What of Calico's pools says which way packets take.
const CALICO_MODES: &[&str] = &["vxlanMode", "ipipMode"];

/// The fact that the run's own NetworkPolicy stands.
pub(crate) const POLICY: &str = "policy of the run";

const HIDDEN: &str = "not shown to this account";

/// What the agents saw of the machines, and the devices of the paths.
pub(crate) fn of_paths(paths: &BTreeMap<PathKey, ClusterPath>) -> Result<Fingerprint, TargetError> {
    let mut whole: Option<Fingerprint> = None;
    let mut devices = BTreeMap::new();
    let mut others = BTreeMap::new();
    for (key, path) in paths {
        let (near, far) = path.machines();
        whole.get_or_insert_with(|| near.fingerprint.clone());
        if key.placement == Placement::CrossNode && !path.is_one_kernel_posing_as_two() {
            others
                .entry("server".to_owned())
                .or_insert_with(|| far.fingerprint.clone());
        }
        let seen = path.sights().flat_map(|(sight, seat)| {
            sight.devices.iter().map(move |device| DeviceFingerprint {
                namespace: seat.to_string(),
                ..device.clone()
            })
        });
        // Copies are alike.
        devices.entry(key.name()).or_insert_with(|| seen.collect());
    }
    // Where no path stands, nobody has looked at a machine of the cluster.
    let mut whole = whole.unwrap_or_default();
    whole.versions.extend(proxy_mode::asked(paths));
    whole.devices = devices;
    whole.others = others;
    Ok(whole)
}

/// What the API server reports about itself, the nodes and the network.
pub(crate) fn add_cluster<'a>(
    whole: &mut Fingerprint,
    session: &ClusterConnection,
    nodes_of_pair: impl Iterator<Item = &'a str>,
) -> Result<(), ClusterError> {
    let client = session.client();
    let version = session.call("report its version", client.apiserver_version())?;
    let mut facts = BTreeMap::from([("kubernetes".to_owned(), version.git_version)]);
    let nodes: Api<Node> = Api::all(session.client());
    for (side, name) in ["client", "server"].into_iter().zip(nodes_of_pair) {
        let what = format!("read node {name}");
        match session.call(&what, nodes.get(name)) {
            Ok(node) => of_node(&mut facts, side, &node),
            Err(ClusterError::Forbidden { .. }) => {
                facts.insert(format!("{side} node name"), name.to_owned());
                facts.insert(format!("{side} node system"), HIDDEN.to_owned());
            }
            Err(error) => return Err(error),
        }
    }
    let daemons: Api<DaemonSet> = Api::all(session.client());
    let all = ListParams::default();
    // A network need not be a DaemonSet, and an account need not see them.
    let daemons = match session.call("list the DaemonSets", daemons.list(&all)) {
        Ok(found) => found.items,
        Err(ClusterError::Forbidden { .. }) => {
            facts.insert("network daemons".to_owned(), HIDDEN.to_owned());
            Vec::new()
        }
        Err(error) => return Err(error),
    };
    daemons.iter().for_each(|it| of_daemon(&mut facts, it));
    if !facts.keys().any(|fact| fact.starts_with("daemon ")) {
        match session.call("list the groups of the API", client.list_api_groups()) {
            Ok(found) => {
                let names = found.groups.into_iter().map(|group| group.name);
                let networks = names.filter(|name| NETWORK_APIS.contains(&name.as_str()));
                let fact = |name| (format!("network api {name}"), "served".to_owned());
                facts.extend(networks.map(fact));
            }
            Err(ClusterError::Forbidden { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let is_known = |names: [&str; 2]| names.iter().any(|it| facts.contains_key(*it));
    let is_cilium = is_known(["daemon cilium", "network api cilium.io"]);
    let is_calico = is_known(["daemon calico-node", "network api crd.projectcalico.org"]);
    if is_cilium {
        let found = proxy_mode::settings(session, "cilium-config")?;
        found.iter().for_each(|it| of_cilium(&mut facts, it));
    }
    if is_calico {
        let kind = GroupVersionKind::gvk("crd.projectcalico.org", "v1", "IPPool");
        let kind = ApiResource::from_gvk_with_plural(&kind, "ippools");
        let pools: Api<DynamicObject> = Api::all_with(session.client(), &kind);
        match session.call("list Calico's pools", pools.list(&all)) {
            Ok(found) => of_calico(&mut facts, &found.items),
            Err(error) if error.is_away() => return Err(error),
            // Calico may keep them elsewhere.
            Err(_) => {}
        }
    }
    whole.versions.extend(facts);
    proxy_mode::add_settings(whole, session, &daemons)
}

/// The policy of the run, which is a part of what is measured; nothing where none stands,
/// as in runs of earlier builds.
pub(crate) fn add_policy(whole: &mut Fingerprint, policy: &RunPolicy) {
    if let RunPolicy::Stands(_) = policy {
        let fact = "admits its own pods".to_owned();
        whole.versions.insert(POLICY.to_owned(), fact);
    }
}

fn of_node(facts: &mut BTreeMap<String, String>, side: &str, node: &Node) {
    let mut add = |fact: &str, value: String| facts.insert(format!("{side} node {fact}"), value);
    add("name", node.name_any());
    if let Some(info) = node.status.as_ref().and_then(|it| it.node_info.as_ref()) {
        add("kubelet", info.kubelet_version.clone());
        add("runtime", info.container_runtime_version.clone());
        add("system", info.os_image.clone());
    }
    for annotation in NETWORK_ANNOTATIONS {
        if let Some(value) = node.annotations().get(*annotation) {
            let network = annotation.split('/').next().unwrap_or(annotation);
            // An address of a tunnel says that there is one, and changes.
            let address = value.split('/').next().unwrap_or(value);
            let value = if address.parse::<std::net::IpAddr>().is_ok() {
                "present"
            } else {
                value
            };
            add(
                &format!("network {network}"),
                format!("{annotation}={value}"),
            );
        }
    }
}

fn of_cilium(facts: &mut BTreeMap<String, String>, settings: &ConfigMap) {
    let data = settings.data.iter().flatten();
    let telling = data.filter(|(key, _)| CILIUM_SETTINGS.contains(&key.as_str()));
    facts.insert("cilium settings".to_owned(), "seen".to_owned());
    facts.extend(telling.map(|(key, value)| (format!("cilium {key}"), value.clone())));
}

/// The modes of all pools that are in use.
fn of_calico(facts: &mut BTreeMap<String, String>, pools: &[DynamicObject]) {
    let in_use = pools.iter().map(|it| &it.data["spec"]);
    let in_use = in_use.filter(|it| it["disabled"] != true);
    for mode in CALICO_MODES {
        let values: BTreeSet<&str> = in_use.clone().filter_map(|it| it[mode].as_str()).collect();
        if !values.is_empty() {
            let values: Vec<&str> = values.into_iter().collect();
            facts.insert(format!("calico {mode}"), values.join(", "));
        }
    }
}

fn of_daemon(facts: &mut BTreeMap<String, String>, daemon: &DaemonSet) {
    let name = daemon.name_any();
    let images: Vec<&str> = proxy_mode::containers(daemon)
        .iter()
        .filter_map(|it| it.image.as_deref())
        .collect();
    let is_proxy = name.contains("kube-proxy");
    if is_proxy || NETWORK_DAEMONS.iter().any(|part| name.contains(part)) {
        facts.insert(format!("daemon {name}"), images.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use plumbline_record::{KUBE_PROXY_FACTS, KUBE_PROXY_SILENT as SILENT};
    use serde_json::{Value, json};

    use super::*;
    use crate::planted::{PlantedServer, Reply};

    fn text(of: &Value) -> Reply {
        Reply::Text(of.to_string().leak())
    }

    /// A DaemonSet that is wanted on so many nodes, with this command line.
    fn proxy(nodes: u32, command: &[&str]) -> Value {
        json!({
            "metadata": { "name": "kube-proxy" },
            "spec": { "selector": {}, "template": { "spec": { "containers": [
                { "name": "kube-proxy", "image": "kube-proxy:v1.34.4", "command": command },
            ] } } },
            "status": { "desiredNumberScheduled": nodes, "currentNumberScheduled": nodes,
                "numberMisscheduled": 0, "numberReady": nodes },
        })
    }

    /// What a cluster with this DaemonSet, and kubeadm's settings with this mode, is found to
    /// have on both nodes where this has been asked before.
    fn found(daemon: &Value, mode: &str, asked: &[&str]) -> Vec<Option<String>> {
        let node = |name| text(&json!({ "metadata": { "name": name } }));
        let daemons = json!({ "kind": "DaemonSetList", "apiVersion": "apps/v1", "metadata": {},
            "items": [daemon] });
        let settings = format!("kind: KubeProxyConfiguration\nmode: \"{mode}\"\n");
        let settings = json!({ "metadata": { "name": "kube-proxy" },
            "data": { "config.conf": settings } });
        let replies = [
            Reply::VERSION,
            node("a"),
            node("b"),
            text(&daemons),
            text(&settings),
        ];
        let server = PlantedServer::start(replies, Reply::Status(404, "NotFound", "planted"));
        let mut whole = Fingerprint::default();
        let facts = KUBE_PROXY_FACTS.iter().zip(asked);
        let facts = facts.map(|(fact, said)| ((*fact).to_owned(), (*said).to_owned()));
        whole.versions.extend(facts);
        add_cluster(&mut whole, &server.session(), ["a", "b"].into_iter()).unwrap();
        assert_eq!(whole.versions["server node name"], "b");
        let of = |fact: &&str| whole.versions.get(*fact).cloned();
        KUBE_PROXY_FACTS.iter().map(of).collect()
    }

    #[test]
    fn the_mode_of_the_proxy_is_recorded_where_no_pod_could_ask() {
        let both = |mode: &str| vec![Some(mode.to_owned()); 2];
        let kubeadm = proxy(
            2,
            &["kube-proxy", "--config=/var/lib/kube-proxy/config.conf"],
        );
        assert_eq!(found(&kubeadm, "nftables", &[]), both("nftables"));
        assert_eq!(found(&kubeadm, "", &[]), both("iptables"));
        // Its metrics may be elsewhere.
        assert_eq!(found(&kubeadm, "ipvs", &[SILENT; 2]), both("ipvs"));
        // What answers is not settings.
        assert_eq!(found(&kubeadm, "ipvs", &["iptables"; 2]), both("iptables"));
        let one = found(&kubeadm, "ipvs", &["iptables", SILENT]);
        assert_eq!(one, ["iptables", SILENT].map(|it| Some(it.to_owned())));
        // As where a network was set to take its place.
        let idle = proxy(
            0,
            &["kube-proxy", "--config=/var/lib/kube-proxy/config.conf"],
        );
        assert_eq!(found(&idle, "iptables", &[]), [None, None]);
        assert_eq!(found(&idle, "iptables", &[SILENT; 2]), both(SILENT));
    }

    #[test]
    fn the_network_is_read_from_daemons_and_annotations() {
        let mut facts = BTreeMap::new();
        let daemon = serde_json::json!({
            "metadata": { "name": "cilium" },
            "spec": { "selector": {}, "template": { "spec": { "containers": [
                { "name": "agent", "image": "quay.io/cilium/cilium:v1.15.1" },
            ] } } },
        });
        of_daemon(&mut facts, &serde_json::from_value(daemon).unwrap());
        assert_eq!(facts["daemon cilium"], "quay.io/cilium/cilium:v1.15.1");
        let settings = serde_json::json!({ "data": {
            "routing-mode": "native", "cluster-pool-ipv4-cidr": "10.0.0.0/8",
        } });
        of_cilium(&mut facts, &serde_json::from_value(settings).unwrap());
        assert_eq!(facts["cilium routing-mode"], "native");
        assert!(!facts.contains_key("cilium cluster-pool-ipv4-cidr"));
        let node = serde_json::json!({
            "metadata": { "name": "a", "annotations": {
                "projectcalico.org/IPv4Address": "10.1.2.3/24",
                "flannel.alpha.coreos.com/backend-type": "vxlan",
                "projectcalico.org/IPv4VXLANTunnelAddr": "10.0.0.1",
            } },
        });
        let pool = |name: &str, spec: serde_json::Value| {
            let pool = serde_json::json!({ "metadata": { "name": name }, "spec": spec });
            serde_json::from_value::<DynamicObject>(pool).unwrap()
        };
        let pools = [
            pool(
                "a",
                serde_json::json!({ "vxlanMode": "CrossSubnet", "ipipMode": "Never" }),
            ),
            pool(
                "b",
                serde_json::json!({ "vxlanMode": "Always", "disabled": true }),
            ),
        ];
        of_calico(&mut facts, &pools);
        assert_eq!(facts["calico vxlanMode"], "CrossSubnet");
        assert_eq!(facts["calico ipipMode"], "Never");
        of_node(&mut facts, "client", &serde_json::from_value(node).unwrap());
        assert!(facts["client node network flannel.alpha.coreos.com"].ends_with("=vxlan"));
        let calico = &facts["client node network projectcalico.org"];
        assert_eq!(calico, "projectcalico.org/IPv4VXLANTunnelAddr=present");
    }
}
