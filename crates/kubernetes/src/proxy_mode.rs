//! What stands for services on the nodes: the mode of kube-proxy, or of what is in its place.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Container};
use kube::ResourceExt as _;
use kube::api::Api;
use plumbline_record::{Fingerprint, KUBE_PROXY_FACTS, KUBE_PROXY_SILENT};

use crate::error::ClusterError;
use crate::path::ClusterPath;
use crate::seat::PathKey;
use crate::session::ClusterConnection;

/// The mode of kube-proxy on both nodes, which pods in their networks can ask
/// it for; nothing where there are none.
pub(crate) fn asked(paths: &BTreeMap<PathKey, ClusterPath>) -> BTreeMap<String, String> {
    let mut modes = BTreeMap::new();
    let [near, far] = KUBE_PROXY_FACTS;
    for (sight, seat) in paths.values().flat_map(ClusterPath::sights) {
        let fact = match &*seat {
            "host-client" => near,
            "host-server" => far,
            _ => continue,
        };
        let mode = sight.kube_proxy.as_deref().unwrap_or(KUBE_PROXY_SILENT);
        modes.insert(fact.to_owned(), mode.to_owned());
    }
    modes
}

/// Adds what kube-proxy is set to do on all nodes, where no pod has asked it or none was
/// answered.
pub(crate) fn add_settings(
    whole: &mut Fingerprint,
    session: &ClusterConnection,
    daemons: &[DaemonSet],
) -> Result<(), ClusterError> {
    let is_told = |fact: &&str| {
        whole
            .versions
            .get(*fact)
            .is_some_and(|it| it != KUBE_PROXY_SILENT)
    };
    if KUBE_PROXY_FACTS.iter().any(is_told) {
        return Ok(());
    }
    if let Some(mode) = set(session, daemons)? {
        let facts = KUBE_PROXY_FACTS.map(|fact| (fact.to_owned(), mode.clone()));
        whole.versions.extend(facts);
    }
    Ok(())
}

/// What kube-proxy is set to do on the nodes where it runs, by its command line or its settings.
/// `None` where it is not seen to run: settings outlast what they were for.
fn set(session: &ClusterConnection, daemons: &[DaemonSet]) -> Result<Option<String>, ClusterError> {
    let runs = |it: &&DaemonSet| {
        let status = it.status.as_ref();
        it.name_any() == "kube-proxy" && status.is_some_and(|it| it.desired_number_scheduled > 0)
    };
    let Some(proxy) = daemons.iter().find(runs) else {
        return Ok(None);
    };
    match in_command(proxy) {
        Some(mode) => Ok(Some(mode)),
        None => Ok(settings(session, "kube-proxy")?.as_ref().and_then(mode_in)),
    }
}

/// The mode of the proxy of services: what kube-proxy says, or the settings of it or of
/// Cilium in its place. `None` where this account may not see it.
pub(crate) fn of_services(
    session: &ClusterConnection,
    paths: &BTreeMap<PathKey, ClusterPath>,
) -> Result<Option<String>, ClusterError> {
    let mut sights = paths.values().flat_map(ClusterPath::sights);
    if let Some(said) = sights.find_map(|(sight, _)| sight.kube_proxy.clone()) {
        return Ok(Some(said));
    }
    if let Some(mode) = settings(session, "kube-proxy")?.as_ref().and_then(mode_in) {
        return Ok(Some(mode));
    }
    let cilium = settings(session, "cilium-config")?;
    Ok(cilium.as_ref().and_then(replacement_in))
}

/// The settings of a part of the cluster; `None` where there are none of this name, or this
/// account may not see them.
pub(crate) fn settings(
    session: &ClusterConnection,
    name: &str,
) -> Result<Option<ConfigMap>, ClusterError> {
    let maps: Api<ConfigMap> = Api::namespaced(session.client(), "kube-system");
    match session.call(&format!("read {name}"), maps.get_opt(name)) {
        Err(ClusterError::Forbidden { .. }) => Ok(None),
        other => other,
    }
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

/// The mode on kube-proxy's command line, which it ignores where that names a file.
fn in_command(proxy: &DaemonSet) -> Option<String> {
    let words = containers(proxy)
        .iter()
        .flat_map(|it| [&it.command, &it.args]);
    let line = Vec::from_iter(words.flatten().flatten().map(String::as_str)).join(" ");
    if line.contains("--config=") || line.contains("--config ") {
        return None;
    }
    let (_, after) = line.split_once("--proxy-mode")?;
    let mode = after.strip_prefix(['=', ' '])?.split(' ').next()?;
    (!mode.is_empty()).then(|| mode.to_owned())
}

/// Those of its pods.
pub(crate) fn containers(daemon: &DaemonSet) -> &[Container] {
    let spec = daemon.spec.as_ref();
    let pod = spec.and_then(|it| it.template.spec.as_ref());
    pod.map(|it| it.containers.as_slice()).unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_mode_of_the_proxy_is_in_its_settings() {
        let settings = |key: &str, text: &str| -> ConfigMap {
            serde_json::from_value(json!({ "data": { key: text } })).unwrap()
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
    fn the_mode_of_the_proxy_is_read_from_its_command_line() {
        let of = |command: &[&str]| {
            let daemon = json!({ "metadata": { "name": "kube-proxy" }, "spec": { "selector": {},
                "template": { "spec": { "containers": [{ "name": "a", "command": command }] } } } });
            in_command(&serde_json::from_value(daemon).unwrap())
        };
        let ipvs = Some("ipvs".to_owned());
        assert_eq!(of(&["kube-proxy", "--proxy-mode=ipvs", "--v=2"]), ipvs);
        assert_eq!(of(&["kube-proxy", "--proxy-mode", "ipvs"]), ipvs);
        assert_eq!(of(&["sh", "-c", "kube-proxy --proxy-mode=ipvs 2>&1"]), ipvs);
        let config = "--config-sync-period=1m";
        assert_eq!(of(&["kube-proxy", "--proxy-mode=ipvs", config]), ipvs);
        assert_eq!(
            of(&["kube-proxy", "--proxy-mode=ipvs", "--config=/a"]),
            None
        );
        assert_eq!(of(&["kube-proxy", "--proxy-mode="]), None);
        assert_eq!(of(&["kube-proxy", "--v=2"]), None);
    }
}
