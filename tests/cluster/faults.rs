//! Each fault: an exit code, a sentence with the remedy, nothing left, finished
//! trials kept.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use super::{Cluster, cluster, read, short, statuses};
use crate::world::{eventually, run_directory, skip, stderr, trials};

#[track_caller]
fn refused(output: &Output, code: i32, says: &[&str]) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    for part in says {
        assert!(text.contains(part), "it should say {part:?}: {text}");
    }
}

#[test]
fn without_a_cluster_it_says_how_to_name_one() {
    let missing = |path: &str| {
        let mut command = crate::world::plumbline(&["run", "--target", "kubernetes"]);
        command.env("KUBECONFIG", path);
        command.output().unwrap()
    };
    refused(
        &missing("/nonexistent"),
        2,
        &["no Kubernetes cluster", "KUBECONFIG", "--context"],
    );

    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config");
    // Nobody listens on this port of loopback (RFC 863 set it aside).
    let text = r#"{"apiVersion":"v1","kind":"Config","current-context":"a",
        "contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],
        "clusters":[{"name":"a","cluster":{"server":"http://127.0.0.1:9"}}],
        "users":[{"name":"a","user":{}}]}"#;
    std::fs::write(&config, text).unwrap();
    refused(
        &missing(config.to_str().unwrap()),
        2,
        &["127.0.0.1:9", "does not answer"],
    );
    let mut other = crate::world::plumbline(&["run", "--target", "kubernetes", "--context", "b"]);
    let output = other.env("KUBECONFIG", &config).output().unwrap();
    refused(&output, 2, &["context b", "there are: a"]);
}

#[test]
fn flags_of_a_cluster_ask_for_the_target() {
    let output = crate::world::output(&["run", "--allow-host-network"]);
    refused(
        &output,
        64,
        &["--allow-host-network", "--target kubernetes"],
    );
}

#[test]
fn an_image_that_is_not_there_is_told_within_15_seconds() {
    let Some(cluster) = cluster() else { return };
    let before = cluster.inventory();
    let started = Instant::now();
    let image = "localhost/plumbline:none";
    let output = cluster
        .run(&short(&["--network", "pod", "--image", image]))
        .output()
        .unwrap();
    let took = started.elapsed();
    refused(
        &output,
        2,
        &[image, "cannot get the image", "plumbline image", "--image"],
    );
    assert!(took < Duration::from_secs(15), "{took:?}");
    assert_eq!(cluster.inventory(), before);
}

#[test]
fn nodes_that_cannot_be_used_are_named() {
    let Some(cluster) = cluster() else { return };
    let before = cluster.inventory();
    let run = |nodes: &str| {
        let arguments = short(&["--network", "pod", "--nodes", nodes]);
        cluster.run(&arguments).output().unwrap()
    };
    refused(&run("nowhere"), 2, &["no node nowhere", "there are"]);
    let nodes = cluster.nodes();
    let one = nodes[0].as_str();
    refused(&run(one), 2, &["two ready nodes", "--placement same-node"]);
    let Some(two) = nodes.get(1) else { return };
    cluster.kubectl(&["cordon", two]);
    let cordoned = run(&format!("{one},{two}"));
    let alone = cluster.run(&short(&["--network", "pod"])).output();
    cluster.kubectl(&["uncordon", two]);
    refused(&cordoned, 2, &["cordoned", two]);
    if nodes.len() == 2 {
        refused(&alone.unwrap(), 2, &["two ready nodes"]);
    }
    assert_eq!(cluster.inventory(), before);
}

/// A trial whose pod is killed is marked; the pod is replaced, and the trial
/// repeated.
#[test]
fn a_pod_that_is_killed_costs_its_trial_only() {
    let Some(cluster) = cluster() else { return };
    let before = cluster.inventory();
    let long = ["--network", "pod", "--duration", "5s", "--blocks", "3"];
    let mut run = cluster.start(&short(&long));
    eventually("a trial has ended", Duration::from_secs(60), || {
        cluster.run_directory().is_some_and(|run| trials(&run) > 0)
    });
    // Into the next one.
    std::thread::sleep(Duration::from_secs(1));
    let namespace = cluster.ours().remove(0);
    let namespace = namespace.trim_start_matches("namespace/");
    let now = ["--grace-period=0", "--force"];
    cluster.kubectl(
        &[
            &["delete", "pod", "server", "--namespace", namespace],
            &now[..],
        ]
        .concat(),
    );
    run.wait(Duration::from_secs(120));
    let (_, trials) = read(&run_directory(cluster.out()));
    let failed: Vec<_> = trials
        .iter()
        .filter(|it| it["status"]["status"] == "failed")
        .collect();
    assert_eq!(failed.len(), 1, "{:?}", statuses(&trials));
    assert!(
        failed[0]["status"]["error"]
            .as_str()
            .unwrap()
            .contains("/server")
    );
    // Disturbance repeats trials too: what counts is that the next one ran.
    let at = trials
        .iter()
        .position(|it| it["status"]["status"] == "failed");
    let next = at.and_then(|at| trials.get(at + 1));
    assert!(next.expect("the run went on")["observation"].is_object());
    assert_eq!(trials.last().unwrap()["block"], 2, "the run went on");
    assert_eq!(cluster.inventory(), before);
}

/// A daemon of the cluster that is stopped, and goes on when dropped.
struct Stopped {
    kubelab: String,
    machine: &'static str,
    daemon: &'static str,
}

