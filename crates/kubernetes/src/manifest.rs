//! What a run makes in a cluster.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use k8s_openapi::api::core::v1::{Namespace, Pod, Service};
use plumbline_protocol::{LAUNCHED, LENT, LaunchedOrder};
use plumbline_sys::identity;
use serde_json::{Value, json};

use crate::own;
use crate::seat::Seat;

/// Where the image has the program.
pub(crate) const PROGRAM: &str = "/plumbline";

/// The label by which everything of ours is found.
pub(crate) const OWNER: &str = "app.kubernetes.io/managed-by=plumbline";

/// The label that tells what one run made from what others did.
pub(crate) const RUN: &str = "plumbline/run";

/// The label that tells pods that receive in a network of their own from others.
pub(crate) const GUARDED: &str = "plumbline/guarded";

/// The label that says what a pod is there for.
pub(crate) const SEAT: &str = "plumbline/seat";

/// The label that says of which launch a pod is.
pub(crate) const LAUNCH: &str = "plumbline/launch";

/// The annotation that says who started a run.
pub(crate) const STARTED_BY: &str = "plumbline/started-by";
/// The annotation with the process that did, by which the same machine knows whether it has ended.
pub(crate) const PROCESS: &str = "plumbline/process";

/// The one port of every workload where a service stands before the server.
/// Above the privileged ports, below those that the kernel gives to clients.
pub(crate) const PORT: u16 = 7117;

/// The port of a second receiver over TCP beside that.
pub(crate) const NEXT_PORT: u16 = PORT + 1;

/// Any user but root; nothing in the image belongs to anybody.
const USER: u32 = 65_532;

/// Who may use capabilities that a pod is given: only root does without a file that has them.
const ROOT: u32 = 0;

/// What the kernel asks of those who load programs that run at its tracepoints, and nothing
/// else: to load programs, and to look at what the kernel does.
const TRACES: [&str; 2] = ["BPF", "PERFMON"];

/// Where a node keeps what it was set from: see `plumbline tune`.
const TUNED: &str = "/run/plumbline";

/// How long a pod from which its node is tuned has to put everything back, seconds. It takes
/// milliseconds.
const TUNED_GRACE: u32 = 30;

/// Longest life of a pod in seconds. A run that goes on longer gets a new one; a pod ends
/// much earlier when no agent runs in it, which is how a run renews its lease.
const LONGEST_LIFE: u32 = 24 * 3600;

/// How long a container in somebody else's pod stays, seconds.
const LENT_S: u32 = 120;

/// The same of a pod that was launched: its program ends in ten minutes.
const LAUNCHED_LIFE: u32 = 900;

/// How long the program of such a pod has to end, seconds. It does at once.
const LAUNCHED_GRACE: u32 = 5;

/// What marks all that a run makes in a namespace.
#[derive(Clone, Debug)]
pub(crate) struct RunMark {
    /// A word of its own.
    pub(crate) run: String,
    /// User and machine that started it.
    pub(crate) started_by: String,
    /// Whether other runs may be in the same namespace.
    pub(crate) shares_namespace: bool,
}

impl RunMark {
    /// The name of a thing that is called `name` within the run.
    pub(crate) fn name(&self, name: &str) -> String {
        if self.shares_namespace {
            format!("{name}-{}", self.run)
        } else {
            name.to_owned()
        }
    }

    /// Selects what the run made.
    pub(crate) fn selector(&self) -> String {
        format!("{RUN}={}", self.run)
    }

    pub(crate) fn metadata(&self, name: &str) -> Value {
        json!({
            "name": self.name(name),
            "labels": {
                "app.kubernetes.io/managed-by": "plumbline",
                RUN: self.run,
            },
            "annotations": annotations(&self.started_by),
        })
    }

    fn of_seat(&self, name: &str, seat: Seat) -> Value {
        let mut metadata = self.metadata(name);
        metadata["labels"][SEAT] = seat.group().into();
        metadata["labels"][GUARDED] = seat.is_guarded().to_string().into();
        metadata
    }
}

/// On which node a pod is put.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spot<'a> {
    /// On this one.
    On {
        /// Its name.
        node: &'a str,
        /// Whether it runs the control plane, which keeps other pods away.
        control_plane: bool,
    },
    /// Where the scheduler likes.
    Anywhere,
    /// As the scheduler likes, but not on the node of this pod of the run.
    ApartFrom(Seat),
}

