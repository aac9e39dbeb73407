//! What a run makes in a cluster.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use k8s_openapi::api::core::v1::{Namespace, Pod, Service};
use serde_json::{Value, json};

use crate::route::Seat;

/// Where the image has the program.
pub(crate) const PROGRAM: &str = "/plumbline";

/// The label by which everything of ours is found.
pub(crate) const OWNER: &str = "app.kubernetes.io/managed-by=plumbline";

/// The annotation that says who started a run.
pub(crate) const STARTED_BY: &str = "plumbline/started-by";

/// The one port of every workload where a service stands before the server.
/// Above the privileged ports, below those that the kernel gives to clients.
pub(crate) const PORT: u16 = 7117;

/// Any user but root; nothing in the image belongs to anybody.
const USER: u32 = 65_532;

/// Longest life of a pod in seconds. A run that goes on longer gets a new one; a pod ends
/// much earlier when no agent runs in it, which is how a run renews its lease.
const LONGEST_LIFE: u32 = 24 * 3600;

/// A name that no other run has. It is made here, so that a namespace can be deleted
/// though the answer to its creation was lost.
pub(crate) fn namespace_name(host: bool) -> String {
    let prefix = if host {
        "plumbline-host-"
    } else {
        "plumbline-"
    };
    // The state of each is drawn at random.
    let random = RandomState::new().build_hasher().finish();
    format!("{prefix}{:010x}", random >> 24)
}

/// A namespace of its own for a run: restricted, or for pods in the nodes'
/// networks, which only the privileged profile allows.
pub(crate) fn namespace(name: &str, host: bool, started_by: &str) -> Namespace {
    let level = if host { "privileged" } else { "restricted" };
    built(json!({
        "metadata": {
            "name": name,
            "labels": {
                "app.kubernetes.io/managed-by": "plumbline",
                "pod-security.kubernetes.io/enforce": level,
            },
            "annotations": { STARTED_BY: started_by },
        },
    }))
}

/// A pod that sleeps until an agent is started in it.
pub(crate) fn pod(seat: Seat, node: &str, control_plane: bool, image: &str) -> Pod {
    let tolerations = if control_plane {
        json!([{ "key": "node-role.kubernetes.io/control-plane", "operator": "Exists" }])
    } else {
        json!([])
    };
    built(json!({
        "metadata": {
            "name": seat.name(),
            "labels": {
                "app.kubernetes.io/managed-by": "plumbline",
                "plumbline/seat": seat.group(),
            },
        },
        "spec": {
            "affinity": { "nodeAffinity": on_node(node) },
            "tolerations": tolerations,
            "hostNetwork": seat.is_host(),
            "restartPolicy": "Never",
            "activeDeadlineSeconds": LONGEST_LIFE,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": USER,
                "runAsGroup": USER,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "containers": [{
                "name": "plumbline",
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "command": [PROGRAM, "hold"],
                // Far more than a load takes; whoever drives it further ends a pod, and
                // not its node.
                "resources": { "requests": { "memory": "64Mi" }, "limits": { "memory": "2Gi" } },
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "readOnlyRootFilesystem": true,
                    "capabilities": { "drop": ["ALL"] },
                },
            }],
        },
    }))
}

/// By affinity and not by `nodeName`, which would bypass the scheduler, and with it
/// quotas, taints and whatever else the cluster's owner set.
fn on_node(node: &str) -> Value {
    json!({
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{
                "matchFields": [{ "key": "metadata.name", "operator": "In", "values": [node] }],
            }],
        },
    })
}

/// One port for TCP and UDP before a server.
pub(crate) fn service(seat: Seat, node_port: bool, v6: bool) -> Service {
    let port = |name, protocol| json!({ "name": name, "protocol": protocol, "port": PORT, "targetPort": PORT });
    built(json!({
        "metadata": {
            "name": seat.group(),
            "labels": { "app.kubernetes.io/managed-by": "plumbline" },
        },
        "spec": {
            "type": if node_port { "NodePort" } else { "ClusterIP" },
            "ipFamilyPolicy": "SingleStack",
            "ipFamilies": [if v6 { "IPv6" } else { "IPv4" }],
            "selector": { "plumbline/seat": seat.group() },
            "ports": [port("tcp", "TCP"), port("udp", "UDP")],
        },
    }))
}

/// The structures above are constants apart from strings: a value that the API's
/// types reject is a mistake in this file, and every test here would find it.
fn built<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the manifest has the API's form")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pods_keep_to_the_restricted_profile() {
        for seat in [
            Seat::Client,
            Seat::Server,
            Seat::Neighbour,
            Seat::HostClient,
        ] {
            let spec = pod(seat, "a", false, "image:1").spec.unwrap();
            assert_eq!(spec.host_network == Some(true), seat.is_host());
            assert_eq!(spec.automount_service_account_token, Some(false));
            let whole = spec.security_context.unwrap();
            assert_eq!(whole.run_as_non_root, Some(true));
            assert_eq!(whole.seccomp_profile.unwrap().type_, "RuntimeDefault");
            let limits = spec.containers[0]
                .resources
                .clone()
                .unwrap()
                .limits
                .unwrap();
            assert_eq!(limits["memory"].0, "2Gi");
            let own = spec.containers[0].security_context.clone().unwrap();
            assert_eq!(own.read_only_root_filesystem, Some(true));
            assert_eq!(own.allow_privilege_escalation, Some(false));
            assert_eq!(own.capabilities.unwrap().drop.unwrap(), ["ALL"]);
        }
    }

    #[test]
    fn a_pod_does_not_outlive_a_day_and_is_not_started_again() {
        let spec = pod(Seat::Client, "a", false, "image:1").spec.unwrap();
        assert_eq!(spec.active_deadline_seconds, Some(86_400));
        assert_eq!(spec.restart_policy.as_deref(), Some("Never"));
    }

    #[test]
    fn both_protocols_go_through_one_port() {
        let spec = service(Seat::Server, true, false).spec.unwrap();
        let ports = spec.ports.unwrap();
        assert!(ports.iter().all(|port| port.port == i32::from(PORT)));
        assert_eq!(ports.len(), 2);
        assert_eq!(spec.type_.as_deref(), Some("NodePort"));
    }

    #[test]
    fn only_the_hosts_namespace_is_privileged() {
        let level = |host| {
            let labels = namespace(&namespace_name(host), host, "me")
                .metadata
                .labels
                .unwrap();
            labels["pod-security.kubernetes.io/enforce"].clone()
        };
        assert_eq!(level(false), "restricted");
        assert_eq!(level(true), "privileged");
    }
}
