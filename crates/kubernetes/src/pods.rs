//! Pods as the cluster shows them: running, starting, or why not.

use std::net::IpAddr;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerState, Pod};
use kube::{Resource as _, ResourceExt as _};
use plumbline_experiment::Family;

use crate::ClusterError;

/// How long a pod may be unschedulable: an autoscaler may bring a node.
const GRACE: Duration = Duration::from_secs(8);

/// How long pulling an image may fail. The kubelet tries again after ten seconds,
/// which is long to wait for a mistyped name.
const PULL: Duration = Duration::from_secs(3);

#[derive(Clone, Debug, Default)]
pub(crate) struct RunningPod {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The one of ours, where it is not the only one.
    pub(crate) container: Option<String>,
    /// Name of its node.
    pub(crate) node: String,
    /// Of its program.
    pub(crate) image: String,
    /// Tells it from a later pod of the same name.
    pub(crate) uid: String,
    addresses: Vec<IpAddr>,
    /// Of its node.
    pub(crate) node_addresses: Vec<IpAddr>,
}

impl RunningPod {
    pub(crate) fn address(&self, family: Family) -> Option<IpAddr> {
        self.addresses.iter().copied().find(|it| family.holds(*it))
    }

    pub(crate) fn node_address(&self, family: Family) -> Option<IpAddr> {
        let mut all = self.node_addresses.iter().copied();
        all.find(|it| family.holds(*it))
    }
}

/// Whether it runs and is not being deleted.
pub(crate) fn is_running(pod: &Pod) -> bool {
    pod.meta().deletion_timestamp.is_none()
        && pod.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Running")
}

/// The pod as it runs; `None` while it starts.
pub(crate) fn state(
    pod: &Pod,
    waited: Duration,
    image: &str,
) -> Result<Option<RunningPod>, ClusterError> {
    let Some(status) = &pod.status else {
        return Ok(None);
    };
    if matches!(status.phase.as_deref(), Some("Failed" | "Succeeded")) {
        return Err(failed(pod, said(pod)));
    }
    refuse_hopeless(pod, container_state(pod), waited, image)?;
    if let Some(why) = unschedulable(pod).filter(|_| waited > GRACE) {
        let why = format!("{why}; free the node, or name others with --nodes");
        return Err(failed(pod, why));
    }
    let addresses: Vec<IpAddr> = status
        .pod_ips
        .iter()
        .flatten()
        .filter_map(|it| it.ip.parse().ok())
        .collect();
    let node_addresses = status.host_ips.iter().flatten();
    let node_addresses = node_addresses.filter_map(|it| it.ip.parse().ok()).collect();
    let uid = pod.uid().unwrap_or_default();
    let ready = is_running(pod) && !addresses.is_empty();
    Ok(ready.then(|| RunningPod {
        namespace: pod.namespace().unwrap_or_default(),
        name: pod.name_any(),
        container: None,
        node: node(pod),
        image: image.to_owned(),
        uid,
        addresses,
        node_addresses,
    }))
}

/// Whether an ephemeral container runs, which has been waited for so long.
pub(crate) fn has_started(
    pod: &Pod,
    container: &str,
    waited: Duration,
    image: &str,
) -> Result<bool, ClusterError> {
    let status = pod.status.as_ref();
    let all = status.and_then(|it| it.ephemeral_container_statuses.as_ref());
    let own = all.into_iter().flatten().find(|it| it.name == container);
    let state = own.and_then(|it| it.state.as_ref());
    refuse_hopeless(pod, state, waited, image)?;
    if let Some(ended) = state.and_then(|it| it.terminated.as_ref()) {
        let why = ended.message.clone().or_else(|| ended.reason.clone());
        let why = format!("{container} has ended: {}", why.unwrap_or_default().trim());
        return Err(failed(pod, why));
    }
    Ok(state.is_some_and(|it| it.running.is_some()))
}

/// An error where a container waits for what will not come.
fn refuse_hopeless(
    pod: &Pod,
    container: Option<&ContainerState>,
    waited: Duration,
    image: &str,
) -> Result<(), ClusterError> {
    let (reason, message) = container.and_then(waiting).unwrap_or_default();
    match reason.as_str() {
        "ErrImagePull" if waited < PULL => Ok(()),
        "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => {
            Err(ClusterError::Image {
                node: node(pod),
                image: image.to_owned(),
                message: format!("{reason}: {message}"),
            })
        }
        "CreateContainerError" | "CreateContainerConfigError" | "RunContainerError" => {
            Err(failed(pod, format!("{reason}: {message}")))
        }
        _ => Ok(()),
    }
}

fn failed(pod: &Pod, message: String) -> ClusterError {
    ClusterError::Pod {
        pod: format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any()),
        message,
    }
}

fn node(pod: &Pod) -> String {
    let node = pod.spec.as_ref().and_then(|it| it.node_name.clone());
    node.unwrap_or_default()
}

fn container_state(pod: &Pod) -> Option<&ContainerState> {
    let containers = pod.status.as_ref()?.container_statuses.as_ref()?;
    containers.first()?.state.as_ref()
}

/// Reason and message of a container that waits.
fn waiting(container: &ContainerState) -> Option<(String, String)> {
    let waiting = container.waiting.as_ref()?;
    Some((
        waiting.reason.clone().unwrap_or_default(),
        waiting.message.clone().unwrap_or_default(),
    ))
}

