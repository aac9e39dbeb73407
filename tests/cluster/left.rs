//! What is left in the cluster after a run that was cut off.

use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::kubelab::NodeInventory;
use super::outages::inventory_in_time;
use super::{Cluster, cluster, refused, short};
use crate::inventory::Inventory;
use crate::moments::{Moments, say, times};
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

/// The agents end by themselves (S-5e; `lease` holds how soon each does). Then `cleanup` shows what
/// is left, and removes it when told to, from elsewhere than where the run was not before its pods
/// have ended. First while a load runs, then at moments from the first pod to a while into a load.
#[test]
fn a_killed_controller_stops_the_load_and_cleanup_removes_the_rest() {
    const TEST: &str = "a_killed_controller_stops_the_load_and_cleanup_removes_the_rest";
    let Some(cluster) = cluster() else { return };
    let nodes = NodeInventory::take(&cluster);
    let mut moments = Moments::new(TEST);
    let before = cluster.inventory();
    // Kubelets remove the groups of pods when they get to it, and kernels in user mode, which may
    // run beside it, have their memory in shared files.
    let machine = Inventory::take()
        .without("control group")
        .without("shared memory");
    let mut span = None;
    for _ in 0..times(2) {
        let run = start_of_long_trials(&cluster);
        let since = Instant::now();
        if let Some(span) = span {
            let moment = moments.within(span);
            std::thread::sleep(moment);
            say(&format!("killed {moment:?} after its first pod"));
        } else {
            eventually("a load runs", Duration::from_secs(60), || {
                cluster.run_directory().is_some() && agents(&cluster) > 2
            });
            span = Some(since.elapsed() * 3 / 2);
        }
        is_killed_and_cleaned_up(&cluster, run);
        assert_eq!(inventory_in_time(&cluster, &before), before);
        machine.assert_unchanged();
        if let Some(nodes) = &nodes {
            nodes.assert_nothing_new(&cluster);
        }
    }
    let nothing = cluster.plumbline(&["cleanup"]).output().unwrap();
    refused(&nothing, 0, &["nothing of Plumbline's"]);
}

/// A run of trials of a minute, which has a pod. One without any may just be beginning, and
/// `cleanup` leaves it alone for two minutes.
#[track_caller]
fn start_of_long_trials(cluster: &Cluster) -> Running {
    let long_trials = ["--duration", "60s", "--blocks", "2", "--network", "pod"];
    let run = cluster.start(&short(&long_trials));
    eventually("it has a pod", Duration::from_secs(60), || {
        let own = cluster.ours();
        own.iter().any(|namespace| {
            let name = namespace.trim_start_matches("namespace/");
            let pods = ["get", "pods", "--output", "name", "--namespace", name];
            !cluster.kubectl(&pods).is_empty()
        })
    });
    run
}

/// Kills a run, and has `cleanup` remove what is left.
#[track_caller]
fn is_killed_and_cleaned_up(cluster: &Cluster, mut run: Running) {
    run.signal(Signal::SIGKILL);
    assert_eq!(run.wait(Duration::from_secs(5)), None);
    // Those of a trial of a minute; the machine may be busy.
    eventually("the agents have ended", Duration::from_secs(20), || {
        agents(cluster) == 0
    });

    let left = cluster.ours();
    assert_eq!(left.len(), 1, "{left:?}");
    let shown = cluster.plumbline(&["cleanup"]).output().unwrap();
    assert!(shown.status.success(), "{}", stderr(&shown));
    let name = left[0].trim_start_matches("namespace/");
    assert!(stdout(&shown).contains(name), "{}", stdout(&shown));
    assert_eq!(cluster.ours(), left, "only told to show");
    for more in [&["--yes"][..], &["--all", "--yes"]] {
        let kept = cluster.plumbline(&[&["cleanup"], more].concat());
        let kept = elsewhere(&kept).output().unwrap();
        assert!(kept.status.success(), "{}", stderr(&kept));
        assert_eq!(cluster.ours(), left, "its pods have not ended");
    }
    let asked = cluster.plumbline(&["cleanup", name, "--yes"]);
    let asked = elsewhere(&asked).output().unwrap();
    refused(&asked, 2, &["may go on"]);
    assert_eq!(cluster.ours(), left, "its pods have not ended");

    let removed = cluster.plumbline(&["cleanup", "--yes"]).output().unwrap();
    assert!(removed.status.success(), "{}", stderr(&removed));
    assert_eq!(cluster.ours(), [""; 0], "{}", stdout(&removed));
}

/// The program where nobody sees the processes of this machine, as on another one.
pub(super) fn elsewhere(program: &Command) -> Command {
    let mut alone = Command::new("unshare");
    alone.args([
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--mount-proc",
    ]);
    alone.arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        alone.env(name, value.expect("none is taken away"));
    }
    alone
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
