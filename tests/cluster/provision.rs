//! Clusters that are made for the run, by a script with one real cluster behind
//! it, and clusters that stand side by side.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::{Cluster, cluster, read, short};
use crate::observed::{is_set_up, ran_to_its_end};
use crate::world::{Running, eventually, run_directory, stderr, stdout, trials};

/// Stands for a program that makes clusters: it hands over the one that is
/// there, and notes when it was called. The network `broken` does not come up,
/// `slow` takes long, `mute` says nothing, and `shared` is one that others use.
const FAKE: &str = r#"#!/bin/sh
set -eu
here=$(dirname "$0")
echo "$1 $2" >>"$here/calls"
case $1-$2 in
  up-broken) echo 'the disk is full' >&2; exit 7 ;;
  up-slow) sleep 120 ;;
  up-mute) exit 0 ;;
  up-shared) cp "$FAKE_KUBECONFIG" "$KUBECONFIG" ;;
  up-*) cp "$FAKE_KUBECONFIG" "$KUBECONFIG"; echo 'said on the way' >&2; echo MADE_FOR_RUN=yes ;;
esac
"#;

/// The script, and what it was called with.
struct Fake {
    directory: tempfile::TempDir,
}

impl Fake {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("fake");
        fs::write(&script, FAKE).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        Self { directory }
    }

    fn command(&self, what: &str) -> String {
        let script = self.directory.path().join("fake");
        format!("{} {what} {{network}}", script.display())
    }

    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.directory.path().join("calls"));
        text.unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// A run of these networks, with what `other` flags say. They come in pairs.
    fn run(&self, cluster: &Cluster, networks: &str, other: &[&str]) -> std::process::Command {
        let flags = [&["--network", networks, "--path", "pod"], other].concat();
        self.provision(cluster.run(&short(&flags)))
    }

    fn provision(&self, mut command: std::process::Command) -> std::process::Command {
        let real = std::env::var_os("PLUMBLINE_TEST_KUBECONFIG").unwrap();
        command
            .args(["--provision", &self.command("up")])
            .env("FAKE_KUBECONFIG", real)
            // The test's cluster has the image already, and the configuration that is
            // used has to be the one that the command handed over.
            .env("PLUMBLINE_IMAGE", "there already")
            .env("KUBECONFIG", "/nonexistent/kubeconfig");
        command
    }

    /// Such a run under way, with its output discarded.
    fn start(&self, cluster: &Cluster, networks: &str, blocks: &str) -> Running {
        let down = self.command("down");
        let flags = ["--unprovision", &down, "--blocks", blocks];
        let mut command = self.run(cluster, networks, &flags);
        command
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        Running(command.spawn().unwrap())
    }

    fn outcome(&self, cluster: &Cluster, networks: &str, other: &[&str]) -> Output {
        let down = self.command("down");
        let flags = [&["--unprovision", down.as_str()], other].concat();
        self.run(cluster, networks, &flags).output().unwrap()
    }
}

#[track_caller]
fn until_a_trial_has_ended(cluster: &Cluster) {
    eventually("a trial has ended", Duration::from_secs(120), || {
        cluster.run_directory().is_some_and(|run| trials(&run) > 0)
    });
}

/// What is in the cluster once all that earlier runs had removed is gone.
#[track_caller]
fn settled(cluster: &Cluster) -> Vec<String> {
    let what = "what earlier runs made is gone";
    eventually(what, Duration::from_secs(180), || cluster.ours().is_empty());
    cluster.inventory()
}