impl Spot<'_> {
    /// By affinity and not by `nodeName`, which would bypass the scheduler, and with it
    /// quotas, taints and whatever else the cluster's owner set.
    fn affinity(self, mark: &RunMark) -> Value {
        match self {
            Self::On { node, .. } => json!({ "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{
                    "matchFields": [
                        { "key": "metadata.name", "operator": "In", "values": [node] },
                    ],
                }] },
            } }),
            Self::Anywhere => json!({}),
            Self::ApartFrom(seat) => json!({ "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{
                    "labelSelector": { "matchLabels": {
                        RUN: mark.run,
                        SEAT: seat.group(),
                    } },
                    "topologyKey": "kubernetes.io/hostname",
                }],
            } }),
        }
    }

    fn tolerations(self) -> Value {
        match self {
            Self::On {
                control_plane: true,
                ..
            } => json!([{ "key": "node-role.kubernetes.io/control-plane", "operator": "Exists" }]),
            _ => json!([]),
        }
    }
}

/// A word that no other run has.
pub(crate) fn word() -> String {
    // The state of each is drawn at random.
    let random = RandomState::new().build_hasher().finish();
    format!("{:010x}", random >> 24)
}

/// A name that no other run has. It is made here, so that a namespace can be deleted
/// though the answer to its creation was lost.
pub(crate) fn namespace_name(host: bool) -> String {
    let prefix = if host {
        "plumbline-host-"
    } else {
        "plumbline-"
    };
    format!("{prefix}{}", word())
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
            "annotations": annotations(started_by),
        },
    }))
}

/// Who and what made a thing.
fn annotations(started_by: &str) -> Value {
    let mut all = json!({ STARTED_BY: started_by });
    if let Some(process) = identity::own() {
        all[PROCESS] = process.into();
    }
    all
}

/// A pod that sleeps until an agent is started in it.
pub(crate) fn pod(seat: Seat, spot: Spot<'_>, image: &str, mark: &RunMark) -> Pod {
    let mut spec = spec(spot, image, mark);
    spec["hostNetwork"] = seat.is_host().into();
    let sysctls = own::sysctls(&seat.own());
    if !sysctls.is_empty() {
        spec["securityContext"]["sysctls"] = sysctls.into();
    }
    if seat.traces() || seat.tunes() {
        let whole = &mut spec["securityContext"];
        whole["runAsNonRoot"] = false.into();
        whole["runAsUser"] = ROOT.into();
        whole["runAsGroup"] = ROOT.into();
    }
    let container = &mut spec["containers"][0];
    if seat.traces() {
        container["securityContext"]["capabilities"]["add"] = json!(TRACES);
    }
    if seat.tunes() {
        // No capability makes /proc/sys and /sys writable in a container.
        container["securityContext"] =
            json!({ "privileged": true, "readOnlyRootFilesystem": true });
        container["command"] = json!([PROGRAM, "tune", "--", PROGRAM, "hold"]);
        // Why it could not be is in what it said.
        container["terminationMessagePolicy"] = "FallbackToLogsOnError".into();
        container["volumeMounts"] = json!([{ "name": "tuned", "mountPath": TUNED }]);
        spec["volumes"] = json!([
            { "name": "tuned", "hostPath": { "path": TUNED, "type": "DirectoryOrCreate" } },
        ]);
        spec["terminationGracePeriodSeconds"] = TUNED_GRACE.into();
    }
    built(json!({ "metadata": mark.of_seat(&seat.pod(), seat), "spec": spec }))
}

/// A pod that is launched on a node, and says so to its peer.
pub(crate) fn launched(order: &LaunchedOrder, node: &str, image: &str, mark: &RunMark) -> Pod {
    let mut metadata = mark.metadata(&format!("launched-{}-{}", order.launch, order.pod));
    metadata["labels"][LAUNCH] = order.launch.as_str().into();
    // A pod of the run stands there, so others may.
    let spot = Spot::On {
        node,
        control_plane: true,
    };
    let mut spec = spec(spot, image, mark);
    // Its program sees when the first process of its sandbox began.
    spec["shareProcessNamespace"] = true.into();
    spec["activeDeadlineSeconds"] = LAUNCHED_LIFE.into();
    spec["terminationGracePeriodSeconds"] = LAUNCHED_GRACE.into();
    let container = &mut spec["containers"][0];
    container["env"] = json!([{ "name": LAUNCHED, "value": json!(order).to_string() }]);
    // A hundred have to find room.
    container["resources"] =
        json!({ "requests": { "memory": "8Mi" }, "limits": { "memory": "256Mi" } });
    built(json!({ "metadata": metadata, "spec": spec }))
}

