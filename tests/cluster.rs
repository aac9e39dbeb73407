//! Against a real cluster: paths, workloads, rights, faults, and what is left.
//!
//! `PLUMBLINE_TEST_KUBECONFIG` names it, with the image loaded; without the
//! variable the tests are counted as skipped. It is not `KUBECONFIG`, which
//! would put load on whatever cluster a developer works with. `.ci/cluster`
//! starts one with `tests/kubelab` and runs these; `PLUMBLINE_TEST_KUBELAB` then
//! names the script, for the tests that stop a part of the cluster.

mod doctor;
mod faults;
mod figures;
mod kubelab;
mod launch;
mod left;
mod mesh;
mod neighbours;
mod outages;
mod paths;
mod policies;
mod policy;
mod programming;
mod provision;
mod reboot;
mod rights;
mod server;
mod services;
mod shape;
mod survive;
mod trouble;
mod tuning;
mod turns;
mod variants;
mod xray;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::world::{self, Running, skip};

/// A cluster for one test alone.
pub(crate) struct Cluster {
    config: PathBuf,
    out: tempfile::TempDir,
    /// Of its runs, where they do not make one each.
    namespace: Option<&'static str>,
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

/// Whether a test has taken a part of the cluster away. The next one waits until that is over: the
/// last one before a cluster ends need not.
static DISTURBED: AtomicBool = AtomicBool::new(false);

/// The cluster, or a counted skip.
pub(crate) fn cluster() -> Option<Cluster> {
    let Some(config) = std::env::var_os("PLUMBLINE_TEST_KUBECONFIG") else {
        skip(
            "cluster",
            "PLUMBLINE_TEST_KUBECONFIG names none; `.ci/cluster` starts one on this machine",
        );
        return None;
    };
    let cluster = Cluster {
        config: config.into(),
        out: tempfile::tempdir().unwrap(),
        namespace: None,
        _alone: ALONE.lock().unwrap_or_else(PoisonError::into_inner),
    };
    if DISTURBED.swap(false, Relaxed) {
        outages::until_nodes_stay_ready(&cluster);
    }
    Some(cluster)
}

/// As [`cluster`], for runs in a namespace that stays: a cluster takes 6 s to end one, and most
/// tests ask about something else.
pub(crate) fn lasting() -> Option<Cluster> {
    let mut cluster = cluster()?;
    let name = "plumbline-tests";
    if !cluster
        .try_kubectl(&["get", "namespace", name])
        .status
        .success()
    {
        cluster.kubectl(&["create", "namespace", name]);
        let all = "pod-security.kubernetes.io/enforce=privileged";
        cluster.kubectl(&["label", "namespace", name, all]);
    }
    cluster.namespace = Some(name);
    Some(cluster)
}

/// A short run of one workload, but for what `other` flags say. They come in
/// pairs, each with its value.
pub(crate) fn short<'a>(other: &[&'a str]) -> Vec<&'a str> {
    let usual = [
        ["--workload", "rr"],
        ["--rate", "200"],
        ["--connections", "2"],
        ["--duration", "100ms"],
        ["--blocks", "1"],
        ["--set", "design.retries=1"],
    ];
    let kept = usual.iter().filter(|[flag, _]| !other.contains(flag));
    kept.flatten().chain(other).copied().collect()
}

/// Names the image that is in a cluster of the user's, where it is not the usual.
fn add_image(command: &mut Command) {
    if let Some(image) = std::env::var_os("PLUMBLINE_TEST_IMAGE") {
        command.arg("--image").arg(image);
    }
}

impl Cluster {
    /// From now on a part of it is away, and nodes may be taken for lost.
    fn disturb(&self) {
        DISTURBED.store(true, Relaxed);
    }

    /// `plumbline` with this cluster's configuration.
    pub(crate) fn plumbline(&self, arguments: &[&str]) -> Command {
        let mut command = world::plumbline(arguments);
        command.env("KUBECONFIG", &self.config);
        command
    }

    /// `plumbline run` in the cluster, into this test's directory.
    pub(crate) fn run(&self, arguments: &[&str]) -> Command {
        let mut command = self.plumbline(&["run", "--target", "kubernetes", "--out"]);
        command.arg(self.out()).args(arguments);
        // Of an account that has the Role in this namespace, and no other right.
        if let Some(config) = std::env::var_os("PLUMBLINE_TEST_ROLE") {
            command.env("KUBECONFIG", config);
            command.args(["--namespace", "plumbline-role"]);
        } else if let Some(name) = self.namespace {
            command.args(["--namespace", name]);
        }
        if !arguments.contains(&"--image") {
            add_image(&mut command);
        }
        command
    }

