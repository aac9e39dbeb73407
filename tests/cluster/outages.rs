//! What goes wrong while a run is under way: the run ends with an exit code and a
//! sentence, leaves nothing behind, and keeps the trials that were finished.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::kubelab::Kubelab;
use super::left::agents;
use super::{Cluster, cluster, lasting, read, short, statuses};
use crate::observed::{exit_code, lost, ran_to_its_end};
use crate::world::{Running, eventually, run_directory, stdout, trials};

/// The receiver's pod of the path `pod`.
pub(super) const SERVER: &str = "server-pod";

/// A run of which a trial has ended, and the namespace of its pods.
#[track_caller]
pub(super) fn under_way(cluster: &Cluster, flags: &[&str]) -> (Running, String) {
    let run = cluster.start(&short(&[&["--network", "pod"], flags].concat()));
    eventually("a trial has ended", Duration::from_secs(60), || {
        cluster.run_directory().is_some_and(|run| trials(&run) > 0)
    });
    let own = || {
        let named = cluster.ours().remove(0);
        named.trim_start_matches("namespace/").to_owned()
    };
    (run, cluster.namespace.map_or_else(own, str::to_owned))
}

/// The same of long trials, of which another is under way: a kubelet may take three seconds to
/// end a pod.
#[track_caller]
pub(super) fn amid_a_trial(cluster: &Cluster, blocks: &str) -> (Running, String) {
    let started = under_way(cluster, &["--duration", "5s", "--blocks", blocks]);
    std::thread::sleep(Duration::from_secs(1));
    eventually("a load runs", Duration::from_secs(30), || {
        agents(cluster) > 2
    });
    started
}

/// Deletes a pod with no grace period.
pub(super) fn kill(cluster: &Cluster, namespace: &str, pod: &str) {
    let now = ["--grace-period=0", "--force"];
    let pod = ["delete", "pod", pod, "--namespace", namespace];
    cluster.kubectl(&[&pod, &now[..]].concat());
}

/// Makes an object, or a list of some.
#[track_caller]
pub(super) fn create(cluster: &Cluster, object: &Value) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), object.to_string()).unwrap();
    cluster.kubectl(&["create", "--filename", file.path().to_str().unwrap()]);
}

pub(super) fn failed(trials: &[Value]) -> Vec<&Value> {
    let failed = |it: &&Value| it["status"]["status"] == "failed";
    trials.iter().filter(failed).collect()
}

/// A trial whose pod is taken away is marked, the pod is replaced, and the
/// trial repeated.
#[track_caller]
fn costs_its_trial_only(blocks: &str, take_away: impl FnOnce(&Cluster, &str)) {
    let Some(cluster) = cluster() else { return };
    let before = cluster.inventory();
    let (mut run, namespace) = amid_a_trial(&cluster, blocks);
    take_away(&cluster, &namespace);
    let code = run.wait(Duration::from_secs(120));
    let directory = run_directory(cluster.out());
    assert_eq!(code, Some(exit_code(&directory)), "{}", cluster.said());
    let (_, trials) = read(&directory);
    let lost = failed(&trials);
    assert_eq!(lost.len(), 1, "{:?}", statuses(&trials));
    let why = lost[0]["status"]["error"].as_str().unwrap();
    assert!(why.contains(&format!("/{SERVER}")), "{why}");
    // Disturbance repeats trials too: what counts is that the next one ran.
    let at = trials
        .iter()
        .position(|it| it["status"]["status"] == "failed");
    let next = at.and_then(|at| trials.get(at + 1));
    let observed = next.is_some_and(|it| it["observation"].is_object());
    assert!(observed, "{:?}: {}", statuses(&trials), cluster.said());
    let last = blocks.parse::<u64>().unwrap() - 1;
    let reached = &trials.last().unwrap()["block"];
    assert_eq!(reached, last, "the run went on: {}", cluster.said());
    assert_eq!(cluster.inventory(), before);
}

#[test]
fn a_pod_that_is_killed_costs_its_trial_only() {
    costs_its_trial_only("3", |cluster, namespace| kill(cluster, namespace, SERVER));
}

#[test]
fn a_pod_that_is_evicted_costs_its_trial_only() {
    costs_its_trial_only("3", |cluster, namespace| {
        let file = tempfile::NamedTempFile::new().unwrap();
        let eviction = serde_json::json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": { "name": SERVER, "namespace": namespace },
        });
        std::fs::write(file.path(), eviction.to_string()).unwrap();
        let path = format!("/api/v1/namespaces/{namespace}/pods/{SERVER}/eviction");
        let file = file.path().to_str().unwrap();
        cluster.kubectl(&["create", "--raw", &path, "--filename", file]);
    });
}

