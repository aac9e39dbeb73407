//! How long until new pods have their network.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::rights::Account;
use super::{Cluster, cluster, lasting, read, refused, statuses};
use crate::observed::ran_to_its_end;
use crate::world::{eventually, run_directory};

/// An experiment of one launch.
fn file(cluster: &Cluster, pods: u32, rate: f64) -> String {
    let file = cluster.out().join("launch.toml");
    let text = format!(
        "name = \"launch-pods\"\nquestion = \"When?\"\nbaseline = \"pod\"\n\
         [factors]\nnetwork = \"pod\"\n\
         [[workload]]\nkind = \"launch\"\npods = {pods}\nrate = {rate:?}\n\
         [design]\nblocks = 1\nretries = 1\n"
    );
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// The moments of some steps, by name.
fn steps(of: &Value) -> BTreeMap<&str, u64> {
    let steps = of.as_array().into_iter().flatten();
    steps
        .filter_map(|it| Some((it["step"].as_str()?, it["ended_ns"].as_u64()?)))
        .collect()
}

/// The plugins of the network of kubelab's Flannel, in the order in which they are called.
const PLUGINS: [&str; 3] = ["bridge", "portmap", "bandwidth"];

/// Where the nodes date the calls of their plugins, the steps of a pod have each of them, and
/// before them that the first was called; else it is said why not.
fn plugins_are_dated(what: &Value, kubelab: bool) {
    let unseen = what["calls_unseen"].as_str();
    assert_eq!(unseen.is_none(), kubelab, "{unseen:?}");
    for pod in what["pods"].as_array().unwrap() {
        let names = |of: &Value| {
            let steps = of.as_array().unwrap().iter();
            steps
                .map(|it| it["step"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        let (added, ended) = (names(&pod["steps"]), names(&pod["release"]["steps"]));
        if kubelab {
            assert_eq!(
                added,
                [&["called"][..], &PLUGINS, &["sandbox"]].concat(),
                "{pod}"
            );
            let of_network = |it: &&String| PLUGINS.contains(&&***it);
            let deleted: Vec<&String> = ended.iter().filter(of_network).collect();
            assert_eq!(deleted, ["bandwidth", "portmap", "bridge"], "{pod}");
            let at = steps(&pod["steps"]);
            let since = |it: &str| at[it] + 5_000_000 >= pod["namespace_ns"].as_u64().unwrap();
            assert!(since("called"), "{pod}");
        } else {
            assert_eq!(added, ["sandbox"], "{pod}");
            assert!(!ended.contains(&"called".to_owned()), "{pod}");
        }
    }
}

/// How many pods that were launched are there.
fn launched(cluster: &Cluster) -> usize {
    let selector = ["--all-namespaces", "--selector", "plumbline/launch"];
    let names = cluster.kubectl(&[&["get", "pods", "--output", "name"], &selector[..]].concat());
    names.lines().count()
}

/// When `kubectl` shows pods of a launch first as scheduled and first as ready, by name.
struct OtherWatch {
    kubectl: Child,
    shown: mpsc::Receiver<(String, &'static str, Instant)>,
}

impl OtherWatch {
    fn start(cluster: &Cluster) -> Self {
        let mut kubectl = Command::new("kubectl")
            .args(["get", "pods", "--all-namespaces", "--watch", "--output"])
            .arg(
                "jsonpath={.metadata.name} {.spec.nodeName} \
                 {.status.conditions[?(@.type==\"Ready\")].status}{\"\\n\"}",
            )
            .args(["--selector", "plumbline/launch"])
            .env("KUBECONFIG", &cluster.config)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, shown) = mpsc::channel();
        let lines = BufReader::new(kubectl.stdout.take().unwrap()).lines();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let now = Instant::now();
                let words: Vec<&str> = line.split(' ').collect();
                let what = match words[..] {
                    [_, "", ..] => continue,
                    [.., "True"] => "ready",
                    _ => "scheduled",
                };
                let _ = sender.send((words[0].to_owned(), what, now));
            }
        });
        Self { kubectl, shown }
    }

    /// From scheduled to ready, by number of the pod.
    fn end(mut self) -> BTreeMap<usize, Duration> {
        self.kubectl.kill().unwrap();
        self.kubectl.wait().unwrap();
        let mut first: BTreeMap<(usize, &str), Instant> = BTreeMap::new();
        for (name, what, at) in self.shown.iter() {
            let number = name.split('-').nth(2).unwrap().parse().unwrap();
            first.entry((number, what)).or_insert(at);
        }
        let scheduled = first.iter().filter(|((_, what), _)| *what == "scheduled");
        let took = scheduled.filter_map(|((number, _), since)| {
            Some((*number, *first.get(&(*number, "ready"))? - *since))
        });
        took.collect()
    }
}

/// Ten pods, of which each phase is seen, in the order in which it has to come. Another
/// watch sees each of them too, and how far the two are apart is printed: that share of the
/// phases is our own.
#[test]
fn pods_are_followed_from_their_moment_until_they_are_gone() {
    let Some(cluster) = lasting() else { return };
    let before = cluster.inventory();
    let other = OtherWatch::start(&cluster);
    let output = cluster.run(&[&file(&cluster, 10, 2.0)]).output().unwrap();
    let other = other.end();
    let run = run_directory(cluster.out());
    ran_to_its_end(&output, &run);
    assert_eq!(cluster.inventory(), before);
    let (record, trials) = read(&run);
    let what = &trials[0]["observation"]["what"];
    assert_eq!(what["exercise"], "launch", "{:?}", statuses(&trials));
    let pods = what["pods"].as_array().unwrap();
    assert_eq!(pods.len(), 10);
    plugins_are_dated(what, std::env::var_os("PLUMBLINE_TEST_KUBELAB").is_some());
    let nodes = cluster.workers();
    let (mut apart, mut own) = (Vec::new(), Vec::new());
    for (number, pod) in pods.iter().enumerate() {
        let ns = |of: &str| {
            let found = pod[of].as_u64();
            found.unwrap_or_else(|| panic!("{of} of {pod}"))
        };
        let (placed, shown) = (steps(&pod["placed"]), steps(&pod["shown"]));
        let sandbox = steps(&pod["steps"])["sandbox"];
        // What processes are dated by is a tick of 10 ms, and the date of a namespace one of
        // the wall clock's. News of the cluster may be late where the machine is busy.
        assert!(
            ns("begun_ns") <= placed["accepted"].min(placed["scheduled"]),
            "{pod}"
        );
        let in_order = [
            ns("begun_ns"),
            ns("namespace_ns") + 5_000_000,
            sandbox + 10_000_000,
            ns("probed_ns") + 20_000_000,
            ns("first_out_ns") + 20_000_000,
        ];
        assert!(in_order.is_sorted(), "{in_order:?} {pod}");
        assert!(ns("first_in_ns") + 1_000_000 >= ns("first_out_ns"), "{pod}");
        assert!(shown["running"] <= shown["ready"], "{pod}");
        assert!(ns("first_out_ns") < shown["ready"] + 2_000_000, "{pod}");
        assert!(nodes.iter().any(|it| pod["node"] == it.as_str()), "{pod}");
        assert!(pod["error"].is_null(), "{pod}");
        own.push(Duration::from_nanos(ns("watches_apart_ns")));
        let release = &pod["release"];
        let ended = release["ended_ns"].as_u64().unwrap();
        let of_end = steps(&release["steps"]);
        assert!(of_end["accepted"] <= ended && of_end["silent"] <= ended);
        assert_eq!(of_end["gone"].max(of_end["silent"]), ended, "{release}");
        let took = Duration::from_nanos(shown["ready"] - placed["scheduled"]);
        let other = other[&number];
        apart.push(took.max(other) - took.min(other));
    }
    // On a machine that has other work either of the two may wait, so this is only told.
    apart.sort_unstable();
    eprintln!("from scheduled to ready, two watches apart: {apart:?}");
    own.sort_unstable();
    eprintln!("two watches of this program apart: {own:?}");
    // A policy of the run's own would be waited for.
    assert!(
        record["warnings"].to_string().contains("unguarded"),
        "{}",
        record["warnings"]
    );
}

#[test]
fn a_launch_that_is_interrupted_leaves_nothing() {
    let Some(cluster) = lasting() else { return };
    let before = cluster.inventory();
    let mut run = cluster.start(&[&file(&cluster, 100, 2.0)]);
    eventually("pods are launched", Duration::from_secs(60), || {
        launched(&cluster) > 2
    });
    run.signal(Signal::SIGINT);
    assert_eq!(
        run.wait(Duration::from_secs(60)),
        Some(2),
        "{}",
        cluster.said()
    );
    assert_eq!(cluster.inventory(), before);
}

/// With the Role all can be done, and without the right to watch it is said.
#[test]
fn a_launch_takes_the_role_and_room_in_the_quota() {
    let Some(cluster) = cluster() else { return };
    let account = Account::new(&cluster);
    account.is_granted(
        "role",
        &["rolebinding", super::rights::ACCOUNT, "--role=plumbline"],
    );
    let file = file(&cluster, 2, 2.0);
    let run = || {
        let namespace = ["--namespace", super::rights::SHARED];
        let mut command = cluster.run(&[&[file.as_str()], &namespace[..]].concat());
        command.env("KUBECONFIG", account.config.path());
        command.output().unwrap()
    };
    let output = run();
    let directory = run_directory(cluster.out());
    ran_to_its_end(&output, &directory);
    let what = &read(&directory).1[0]["observation"]["what"];
    plugins_are_dated(what, false);
    let why = what["calls_unseen"].as_str().unwrap();
    assert!(why.contains("nodes/proxy"), "{why}");
    assert_eq!(account.shared(), "");
    let quota = ["--hard=pods=2", "--namespace", super::rights::SHARED];
    cluster.kubectl(&[&["create", "quota", "few"], &quota[..]].concat());
    refused(&run(), 2, &["exceeded quota", "ResourceQuota"]);
    assert_eq!(account.shared(), "");
}
