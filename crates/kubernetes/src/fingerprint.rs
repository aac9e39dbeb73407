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
    whole.versions.extend(proxies(paths));
    whole.devices = devices;
    whole.others = others;
    Ok(whole)
}

/// The mode of kube-proxy on both nodes, which pods in their networks can ask
/// it for; nothing where there are none.
fn proxies(paths: &BTreeMap<PathKey, ClusterPath>) -> BTreeMap<String, String> {
    let mut modes = BTreeMap::new();
    for (sight, seat) in paths.values().flat_map(ClusterPath::sights) {
        let side = match &*seat {
            "host-client" => "client",
            "host-server" => "server",
            _ => continue,
        };
        let mode = sight.kube_proxy.as_deref().unwrap_or("none answers");
        modes.insert(format!("{side} node kube-proxy"), mode.to_owned());
    }
    modes
}

/// The mode of the proxy of services: what kube-proxy says, or the settings of it or of
/// Cilium in its place. `None` where this account may not see it.
pub(crate) fn proxy_mode(
    session: &ClusterConnection,
    paths: &BTreeMap<PathKey, ClusterPath>,
) -> Result<Option<String>, ClusterError> {
    let mut sights = paths.values().flat_map(ClusterPath::sights);
    if let Some(said) = sights.find_map(|(sight, _)| sight.kube_proxy.clone()) {
        return Ok(Some(said));
    }
    let maps: Api<ConfigMap> = Api::namespaced(session.client(), "kube-system");
    for (name, read) in [
        ("kube-proxy", mode_in as fn(&ConfigMap) -> Option<String>),
        ("cilium-config", replacement_in),
    ] {
        match session.call(&format!("read {name}"), maps.get_opt(name)) {
            Ok(found) => {
                if let Some(mode) = found.as_ref().and_then(read) {
                    return Ok(Some(mode));
                }
            }
            Err(ClusterError::Forbidden { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// The mode in kube-proxy's settings, as kubeadm keeps them.
fn mode_in(settings: &ConfigMap) -> Option<String> {
    let text = settings.data.as_ref()?.get("config.conf")?;
    let mode = text.lines().find_map(|line| line.strip_prefix("mode:"))?;
    match mode.trim().trim_matches('"') {
        "" => Some("iptables".to_owned()),
        mode => Some(mode.to_owned()),
    }
}

/// Where Cilium translates the services that pods ask, if its settings have it do so in
/// the place of kube-proxy: at the socket, unless that is left to the nodes' own.
fn replacement_in(settings: &ConfigMap) -> Option<String> {
    let data = settings.data.as_ref()?;
    let has = |key: &str, values: &[&str]| data.get(key).is_some_and(|it| values.contains(&&**it));
    let mode = match has("bpf-lb-sock-hostns-only", &["true"]) {
        true => "ebpf",
        false => "ebpf-socket",
    };
    has("kube-proxy-replacement", &["true", "strict"]).then(|| mode.to_owned())
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
    match session.call("list the DaemonSets", daemons.list(&all)) {
        Ok(found) => found.items.iter().for_each(|it| of_daemon(&mut facts, it)),
        Err(ClusterError::Forbidden { .. }) => {
            facts.insert("network daemons".to_owned(), HIDDEN.to_owned());
        }
        Err(error) => return Err(error),
    }
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
        let maps: Api<ConfigMap> = Api::namespaced(session.client(), "kube-system");
        match session.call("read Cilium's settings", maps.get_opt("cilium-config")) {
            Ok(found) => found.iter().for_each(|it| of_cilium(&mut facts, it)),
            Err(ClusterError::Forbidden { .. }) => {}
            Err(error) => return Err(error),
        }
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
    Ok(())
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
    let containers = daemon
        .spec
        .as_ref()
        .and_then(|it| it.template.spec.as_ref())
        .map(|it| it.containers.as_slice())
        .unwrap_or_default();
    let images: Vec<&str> = containers
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
    use super::*;

    #[test]
    fn the_mode_of_the_proxy_is_in_its_settings() {
        let settings = |key: &str, text: &str| -> ConfigMap {
            serde_json::from_value(serde_json::json!({ "data": { key: text } })).unwrap()
        };
        let of = |mode: &str| {
            let text = format!("kind: KubeProxyConfiguration\nmode: {mode}\noomScoreAdj: 0\n");
            mode_in(&settings("config.conf", &text))
        };
        assert_eq!(of("nftables").as_deref(), Some("nftables"));
        assert_eq!(of("\"\"").as_deref(), Some("iptables"));
        assert_eq!(mode_in(&settings("config.conf", "kind: X")), None);
        let cilium = |it| replacement_in(&settings("kube-proxy-replacement", it));
        assert_eq!(cilium("true").as_deref(), Some("ebpf-socket"));
        assert_eq!(cilium("false"), None);
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