/// A cluster that is made for the run is taken down at once, with what is in it. The one
/// behind the script stays, and removes what it was told to in its own time.
#[track_caller]
fn until_it_is(cluster: &Cluster, before: &[String]) {
    let deadline = Instant::now() + Duration::from_secs(180);
    loop {
        let now = cluster.inventory();
        if now == before {
            return;
        }
        assert!(Instant::now() < deadline, "{before:?} has become {now:?}");
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// What was recorded of the clusters that were made.
fn set_ups(trials: &[Value]) -> Vec<&Value> {
    let all = trials.iter().filter(|it| is_set_up(it));
    all.map(|it| &it["observation"]["what"]).collect()
}

fn provision_logs(run: &Path) -> Vec<PathBuf> {
    let mut logs: Vec<PathBuf> = fs::read_dir(run.join("provision"))
        .map(|entries| entries.flatten().map(|it| it.path()).collect())
        .unwrap_or_default();
    logs.sort();
    logs
}

#[test]
fn each_block_has_a_fresh_cluster_for_each_network() {
    let Some(cluster) = cluster() else { return };
    let before = settled(&cluster);
    let fake = Fake::new();
    fake.outcome(&cluster, "one,two", &["--blocks", "2"]);
    let calls = fake.calls();
    assert_eq!(calls.len(), 8, "{calls:?}");
    for pair in calls.chunks(2) {
        let (up, down) = (pair[0].strip_prefix("up "), pair[1].strip_prefix("down "));
        assert!(up.is_some() && up == down, "{calls:?}");
    }
    let directory = run_directory(cluster.out());
    let (record, trials) = read(&directory);
    let treatments = record["plan"]["treatments"].as_array().unwrap();
    let compared: Vec<(&str, &Value)> = treatments
        .iter()
        .map(|it| (it["label"].as_str().unwrap(), &it["baseline"]))
        .collect();
    // Each with the host networking of its own nodes.
    assert_eq!(compared[0].0, "one/host", "{compared:?}");
    for (network, baseline) in &compared {
        let of = network.split('/').next().unwrap();
        match baseline.as_u64() {
            Some(id) => assert_eq!(compared[id as usize].0, format!("{of}/host")),
            None => assert!(network.ends_with("/host"), "{compared:?}"),
        }
    }
    let is_valid = |it: &&Value| it["status"]["status"] == "valid" && !is_set_up(it);
    for trial in trials.iter().filter(is_valid) {
        let rotation = &trial["observation"]["common"]["rotation"];
        let take_turns = rotation["treatments"].as_u64() >= Some(2);
        assert!(take_turns, "those of one cluster: {rotation}");
    }
    let set_ups = set_ups(&trials);
    assert_eq!(set_ups.len(), 4, "one for each cluster");
    for set_up in set_ups {
        assert_eq!(set_up["came_up"], true);
        assert!(set_up["took_ns"].as_u64() > Some(0) && set_up["paths_ns"].as_u64() > Some(0));
        assert!(set_up["fingerprint"]["kernel"].is_string(), "C-13");
        let log = directory.join(set_up["log"].as_str().unwrap());
        assert_eq!(fs::read_to_string(log).unwrap(), "said on the way\n");
    }
    let report = cluster.plumbline(&["report", "--format", "markdown"]);
    let report = { report }.arg(&directory).output().unwrap();
    let text = crate::world::stdout(&report);
    assert!(
        text.contains("## Set-up cost") && text.contains("2 of 2"),
        "{text}"
    );
    until_it_is(&cluster, &before);
}

#[test]
fn a_network_that_does_not_come_up_fails_its_trials_and_not_the_run() {
    let Some(cluster) = cluster() else { return };
    let fake = Fake::new();
    fake.outcome(&cluster, "broken,one", &[]);
    let calls = fake.calls();
    let broken = calls.iter().filter(|it| *it == "up broken").count();
    assert_eq!(broken, 1, "not again in the same block: {calls:?}");
    // Half a cluster may have stood.
    assert!(calls.contains(&"down broken".to_owned()), "{calls:?}");

    let directory = run_directory(cluster.out());
    let (record, trials) = read(&directory);
    let network = |trial: &Value| {
        let id = trial["treatment"].as_u64().unwrap() as usize;
        record["plan"]["treatments"][id]["label"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let (failed, ran): (Vec<_>, Vec<_>) = trials
        .iter()
        .filter(|it| !is_set_up(it))
        .partition(|it| network(it).starts_with("broken/"));
    assert_eq!(failed.len(), 2, "host and pod");
    let errors = failed
        .iter()
        .map(|it| it["status"]["error"].as_str().unwrap());
    let errors: Vec<&str> = errors.collect();
    assert!(errors[0].contains("the disk is full"), "{errors:?}");
    assert!(
        errors[1].contains("did not come up in this block"),
        "{errors:?}"
    );
    assert!(!ran.is_empty() && ran.iter().all(|it| it["status"]["status"] != "failed"));
    let set_ups = set_ups(&trials);
    let broken = set_ups.iter().find(|it| it["network"] == "broken").unwrap();
    assert_eq!(broken["came_up"], false);
    let log = directory.join(broken["log"].as_str().unwrap());
    assert_eq!(fs::read_to_string(log).unwrap(), "the disk is full\n");
}

#[test]
fn when_nothing_comes_up_the_run_ends_and_says_why() {
    let Some(cluster) = cluster() else { return };
    let fake = Fake::new();
    let output = fake.outcome(&cluster, "broken", &[]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("the disk is full"), "{text}");
    assert_eq!(cluster.run_directory(), None);

    let output = fake.outcome(&cluster, "mute", &[]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("KUBECONFIG=FILE"), "{text}");
    assert!(fake.calls().contains(&"down mute".to_owned()));

    // Nothing says how to take it down: the run says so at once, with the remedy.
    let output = fake.run(&cluster, "one", &[]).output().unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("--unprovision"), "{text}");
}

#[test]
fn host_networking_is_asked_about_where_others_use_the_cluster() {
    let Some(cluster) = cluster() else { return };
    let fake = Fake::new();
    let output = fake.outcome(&cluster, "shared", &[]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("--allow-host-network"), "{text}");
    assert_eq!(fake.calls(), ["up shared", "down shared"]);
    assert_eq!(cluster.run_directory(), None);

    let output = fake.outcome(&cluster, "shared", &["--allow-host-network"]);
    let directory = run_directory(cluster.out());
    ran_to_its_end(&output, &directory);
    let (_, trials) = read(&directory);
    assert!(trials.len() > 2, "{}", stderr(&output));
}

#[test]
fn an_image_that_no_node_has_is_said_and_the_cluster_is_taken_down() {
    let Some(cluster) = cluster() else { return };
    let before = settled(&cluster);
    let fake = Fake::new();
    let absent = ["--image", "localhost/absent:1"];
    let output = fake.outcome(&cluster, "one", &absent);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("localhost/absent:1"), "{text}");
    assert_eq!(fake.calls(), ["up one", "down one"]);
    until_it_is(&cluster, &before);
}

#[test]
fn ctrl_c_takes_the_cluster_down() {
    let Some(cluster) = cluster() else { return };
    let before = settled(&cluster);
    let fake = Fake::new();
    // While trials run.
    let mut run = fake.start(&cluster, "one", "90");
    until_a_trial_has_ended(&cluster);
    run.signal(Signal::SIGINT);
    assert_eq!(run.wait(Duration::from_secs(90)), Some(2));
    assert_eq!(fake.calls().last().unwrap(), "down one");
    until_it_is(&cluster, &before);
    let kept = cluster.run_directory().expect("it was made");
    assert!(trials(&kept) > 0 && !provision_logs(&kept).is_empty());

    // While a cluster comes up.
    let mut run = fake.start(&cluster, "slow", "90");
    eventually("the command runs", Duration::from_secs(30), || {
        fake.calls().contains(&"up slow".to_owned())
    });
    run.signal(Signal::SIGINT);
    assert_eq!(run.wait(Duration::from_secs(60)), Some(2));
    assert_eq!(fake.calls().last().unwrap(), "down slow");
}

#[test]
fn a_run_that_was_cut_off_goes_on_with_fresh_clusters() {
    let Some(cluster) = cluster() else { return };
    let before = settled(&cluster);
    let fake = Fake::new();
    let mut run = fake.start(&cluster, "one", "3");
    until_a_trial_has_ended(&cluster);
    run.signal(Signal::SIGINT);
    assert_eq!(run.wait(Duration::from_secs(90)), Some(2));
    let directory = cluster.run_directory().expect("it was made");
    let (kept, logs) = (trials(&directory), provision_logs(&directory));

    let mut rest = fake.provision(cluster.resume(&directory));
    rest.args(["--unprovision", &fake.command("down")]);
    let output = rest.output().unwrap();
    ran_to_its_end(&output, &directory);
    let (_, all) = read(&directory);
    assert!(all.len() > kept, "{}", stderr(&output));
    assert_eq!(all.last().unwrap()["block"], 2, "{}", stderr(&output));
    let calls = fake.calls();
    let ups = calls.iter().filter(|call| *call == "up one").count();
    assert!(ups >= 3, "one for each block: {calls:?}");
    // Ctrl-C may meet a command before it has noted its call: then there is a `down`
    // more, and never one less.
    let is_left = calls.windows(2).any(|two| two == ["up one", "up one"]);
    assert!(!is_left && calls.last().unwrap() == "down one", "{calls:?}");
    let all_logs = provision_logs(&directory);
    assert!(
        all_logs.len() > logs.len() && logs.iter().all(|it| all_logs.contains(it)),
        "what the first part said is kept: {logs:?}, {all_logs:?}"
    );
    until_it_is(&cluster, &before);
}

#[test]
fn two_contexts_are_compared_path_by_path() {
    let Some(cluster) = cluster() else { return };
    let before = settled(&cluster);
    // One cluster under two names: what a comparison of clusters must find equal.
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config");
    let raw = cluster.kubectl(&["config", "view", "--raw", "--flatten"]);
    fs::write(&config, raw).unwrap();
    let ours = config.to_str().unwrap();
    let current = cluster.kubectl(&["config", "--kubeconfig", ours, "current-context"]);
    let part = |what: &str| {
        let path = format!(
            "jsonpath={{.contexts[?(@.name==\"{}\")].context.{what}}}",
            current.trim()
        );
        cluster.kubectl(&["config", "--kubeconfig", ours, "view", "--output", &path])
    };
    let (of, user) = (part("cluster"), part("user"));
    for name in ["a", "b"] {
        let (of, user) = (format!("--cluster={of}"), format!("--user={user}"));
        cluster.kubectl(&[
            "config",
            "--kubeconfig",
            ours,
            "set-context",
            name,
            &of,
            &user,
        ]);
    }
    let flags = [
        "--context",
        "a",
        "--network",
        "all",
        "--path",
        "pod,cluster-ip",
    ];
    let output = cluster
        .run(&short(&flags))
        .args(["--context", "b"])
        .env("KUBECONFIG", &config)
        .output()
        .unwrap();
    let said = stderr(&output);
    let directory = run_directory(cluster.out());
    ran_to_its_end(&output, &directory);
    let (record, trials) = read(&directory);
    let treatments = record["plan"]["treatments"].as_array().unwrap();
    let names: Vec<&str> = treatments
        .iter()
        .map(|it| it["label"].as_str().unwrap())
        .collect();
    let wanted = ["a/pod", "b/pod", "a/cluster-ip", "b/cluster-ip"];
    assert_eq!(names, wanted, "{said}");
    let baselines: Vec<Option<u64>> = treatments
        .iter()
        .map(|it| it["baseline"].as_u64())
        .collect();
    assert_eq!(baselines, [None, Some(0), None, Some(2)]);
    // C-13: both are in the record.
    let other = &record["fingerprint"]["others"]["b"];
    assert_eq!(other["kernel"], record["fingerprint"]["kernel"]);
    assert!(other["devices"]["b/pod"].is_array(), "{other}");
    assert!(trials.len() >= 4);
    assert_eq!(cluster.inventory(), before);
}

/// Base and head are networks of a command, each in clusters of its own. How it decides is tried
/// where that takes no clusters: here the budget ends before.
#[test]
fn a_gate_compares_what_a_command_brings_up() {
    let Some(cluster) = cluster() else { return };
    let before = settled(&cluster);
    let fake = Fake::new();
    let down = fake.command("down");
    let gate = ["gate", "--target", "kubernetes", "--unprovision", &down];
    let compared = ["--base", "main", "--head", "pr", "--path", "pod"];
    let load = ["--workload", "rr", "--rate", "500", "--duration", "100ms"];
    let out = cluster.out().to_str().unwrap();
    let few = ["--blocks", "6", "--set", "design.retries=1"];
    let limit = ["--limit", "p50=200%", "--budget", "1s", "--out", out];
    let mut gate =
        fake.provision(cluster.plumbline(&[&gate[..], &compared, &load, &few, &limit].concat()));
    let output = gate.output().unwrap();
    let (said, errors) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(2), "{said}{errors}");
    let undecided = "Whether pr/pod is worse than main/pod is undecided";
    assert!(said.contains(undecided), "{said}");
    let (_, trials) = read(&run_directory(cluster.out()));
    let made = set_ups(&trials);
    let ups = fake.calls();
    let ups = ups.iter().filter(|it| it.starts_with("up "));
    assert_eq!(
        made.len(),
        ups.count(),
        "one for each network of each block"
    );
    let networks = made.iter().map(|it| it["network"].as_str().unwrap());
    let networks: std::collections::BTreeSet<&str> = networks.collect();
    assert_eq!(networks, ["main", "pr"].into(), "{said}");
    until_it_is(&cluster, &before);
}