fn spec(spot: Spot<'_>, image: &str, mark: &RunMark) -> Value {
    json!({
        "affinity": spot.affinity(mark),
        "tolerations": spot.tolerations(),
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
        "containers": [held(image)],
    })
}

/// A container that sleeps until an agent is started in it.
fn held(image: &str) -> Value {
    json!({
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
    })
}

/// One that is put into a pod of somebody else's, with the rights that ours have.
pub(crate) fn lent(name: &str, image: &str) -> Value {
    let mut container = held(image);
    container["name"] = name.into();
    // An ephemeral one has none of its own.
    if let Some(keys) = container.as_object_mut() {
        keys.remove("resources");
    }
    container["env"] = json!([{ "name": LENT, "value": LENT_S.to_string() }]);
    let own = &mut container["securityContext"];
    own["runAsNonRoot"] = true.into();
    own["runAsUser"] = USER.into();
    own["runAsGroup"] = USER.into();
    own["seccompProfile"] = json!({ "type": "RuntimeDefault" });
    container
}

/// One port for TCP and UDP before a server, and one for a second receiver over TCP.
pub(crate) fn service(seat: Seat, node_port: bool, v6: bool, mark: &RunMark) -> Service {
    let port = |name, protocol, port| json!({ "name": name, "protocol": protocol, "port": port, "targetPort": port });
    built(json!({
        "metadata": mark.of_seat(&seat.group(), seat),
        "spec": {
            "type": if node_port { "NodePort" } else { "ClusterIP" },
            "ipFamilyPolicy": "SingleStack",
            "ipFamilies": [if v6 { "IPv6" } else { "IPv4" }],
            "selector": { RUN: mark.run, SEAT: seat.group() },
            "ports": [
                port("tcp", "TCP", PORT),
                port("udp", "UDP", PORT),
                port("tcp-next", "TCP", NEXT_PORT),
            ],
        },
    }))
}