    /// `plumbline run` that goes on with one that was cut off.
    pub(crate) fn resume(&self, run: &Path) -> Command {
        let mut command = self.plumbline(&["run", "--target", "kubernetes", "--resume"]);
        add_image(command.arg(run));
        command
    }

    /// As [`run`](Self::run), under way; [`said`](Self::said) has its words.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        let mut command = self.run(arguments);
        let words = std::fs::File::create(self.out().join("said")).unwrap();
        command.stdout(Stdio::null()).stderr(words);
        Running(command.spawn().expect("the program starts"))
    }

    /// What the run that was started last has said on standard error.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.out().join("said")).unwrap_or_default()
    }

    pub(crate) fn out(&self) -> &Path {
        self.out.path()
    }

    /// Where runs are looked for while they are made.
    pub(crate) fn run_directory(&self) -> Option<PathBuf> {
        world::runs_in(self.out()).pop()
    }

    /// The independent eye: what `kubectl` prints.
    #[track_caller]
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.try_kubectl(arguments);
        assert!(
            output.status.success(),
            "kubectl {arguments:?}: {}",
            world::stderr(&output)
        );
        world::stdout(&output)
    }

    pub(crate) fn try_kubectl(&self, arguments: &[&str]) -> std::process::Output {
        Command::new("kubectl")
            .args(arguments)
            .env("KUBECONFIG", &self.config)
            .stdin(Stdio::null())
            .output()
            .expect("kubectl is installed where there is a cluster")
    }

    /// Everything of the cluster that a run could leave behind.
    #[track_caller]
    pub(crate) fn inventory(&self) -> Vec<String> {
        const KINDS: [&str; 5] = [
            "namespaces,pods,services,endpointslices,configmaps,secrets,serviceaccounts",
            "networkpolicies,ingresses,resourcequotas,limitranges,poddisruptionbudgets",
            "deployments,replicasets,statefulsets,daemonsets,jobs,cronjobs",
            "persistentvolumeclaims,persistentvolumes,storageclasses,priorityclasses",
            "clusterroles,clusterrolebindings,roles,rolebindings,customresourcedefinitions",
        ];
        let all = KINDS.join(",");
        let names = self.kubectl(&["get", &all, "--all-namespaces", "--output", "name"]);
        let mut names: Vec<String> = names.lines().map(str::to_owned).collect();
        names.sort();
        names
    }

    /// Namespaces of runs.
    #[track_caller]
    pub(crate) fn ours(&self) -> Vec<String> {
        let label = "app.kubernetes.io/managed-by=plumbline";
        let names = self.kubectl(&["get", "namespaces", "--selector", label, "--output", "name"]);
        names.lines().map(str::to_owned).collect()
    }

    /// The nodes that runs choose from, by name.
    #[track_caller]
    pub(crate) fn workers(&self) -> Vec<String> {
        let names = self.kubectl(&[
            "get",
            "nodes",
            "--selector",
            "!node-role.kubernetes.io/control-plane",
            "--output",
            "jsonpath={.items[*].metadata.name}",
        ]);
        names.split_whitespace().map(str::to_owned).collect()
    }

    /// The two nodes that a run of one pair takes, or a counted skip.
    #[track_caller]
    pub(crate) fn pair(&self) -> Option<[String; 2]> {
        let mut names = self.workers().into_iter();
        let pair = names.next().zip(names.next());
        if pair.is_none() {
            skip("cluster", "this one has fewer than two nodes for pods");
        }
        pair.map(Into::into)
    }
}

/// That a run ended so, and said so.
#[track_caller]
pub(crate) fn refused(output: &Output, code: i32, says: &[&str]) {
    let text = world::stderr(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    for part in says {
        assert!(text.contains(part), "it should say {part:?}: {text}");
    }
}

/// Run and trials of a run directory.
#[track_caller]
pub(crate) fn read(run: &Path) -> (Value, Vec<Value>) {
    let text = std::fs::read_to_string(run.join("run.json")).unwrap();
    let trials = std::fs::read_to_string(run.join("trials.jsonl")).unwrap_or_default();
    let trials = trials
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    (serde_json::from_str(&text).unwrap(), trials.collect())
}

/// Gates that a trial has failed, by name. A busy machine fails those of
/// disturbance, and that is no fault of the cluster's.
pub(crate) fn gates(trial: &Value) -> Vec<String> {
    let gates = trial["status"]["gates"].as_array().cloned();
    let names = gates.unwrap_or_default().into_iter();
    names
        .map(|gate| gate["gate"].as_str().unwrap_or("?").to_owned())
        .collect()
}

/// How trials ended, for messages: the whole of them fills pages.
pub(crate) fn statuses(trials: &[Value]) -> Vec<String> {
    let status = |trial: &Value| format!("block {}: {}", trial["block"], trial["status"]);
    trials.iter().map(status).collect()
}
