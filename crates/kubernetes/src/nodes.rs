//! The nodes as the cluster shows them.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Node, Taint};
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};

use crate::ClusterError;
use crate::choice::NodeFacts;
use crate::session::ClusterConnection;

const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// Taints of nodes that have just joined.
const PASSING: [&str; 3] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/network-unavailable",
    "node.cloudprovider.kubernetes.io/uninitialized",
];

/// How long ready nodes may still be marked as not ready.
const SETTLE: Duration = Duration::from_secs(15);

/// All nodes, once none is about to become usable.
pub(crate) fn all(session: &ClusterConnection) -> Result<Vec<Node>, ClusterError> {
    let api: Api<Node> = Api::all(session.client());
    let all = ListParams::default();
    let started = Instant::now();
    loop {
        let found = session.call("list the nodes", api.list(&all))?;
        if !found.iter().any(is_settling) || started.elapsed() > SETTLE {
            return Ok(found.items);
        }
        session.pause(Duration::from_millis(300))?;
    }
}

/// What matters when nodes are chosen.
pub(crate) fn facts(node: &Node) -> NodeFacts {
    NodeFacts {
        name: node.name_any(),
        usable: is_ready(node) && is_open(node),
        control_plane: node.labels().contains_key(CONTROL_PLANE),
        kind: kind(node),
        addresses: addresses(node),
    }
}

/// Whether it is ready, but still marked as not ready. A controller removes these
/// marks some seconds later, and a run right after the start of a cluster waits.
pub(crate) fn is_settling(node: &Node) -> bool {
    let taints = node.spec.iter().flat_map(|it| it.taints.iter().flatten());
    is_ready(node) && taints.into_iter().any(|it| PASSING.contains(&&*it.key))
}

fn is_ready(node: &Node) -> bool {
    let conditions = node
        .status
        .iter()
        .flat_map(|it| it.conditions.iter().flatten());
    conditions
        .into_iter()
        .any(|it| it.type_ == "Ready" && it.status == "True")
}

fn is_open(node: &Node) -> bool {
    let Some(spec) = &node.spec else { return true };
    let keeps_away = |taint: &Taint| {
        taint.key != CONTROL_PLANE && matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute")
    };
    spec.unschedulable != Some(true) && !spec.taints.iter().flatten().any(keeps_away)
}

/// Architecture, instance type, CPUs, memory in GiB, kernel.
fn kind(node: &Node) -> String {
    let label = |key: &str| node.labels().get(key).cloned();
    let capacity = |key: &str| {
        let quantities = node.status.as_ref()?.capacity.as_ref()?;
        Some(quantities.get(key)?.0.clone())
    };
    let info = node.status.as_ref().and_then(|it| it.node_info.as_ref());
    let parts = [
        info.map(|info| info.architecture.clone()),
        label("node.kubernetes.io/instance-type"),
        capacity("cpu").map(|cpus| format!("{cpus} CPUs")),
        capacity("memory").and_then(|memory| gibibytes(&memory)),
        info.map(|info| format!("Linux {}", info.kernel_version)),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

/// Two machines of one type may differ by some pages.
fn gibibytes(quantity: &str) -> Option<String> {
    let kibibytes: u64 = quantity.strip_suffix("Ki")?.parse().ok()?;
    Some(format!("{} GiB", (kibibytes as f64 / 1_048_576.0).round()))
}

fn addresses(node: &Node) -> Vec<IpAddr> {
    let all = node
        .status
        .iter()
        .flat_map(|it| it.addresses.iter().flatten());
    all.filter(|address| address.type_ == "InternalIP")
        .filter_map(|address| address.address.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(json: serde_json::Value) -> NodeFacts {
        facts(&serde_json::from_value(json).unwrap())
    }

    #[test]
    fn a_node_is_read() {
        let read = node(serde_json::json!({
            "metadata": { "name": "a", "labels": { CONTROL_PLANE: "" } },
            "spec": { "taints": [{ "key": CONTROL_PLANE, "effect": "NoSchedule" }] },
            "status": {
                "conditions": [{ "type": "Ready", "status": "True" }],
                "capacity": { "cpu": "4", "memory": "16384256Ki" },
                "addresses": [
                    { "type": "Hostname", "address": "a" },
                    { "type": "InternalIP", "address": "10.0.0.1" },
                    { "type": "InternalIP", "address": "fd00::1" },
                ],
            },
        }));
        assert!(read.usable && read.control_plane);
        assert_eq!(read.kind, "4 CPUs, 16 GiB");
        assert_eq!(read.addresses.len(), 2);
    }

    #[test]
    fn a_node_that_has_just_joined_is_waited_for() {
        let settling = |ready: &str, key: &str| {
            let json = serde_json::json!({
                "metadata": { "name": "a" },
                "spec": { "taints": [{ "key": key, "effect": "NoSchedule" }] },
                "status": { "conditions": [{ "type": "Ready", "status": ready }] },
            });
            is_settling(&serde_json::from_value(json).unwrap())
        };
        assert!(settling("True", "node.kubernetes.io/not-ready"));
        assert!(!settling("False", "node.kubernetes.io/not-ready"));
        assert!(!settling("True", "gpu"));
    }

    #[test]
    fn taints_and_cordons_keep_us_away() {
        let ready = serde_json::json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
        for spec in [
            serde_json::json!({ "unschedulable": true }),
            serde_json::json!({ "taints": [{ "key": "gpu", "effect": "NoSchedule" }] }),
        ] {
            let json =
                serde_json::json!({ "metadata": { "name": "a" }, "spec": spec, "status": ready });
            assert!(!node(json).usable);
        }
        assert!(!node(serde_json::json!({ "metadata": { "name": "a" } })).usable);
    }
}