/// The structures above are constants apart from strings: a value that the API's
/// types reject is a mistake in this file, and every test here would find it.
pub(crate) fn built<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the manifest has the API's form")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seat::tests::POD;

    const CLIENT: Seat = Seat::Client(POD);
    const SERVER: Seat = Seat::Server { of: POD, index: 1 };

    fn mark(shares_namespace: bool) -> RunMark {
        RunMark {
            run: "3fa2".to_owned(),
            started_by: "me".to_owned(),
            shares_namespace,
        }
    }

    fn on_a(seat: Seat) -> Pod {
        let spot = Spot::On {
            node: "a",
            control_plane: false,
        };
        pod(seat, spot, "image:1", &mark(false))
    }

    #[test]
    fn runs_in_one_namespace_have_names_and_services_of_their_own() {
        let alone = on_a(CLIENT);
        assert_eq!(alone.metadata.name.as_deref(), Some("client-pod"));
        let shared = mark(true);
        let beside = pod(CLIENT, Spot::Anywhere, "image:1", &shared);
        assert_eq!(beside.metadata.name.as_deref(), Some("client-pod-3fa2"));
        assert_eq!(beside.metadata.labels.unwrap()[RUN], "3fa2");
        let before = service(SERVER, false, false, &shared);
        assert_eq!(before.metadata.name.as_deref(), Some("server-pod-3fa2"));
        assert_eq!(before.spec.unwrap().selector.unwrap()[RUN], "3fa2");
    }

    #[test]
    fn where_nodes_are_unknown_the_scheduler_keeps_the_ends_apart() {
        let spot = Spot::ApartFrom(CLIENT);
        let server = pod(SERVER, spot, "image:1", &mark(true));
        let affinity = server.spec.unwrap().affinity.unwrap();
        let apart = affinity.pod_anti_affinity.unwrap();
        let terms = apart.required_during_scheduling_ignored_during_execution;
        let term = terms.unwrap().remove(0);
        assert_eq!(term.topology_key, "kubernetes.io/hostname");
        let labels = term.label_selector.unwrap().match_labels.unwrap();
        assert_eq!((&*labels[RUN], &*labels[SEAT]), ("3fa2", "client-pod"));
    }

    /// It has to say for itself what its pod, which is somebody else's, may not.
    #[test]
    fn what_is_put_into_somebody_elses_pod_keeps_to_it_too() {
        let container = lent("ours", "image:1");
        let own = &container["securityContext"];
        let denied = ["allowPrivilegeEscalation", "runAsNonRoot"].map(|it| &own[it]);
        assert_eq!(denied, [false, true]);
        assert_eq!(own["capabilities"]["drop"], json!(["ALL"]));
        assert_eq!(own["seccompProfile"]["type"], "RuntimeDefault");
        assert!(container["resources"].is_null() && container["env"][0]["value"] == "120");
        let wanted: k8s_openapi::api::core::v1::EphemeralContainer = built(container);
        assert_eq!(wanted.name, "ours");
    }

    #[test]
    fn the_pods_keep_to_the_restricted_profile() {
        for seat in [CLIENT, SERVER, Seat::HostClient] {
            let spec = on_a(seat).spec.unwrap();
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
    fn a_tracer_has_the_rights_that_it_says_and_no_others() {
        let seat = Seat::Tracer { is_far: true };
        let spec = on_a(seat).spec.unwrap();
        assert_eq!(spec.host_network, Some(true));
        assert_eq!(
            (spec.host_pid, spec.host_ipc, spec.volumes),
            (None, None, None)
        );
        assert_eq!(spec.automount_service_account_token, Some(false));
        let whole = spec.security_context.unwrap();
        assert_eq!((whole.run_as_user, whole.run_as_group), (Some(0), Some(0)));
        assert_eq!(whole.seccomp_profile.unwrap().type_, "RuntimeDefault");
        let own = spec.containers[0].security_context.clone().unwrap();
        assert_eq!(own.privileged, None);
        assert_eq!(own.read_only_root_filesystem, Some(true));
        assert_eq!(own.allow_privilege_escalation, Some(false));
        let capabilities = own.capabilities.unwrap();
        assert_eq!(capabilities.drop.unwrap(), ["ALL"]);
        assert_eq!(capabilities.add.unwrap(), ["BPF", "PERFMON"]);
    }

    #[test]
    fn the_pods_with_more_rights_are_made_as_they_are_shown() {
        let mark = RunMark {
            run: "0123456789".to_owned(),
            started_by: "ann on workstation, process 4711".to_owned(),
            shares_namespace: false,
        };
        let spot = Spot::On {
            node: "NODE",
            control_plane: false,
        };
        for (seat, shown) in [
            (Seat::Tracer { is_far: false }, crate::TRACER),
            (Seat::Tuner(0), crate::TUNER),
        ] {
            let shown: Value = serde_saphyr::from_str(shown).unwrap();
            let mut made = json!(pod(seat, spot, "IMAGE", &mark));
            // Of a process on that workstation.
            made["metadata"]["annotations"][PROCESS] = "7f3a90c1-4026531836-4711-802365".into();
            assert_eq!(shown, made);
        }
    }

    #[test]
    fn a_launched_pod_is_one_of_the_run_and_knows_its_peer() {
        let order = LaunchedOrder {
            peer: ([10, 0, 0, 7], 40_001).into(),
            launch: "9f".to_owned(),
            pod: 12,
        };
        let pod = launched(&order, "b", "image:1", &mark(true));
        assert_eq!(pod.metadata.name.as_deref(), Some("launched-9f-12-3fa2"));
        let labels = pod.metadata.labels.unwrap();
        assert_eq!((&*labels[RUN], &*labels[LAUNCH]), ("3fa2", "9f"));
        assert!(!labels.contains_key(SEAT), "no service leads to it");
        let spec = pod.spec.unwrap();
        assert_eq!(spec.share_process_namespace, Some(true));
        assert_eq!(spec.host_network, None);
        assert_eq!(spec.security_context.unwrap().run_as_non_root, Some(true));
        let env = spec.containers[0].env.as_ref().unwrap();
        let told: LaunchedOrder = serde_json::from_str(env[0].value.as_ref().unwrap()).unwrap();
        assert_eq!((&*env[0].name, told), (LAUNCHED, order));
    }

    #[test]
    fn a_pod_does_not_outlive_a_day_and_is_not_started_again() {
        let spec = on_a(CLIENT).spec.unwrap();
        assert_eq!(spec.active_deadline_seconds, Some(86_400));
        assert_eq!(spec.restart_policy.as_deref(), Some("Never"));
    }

    #[test]
    fn both_protocols_go_through_one_port_and_more_of_tcp_through_the_next() {
        let spec = service(SERVER, true, false, &mark(false)).spec.unwrap();
        let ports = spec.ports.unwrap();
        let ports: Vec<_> = ports
            .iter()
            .map(|it| (it.protocol.as_deref().unwrap(), it.port))
            .collect();
        assert_eq!(ports, [("TCP", 7117), ("UDP", 7117), ("TCP", 7118)]);
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
