//! Nodes that are tuned while a run lasts, by consent, and are as before afterwards.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::kubelab::NodeInventory;
use super::left::agents;
use super::outages::{self, failed};
use super::{Cluster, cluster, read, statuses};
use crate::observed::exit_code;
use crate::tune::{File, hold, to_set};
use crate::world::{Running, eventually, run_directory, skip, stderr};

/// The cluster, and what its nodes set that is their kernel's, which is this machine's where
/// kubelab made them; `None`, and a counted skip, where another machine's would have to be seen.
fn tunable() -> Option<(Cluster, Vec<File>)> {
    let cluster = cluster()?;
    let test = "tuned nodes";
    super::kubelab::Kubelab::of_cluster("none, so the nodes' settings cannot be seen")?;
    let mut files = to_set(test)?;
    files.retain(|file| file.name.starts_with("/proc/sys/vm/"));
    if files.is_empty() {
        skip(test, "a kernel with nothing of its own to set");
        return None;
    }
    Some((cluster, files))
}

/// A run of three trials of three seconds, of which one has ended.
#[track_caller]
fn under_way(cluster: &Cluster, files: &[File]) -> Running {
    let flags = ["--duration", "3s", "--blocks", "3", "--allow-tuning"];
    let (run, _) = outages::under_way(cluster, &flags);
    assert!(hold(files, |file| &file.set), "{}", cluster.said());
    run
}

/// As long as a run lasts. The trial in which a node loses the pod that tunes it is lost, and
/// the next ones have another.
#[test]
fn nodes_are_tuned_and_one_that_loses_its_pod_costs_a_trial() {
    let Some((cluster, files)) = tunable() else {
        return;
    };
    let before = cluster.inventory();
    let mut run = under_way(&cluster, &files);
    std::thread::sleep(Duration::from_secs(1));
    let pods = cluster.kubectl(&["get", "pods", "--all-namespaces", "--no-headers"]);
    let tuner = pods.lines().find(|line| line.contains("tuner-1"));
    let tuner = tuner.unwrap_or_else(|| panic!("{pods}"));
    let namespace = tuner.split_whitespace().next().unwrap();
    outages::kill(&cluster, namespace, "tuner-1");
    let code = run.wait(Duration::from_secs(120));
    let (record, trials) = read(&run_directory(cluster.out()));
    assert_eq!(
        code,
        Some(exit_code(&run_directory(cluster.out()))),
        "{}",
        cluster.said()
    );
    let lost = failed(&trials);
    assert!(!lost.is_empty(), "{:?}", statuses(&trials));
    let why = lost[0]["status"]["error"].as_str().unwrap();
    assert!(why.contains("/tuner-1"), "{why}");
    assert!(
        trials.last().unwrap()["observation"].is_object(),
        "{}",
        cluster.said()
    );
    let tuned = &record["fingerprint"]["tuned"];
    assert!(tuned.to_string().contains("VM statistics"), "{tuned}");
    assert!(hold(&files, |file| &file.now), "they were put back");
    assert_eq!(cluster.inventory(), before);
}

/// They stay tuned until the pods end, which they do by themselves.
#[test]
fn nodes_of_a_killed_run_are_put_back_when_its_pods_end() {
    let Some((cluster, files)) = tunable() else {
        return;
    };
    let (before, nodes) = (cluster.inventory(), NodeInventory::take(&cluster));
    let mut run = under_way(&cluster, &files);
    run.signal(Signal::SIGKILL);
    assert_eq!(run.wait(Duration::from_secs(5)), None);
    eventually("the agents have ended", Duration::from_secs(20), || {
        agents(&cluster) == 0
    });
    for namespace in cluster.ours() {
        cluster.end_pods(namespace.trim_start_matches("namespace/"));
    }
    assert!(hold(&files, |file| &file.now), "they were put back");
    let removed = cluster.plumbline(&["cleanup", "--yes"]).output().unwrap();
    assert!(removed.status.success(), "{}", stderr(&removed));
    assert_eq!(cluster.inventory(), before);
    if let Some(nodes) = nodes {
        nodes.assert_nothing_new(&cluster);
    }
}