/// Has the kubelet end a pod, as it does when it runs out of memory: the pod stays, as
/// failed. The kubelet looks for pods beyond their deadline only every 10 s.
#[test]
fn a_pod_that_its_kubelet_ends_costs_its_trial_only() {
    costs_its_trial_only("8", |cluster, namespace| {
        let over = r#"{"spec":{"activeDeadlineSeconds":1}}"#;
        let pod = ["patch", "pod", SERVER, "--namespace", namespace];
        cluster.kubectl(&[&pod, &["--patch", over][..]].concat());
    });
}

/// Waits for the end of a run that cannot go on, and checks what it said and kept, and
/// that it can be resumed.
#[track_caller]
fn ended_by(cluster: &Cluster, run: &mut Running, says: &[&str]) {
    assert_eq!(
        run.wait(Duration::from_secs(120)),
        Some(2),
        "{}",
        cluster.said()
    );
    let said = cluster.said();
    for part in says.iter().chain(&["--resume"]) {
        assert!(said.contains(part), "it should say {part:?}: {said}");
    }
    let (_, trials) = read(&run_directory(cluster.out()));
    let kept = trials.iter().filter(|it| it["observation"].is_object());
    assert!(kept.count() > 0, "{:?}", statuses(&trials));
}

#[test]
fn a_quota_that_is_used_up_ends_the_run_which_can_be_resumed() {
    let Some(cluster) = cluster() else { return };
    let before = cluster.inventory();
    let (mut run, namespace) = under_way(&cluster, &["--duration", "1s", "--blocks", "4"]);
    let quota = serde_json::json!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": { "name": "none", "namespace": namespace },
        "spec": { "hard": { "pods": "0" } },
    });
    create(&cluster, &quota);
    kill(&cluster, &namespace, SERVER);
    ended_by(&cluster, &mut run, &["exceeded quota", "ResourceQuota"]);
    assert_eq!(cluster.inventory(), before);

    let directory = run_directory(cluster.out());
    let kept = trials(&directory);
    let output = cluster.resume(&directory).output().unwrap();
    ran_to_its_end(&output, &directory);
    let (_, all) = read(&directory);
    assert!(all.len() > kept, "{}", crate::world::stderr(&output));
    assert_eq!(all.last().unwrap()["block"], 3, "{:?}", statuses(&all));
    assert_eq!(cluster.inventory(), before);
}

#[test]
fn a_pod_that_finds_no_node_ends_the_run() {
    let Some(cluster) = cluster() else { return };
    let Some([_, two]) = &cluster.pair() else {
        return;
    };
    let before = cluster.inventory();
    let (mut run, namespace) = under_way(&cluster, &["--duration", "1s", "--blocks", "4"]);
    cluster.kubectl(&["cordon", two]);
    let open = Uncordon(&cluster, two);
    kill(&cluster, &namespace, SERVER);
    ended_by(&cluster, &mut run, &["unschedulable", "--nodes"]);
    drop(open);
    assert_eq!(cluster.inventory(), before);
}

struct Uncordon<'a>(&'a Cluster, &'a str);

impl Drop for Uncordon<'_> {
    fn drop(&mut self) {
        let _ = self.0.try_kubectl(&["uncordon", self.1]);
    }
}

/// The run keeps its results and says what holds the namespace; when that is
/// resolved, nothing is left.
#[test]
fn a_namespace_that_is_held_is_told_and_goes_when_let_go() {
    let Some(cluster) = cluster() else { return };
    let before = cluster.inventory();
    let (mut run, namespace) = under_way(&cluster, &["--duration", "1s", "--blocks", "2"]);
    let held = serde_json::json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "held",
            "namespace": namespace,
            "finalizers": ["test.example/held"],
        },
    });
    create(&cluster, &held);
    assert_eq!(run.wait(Duration::from_secs(120)), Some(2));
    let said = cluster.said();
    for part in [
        &namespace,
        "test.example/held in 1 resource instances",
        "plumbline cleanup",
    ] {
        assert!(said.contains(part), "it should say {part:?}: {said}");
    }
    let (_, trials) = read(&run_directory(cluster.out()));
    assert_eq!(trials.last().unwrap()["block"], 1, "{said}");

    let none = r#"{"metadata":{"finalizers":null}}"#;
    let object = ["patch", "configmap", "held", "--namespace", &namespace];
    cluster.kubectl(&[&object, &["--patch", none][..]].concat());
    assert_eq!(inventory_in_time(&cluster, &before), before);
}

