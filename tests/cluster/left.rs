//! What is left in the cluster after a run that was cut off.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::{Cluster, cluster, short};
use crate::world::{Running, eventually, stderr, stdout, trials};

/// Long enough to be interrupted.
const LONG: &[&str] = &["--blocks", "200", "--network", "pod"];

/// A run of which a trial has ended.
fn under_way(cluster: &Cluster) -> Running {
    let run = cluster.start(&short(LONG));
    eventually("a trial has ended", Duration::from_secs(60), || {
        cluster.run_directory().is_some_and(|run| trials(&run) > 0)
    });
    run
}

#[test]
fn ctrl_c_leaves_nothing() {
    let Some(cluster) = cluster() else { return };
    let before = cluster.inventory();
    let mut run = under_way(&cluster);
    run.signal(Signal::SIGINT);
    assert_eq!(run.wait(Duration::from_secs(60)), Some(2));
    assert_eq!(cluster.inventory(), before);
    let kept = cluster.run_directory().expect("it was made");
    assert!(trials(&kept) > 0);
}

#[test]
fn ctrl_c_while_pods_start_leaves_nothing() {
    let Some(cluster) = cluster() else { return };
    let before = cluster.inventory();
    let mut run = cluster.start(&short(LONG));
    eventually("a namespace is made", Duration::from_secs(30), || {
        !cluster.ours().is_empty()
    });
    run.signal(Signal::SIGINT);
    assert_eq!(run.wait(Duration::from_secs(60)), Some(2));
    assert_eq!(cluster.inventory(), before);
}

/// S-5e: the load stops within 3 s. Then `cleanup` shows what is left, and
/// removes it when told to, but not before its pods have ended.
#[test]
fn a_killed_controller_stops_the_load_and_cleanup_removes_the_rest() {
    let Some(cluster) = cluster() else { return };
    let before = cluster.inventory();
    let long_trials = ["--duration", "60s", "--blocks", "2", "--network", "pod"];
    let mut run = cluster.start(&short(&long_trials));
    eventually("a load runs", Duration::from_secs(60), || {
        cluster.run_directory().is_some() && agents(&cluster) > 2
    });
    run.signal(Signal::SIGKILL);
    assert_eq!(run.wait(Duration::from_secs(5)), None);
    // Those of a trial of a minute.
    eventually("the agents have ended", Duration::from_secs(20), || {
        agents(&cluster) == 0
    });

    let left = cluster.ours();
    assert_eq!(left.len(), 1, "{left:?}");
    let shown = cluster.plumbline(&["cleanup"]).output().unwrap();
    assert!(shown.status.success(), "{}", stderr(&shown));
    let name = left[0].trim_start_matches("namespace/");
    assert!(stdout(&shown).contains(name), "{}", stdout(&shown));
    assert_eq!(cluster.ours(), left, "only told to show");
    for more in [&["--yes"][..], &["--all", "--yes"]] {
        let kept = cluster.plumbline(&[&["cleanup"], more].concat()).output();
        let kept = kept.unwrap();
        assert!(kept.status.success(), "{}", stderr(&kept));
        assert_eq!(cluster.ours(), left, "its pods have not ended");
    }
    let named = cluster.plumbline(&["cleanup", name, "--yes"]).output();
    let said = stderr(&named.unwrap());
    assert!(said.contains("may go on"), "{said}");
    assert_eq!(cluster.ours(), left, "its pods have not ended");

    cluster.end_pods(name);
    eventually("the pods have ended", Duration::from_secs(60), || {
        let removed = cluster.plumbline(&["cleanup", "--yes"]).output().unwrap();
        assert!(removed.status.success(), "{}", stderr(&removed));
        cluster.ours().is_empty()
    });
    assert_eq!(cluster.inventory(), before);
    let nothing = cluster.plumbline(&["cleanup"]).output().unwrap();
    assert!(stderr(&nothing).contains("nothing of Plumbline's"));
}

impl Cluster {
    /// Ends the pods of a namespace, as they do by themselves some minutes after a run.
    #[track_caller]
    pub(super) fn end_pods(&self, namespace: &str) {
        let list = ["-n", namespace, "get", "pods", "--output"];
        let pods = |show: &str| self.kubectl(&[&list[..], &[show]].concat());
        let end = r#"{"spec": {"activeDeadlineSeconds": 1}}"#;
        for pod in pods("name").lines() {
            self.kubectl(&["-n", namespace, "patch", pod, "--patch", end]);
        }
        let phases = "jsonpath={.items[*].status.phase}";
        eventually("the pods have ended", Duration::from_secs(60), || {
            !pods(phases).contains("Running")
        });
    }
}

/// Programs in the pods of runs beside the one that keeps each standing, as the
/// machine shows them where the nodes are on it. The image has no `ps`.
pub(super) fn agents(cluster: &Cluster) -> usize {
    let kubelab = std::env::var_os("PLUMBLINE_TEST_KUBELAB");
    if kubelab.is_none() {
        return usize::from(!cluster.ours().is_empty()) * 3;
    }
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return 0;
    };
    processes
        .flatten()
        .filter_map(|it| std::fs::read(it.path().join("cmdline")).ok())
        .filter(|line| line.starts_with(b"/plumbline\0agent\0"))
        .count()
}