impl Stopped {
    /// `None`, and a counted skip, where the cluster is not ours to stop.
    fn new(machine: &'static str, daemon: &'static str) -> Option<Self> {
        let Ok(kubelab) = std::env::var("PLUMBLINE_TEST_KUBELAB") else {
            skip(
                "cluster",
                "PLUMBLINE_TEST_KUBELAB names no cluster of which parts may be stopped",
            );
            return None;
        };
        let stopped = Self {
            kubelab,
            machine,
            daemon,
        };
        stopped.signal("STOP");
        Some(stopped)
    }

    fn signal(&self, signal: &str) {
        let command = format!("kill -{signal} $(cat /run/kubelab/{}.pid)", self.daemon);
        let status = Command::new(&self.kubelab)
            .args(["exec", self.machine, "sh", "-c", &command])
            .status()
            .expect("kubelab is there");
        assert!(status.success(), "{command}");
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.signal("CONT");
    }
}

/// The trials before it and after it count.
#[test]
fn an_api_server_that_is_away_costs_the_trial_under_way() {
    let Some(cluster) = cluster() else { return };
    let before = cluster.inventory();
    let many = ["--network", "pod", "--duration", "500ms", "--blocks", "8"];
    let mut run = cluster.start(&short(&many));
    eventually("a trial has ended", Duration::from_secs(60), || {
        cluster.run_directory().is_some_and(|run| trials(&run) > 0)
    });
    let Some(away) = Stopped::new("cp", "kube-apiserver") else {
        return;
    };
    std::thread::sleep(Duration::from_secs(30));
    drop(away);
    run.wait(Duration::from_secs(180));
    let (_, trials) = read(&run_directory(cluster.out()));
    let failed = trials
        .iter()
        .filter(|it| it["status"]["status"] == "failed");
    assert!(failed.count() <= 1, "{:?}", statuses(&trials));
    assert_eq!(trials.last().unwrap()["block"], 7, "the run went on");
    assert_eq!(cluster.inventory(), before);
}

/// The run ends with what it has, and its namespace goes although the kubelet
/// cannot say that its pods are gone.
#[test]
fn a_kubelet_that_does_not_answer_ends_the_run_and_nothing_is_left() {
    let Some(cluster) = cluster() else { return };
    let before = cluster.inventory();
    let many = [
        "--network",
        "pod",
        "--blocks",
        "2",
        "--duration",
        "1s",
        "--set",
        "design.retries=0",
    ];
    let mut run = cluster.start(&short(&many));
    eventually("a trial has ended", Duration::from_secs(60), || {
        cluster.run_directory().is_some_and(|run| trials(&run) > 0)
    });
    let Some(away) = Stopped::new("node2", "kubelet") else {
        return;
    };
    let code = run.wait(Duration::from_secs(150));
    assert!(code.is_some());
    assert!(trials(&run_directory(cluster.out())) > 0);
    assert_eq!(inventory_in_time(&cluster, &before), before);
    drop(away);
}

fn inventory_in_time(cluster: &Cluster, wanted: &[String]) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let now = cluster.inventory();
        if now == wanted || Instant::now() > deadline {
            return now;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// A program of another version, as far as its greeting goes.
const OTHER_VERSION: &str = r#"#!/bin/busybox sh
hello='{"message":"hello","protocol":2,"version":"9.9.9"}'
case $1 in
hold) exec /bin/busybox sleep 1000 ;;
esac
/bin/busybox printf '\000\000\000\062%s' "$hello"
/bin/busybox cat >/dev/null
"#;

#[test]
fn an_image_of_another_version_is_refused() {
    let Some(cluster) = cluster() else { return };
    let Ok(kubelab) = std::env::var("PLUMBLINE_TEST_KUBELAB") else {
        skip(
            "cluster",
            "PLUMBLINE_TEST_KUBELAB names nothing that could load an image",
        );
        return;
    };
    let before = cluster.inventory();
    let image = "localhost/plumbline:other";
    load_other_version(&kubelab, image);
    let arguments = short(&["--network", "pod", "--image", image]);
    let output = cluster.run(&arguments).output().unwrap();
    refused(&output, 2, &["is Plumbline 9.9.9", "same version"]);
    assert_eq!(cluster.inventory(), before);
}

/// Makes an image of the script and the shell that is in one of kubelab's, and
/// loads it.
#[track_caller]
fn load_other_version(kubelab: &str, image: &str) {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    std::fs::create_dir(&root).unwrap();
    let home = std::env::var("KUBELAB_HOME").unwrap_or_else(|_| "/var/lib/kubelab".to_owned());
    let did = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    };
    let unpack = |archive: &std::path::Path, to: &std::path::Path| {
        let mut tar = Command::new("tar");
        did(tar.arg("-xf").arg(archive).arg("-C").arg(to));
    };
    unpack(
        &std::path::Path::new(&home).join("images/busybox.tar"),
        dir.path(),
    );
    unpack(&dir.path().join("layer.tar"), &root);
    let program = root.join("plumbline");
    std::fs::write(&program, OTHER_VERSION).unwrap();
    for path in [&root, &program] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let archive = dir.path().join("image.tar");
    let mut make = Command::new(kubelab);
    did(make
        .arg("image")
        .arg(&archive)
        .arg(image)
        .arg(&root)
        .arg("/plumbline"));
    did(Command::new(kubelab).arg("load").arg(&archive));
}