/// A daemon of the cluster that is away until dropped.
pub(super) struct Away {
    kubelab: Kubelab,
    machine: &'static str,
    daemon: &'static str,
}

impl Away {
    /// `None`, and a counted skip, where the cluster is not ours to stop.
    pub(super) fn new(machine: &'static str, daemon: &'static str) -> Option<Self> {
        let kubelab = Kubelab::of_cluster("no cluster of which parts may be stopped")?;
        kubelab.order(&["stop", machine, daemon]);
        Some(Self {
            kubelab,
            machine,
            daemon,
        })
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        self.kubelab.order(&["start", self.machine, self.daemon]);
    }
}

/// Takes a daemon away from a run for a while: that costs it the trial under way at most.
#[track_caller]
fn goes_on_without(machine: &'static str, daemon: &'static str, time: Duration) {
    let Some(cluster) = lasting() else { return };
    let before = cluster.inventory();
    let (mut run, _) = under_way(&cluster, &["--duration", "500ms", "--blocks", "8"]);
    let Some(away) = Away::new(machine, daemon) else {
        return;
    };
    cluster.disturb();
    std::thread::sleep(time);
    drop(away);
    let code = run.wait(Duration::from_secs(180));
    let directory = run_directory(cluster.out());
    let (_, trials) = read(&directory);
    assert!(lost(&trials).len() <= 1, "{:?}", statuses(&trials));
    assert_eq!(trials.last().unwrap()["block"], 7, "{}", cluster.said());
    assert_eq!(code, Some(exit_code(&directory)), "{}", cluster.said());
    assert_eq!(inventory_in_time(&cluster, &before), before);
}

/// The trials before it and after it carry their load.
#[test]
fn an_api_server_that_is_away_for_90_seconds_costs_the_trial_under_way() {
    goes_on_without("cp", "kube-apiserver", Duration::from_secs(90));
}

/// That of flannel: what it has set up in the kernel carries packets without it.
#[test]
fn a_network_s_agent_that_is_restarted_costs_the_trial_under_way_at_most() {
    goes_on_without("node2", "flanneld", Duration::from_secs(2));
}

/// The run ends with what it has, and its namespace goes although the kubelet
/// cannot say that its pods are gone.
#[test]
fn a_kubelet_that_is_away_ends_the_run_and_nothing_is_left() {
    let Some(cluster) = cluster() else { return };
    let before = cluster.inventory();
    let few = ["--duration", "1s", "--blocks", "3"];
    let (mut run, _) = under_way(&cluster, &few);
    let Some(_away) = Away::new("node2", "kubelet") else {
        return;
    };
    cluster.disturb();
    ended_by(&cluster, &mut run, &["cannot reach the kubelet"]);
    assert_eq!(inventory_in_time(&cluster, &before), before);
}

/// Waits until a cluster is as it was before a part of it was away. Some seconds after an API
/// server is back, the controllers take all nodes for lost, because none has reported
/// yet; within a minute they see that none is. A node that is lost is ready for 40 s
/// more, so each must have renewed its lease, too.
#[track_caller]
pub(super) fn until_nodes_stay_ready(cluster: &Cluster) {
    const STAY: Duration = Duration::from_secs(15);
    let words = |what: &[&str], path: &str| -> Vec<String> {
        let output = cluster.try_kubectl(&[&["get"], what, &["--output", path]].concat());
        let text = stdout(&output);
        text.split_whitespace().map(str::to_owned).collect()
    };
    let renewals = || {
        let leases = ["leases", "--namespace", "kube-node-lease"];
        words(&leases, "jsonpath={.items[*].spec.renewTime}")
    };
    let ready = "jsonpath={.items[*].status.conditions[?(@.type==\"Ready\")].status}";
    let mut first = renewals();
    let mut since = Instant::now();
    eventually("all nodes stay ready", Duration::from_secs(120), || {
        std::thread::sleep(Duration::from_millis(500));
        let states = words(&["nodes"], ready);
        if states.is_empty() || states.iter().any(|it| it != "True") {
            since = Instant::now();
        }
        let last = renewals();
        if first.len() != states.len() {
            first.clone_from(&last);
        }
        let renewed = first.iter().zip(&last).all(|(first, last)| first != last);
        since.elapsed() > STAY && first.len() == last.len() && renewed
    });
}

#[track_caller]
pub(super) fn inventory_in_time(cluster: &Cluster, wanted: &[String]) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let now = cluster.inventory();
        if now == wanted || Instant::now() > deadline {
            return now;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}