/// What a container that has failed said last, where the cluster keeps that.
fn last_words(pod: &Pod) -> Option<String> {
    let state = container_state(pod)?;
    let message = state.terminated.as_ref()?.message.as_deref()?;
    Some(message.trim().to_owned()).filter(|it| !it.is_empty())
}

fn unschedulable(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let placed = conditions.iter().find(|it| it.type_ == "PodScheduled")?;
    (placed.status == "False").then(|| placed.message.clone().unwrap_or_default())
}

/// What the cluster says about a pod that does not run.
pub(crate) fn said(pod: &Pod) -> String {
    let status = pod.status.as_ref();
    let own = status.and_then(|it| it.message.clone().or_else(|| it.reason.clone()));
    let waits = container_state(pod).and_then(waiting);
    let from_container = waits.map(|(reason, message)| format!("{reason}: {message}"));
    let from_container = from_container.or_else(|| last_words(pod));
    let phase = || status.and_then(|it| it.phase.clone()).unwrap_or_default();
    let why = own.or(from_container).or_else(|| unschedulable(pod));
    format!("pod {} is {}", pod.name_any(), why.unwrap_or_else(phase))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(status: serde_json::Value) -> Pod {
        let json = serde_json::json!({
            "metadata": { "name": "server", "namespace": "plumbline-x", "uid": "1" },
            "spec": { "nodeName": "b", "containers": [] },
            "status": status,
        });
        serde_json::from_value(json).unwrap()
    }

    fn waits_for(reason: &str) -> Pod {
        pod(serde_json::json!({
            "phase": "Pending",
            "containerStatuses": [{
                "name": "plumbline", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
                "state": { "waiting": { "reason": reason, "message": "the words of the kubelet" } },
            }],
        }))
    }

    fn told(pod: &Pod, waited: Duration) -> String {
        state(pod, waited, "image:1").unwrap_err().to_string()
    }

    #[test]
    fn an_image_that_cannot_be_had_is_told_with_the_remedy() {
        let text = told(&waits_for("ImagePullBackOff"), Duration::ZERO);
        for part in [
            "node b",
            "image:1",
            "words of the kubelet",
            "plumbline image",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let failing = waits_for("ErrImagePull");
        assert!(state(&failing, Duration::ZERO, "i").unwrap().is_none());
        assert!(told(&failing, PULL).contains("cannot get the image"));
    }

    #[test]
    fn a_pod_that_finds_no_place_is_told_after_a_while() {
        let message = "0/2 nodes are available: 2 Insufficient memory";
        let unplaced = pod(serde_json::json!({
            "phase": "Pending",
            "conditions": [{ "type": "PodScheduled", "status": "False", "message": message }],
        }));
        assert!(state(&unplaced, Duration::ZERO, "i").unwrap().is_none());
        let text = told(&unplaced, GRACE + Duration::from_secs(1));
        assert!(text.contains(message) && text.contains("--nodes"), "{text}");
    }

    #[test]
    fn an_evicted_pod_is_told_with_the_reason() {
        let evicted = pod(serde_json::json!({
            "phase": "Failed", "reason": "Evicted", "message": "the node was low on memory",
        }));
        assert!(told(&evicted, Duration::ZERO).contains("low on memory"));
    }

    #[test]
    fn a_pod_that_failed_is_told_with_what_its_program_said_last() {
        let failed = pod(serde_json::json!({
            "phase": "Failed",
            "containerStatuses": [{
                "name": "plumbline", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
                "state": { "terminated": { "exitCode": 2, "message": "plumbline: in use\n" } },
            }],
        }));
        let text = told(&failed, Duration::ZERO);
        assert!(text.ends_with("plumbline: in use"), "{text}");
    }

    /// A pod of somebody else's, with a container of ours in this state beside its own.
    fn lent(state: serde_json::Value) -> Pod {
        pod(serde_json::json!({
            "phase": "Running",
            "ephemeralContainerStatuses": [{
                "name": "ours", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
                "state": state,
            }],
        }))
    }

    #[test]
    fn a_container_in_a_pod_that_runs_has_started_when_it_does() {
        let started = |pod: &Pod, waited| has_started(pod, "ours", waited, "image:1");
        let runs = lent(serde_json::json!({ "running": {} }));
        assert!(started(&runs, Duration::ZERO).unwrap());
        assert!(!has_started(&runs, "another", Duration::ZERO, "i").unwrap());
        let waits = lent(serde_json::json!({ "waiting": { "reason": "ErrImagePull" } }));
        assert!(!started(&waits, Duration::ZERO).unwrap());
        let told = started(&waits, PULL).unwrap_err().to_string();
        assert!(told.contains("cannot get the image image:1"), "{told}");
        let ended = lent(serde_json::json!({ "terminated": { "exitCode": 1, "reason": "Error" } }));
        let told = started(&ended, Duration::ZERO).unwrap_err().to_string();
        assert!(
            told.contains("plumbline-x/server") && told.ends_with("Error"),
            "{told}"
        );
    }

    #[test]
    fn a_running_pod_has_its_addresses() {
        let runs = pod(serde_json::json!({
            "phase": "Running",
            "podIPs": [{ "ip": "10.0.0.2" }, { "ip": "fd00::2" }],
            "hostIPs": [{ "ip": "192.0.2.1" }],
        }));
        let running = state(&runs, Duration::ZERO, "i").unwrap().unwrap();
        assert_eq!(
            running.address(Family::V6),
            Some("fd00::2".parse().unwrap())
        );
        assert_eq!(
            running.node_address(Family::V4),
            Some([192, 0, 2, 1].into())
        );
        assert_eq!(running.node_address(Family::V6), None);
    }
}
