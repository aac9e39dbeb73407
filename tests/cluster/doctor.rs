//! `plumbline doctor --path` between two pods.

use std::process::Output;

use serde_json::{Value, json};

use super::kubelab::Kubelab;
use super::outages::inventory_in_time;
use super::{Cluster, add_image, cluster, refused};
use crate::documented;
use crate::world::{stderr, stdout};

/// What is said of the path between two pods.
#[track_caller]
fn findings(cluster: &Cluster, more: &[&str]) -> Vec<Value> {
    findings_of(cluster, &[&["pod"], more].concat())
}

/// What `doctor --path` says of what follows it.
#[track_caller]
fn findings_of(cluster: &Cluster, path: &[&str]) -> Vec<Value> {
    let output = doctor(cluster, path);
    assert!(output.status.success(), "{}", stderr(&output));
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
    documented::check("findings", &findings);
    findings.as_array().expect("a list").clone()
}

fn doctor(cluster: &Cluster, path: &[&str]) -> Output {
    let order = ["doctor", "--target", "kubernetes", "--json", "--path"];
    let mut command = cluster.plumbline(&[&order[..], path].concat());
    add_image(&mut command);
    command.output().unwrap()
}

/// The check of this name, where it found something wrong.
fn wrong<'a>(findings: &'a [Value], check: &str) -> Option<&'a Value> {
    let of_check = |it: &&Value| it["check"] == check && it["level"] != "good";
    findings.iter().find(of_check)
}

/// A rule on a node, which goes when dropped.
struct PlantedRule {
    kubelab: Kubelab,
    node: String,
}

impl PlantedRule {
    /// Drops of what a node forwards that which matches.
    #[track_caller]
    fn drop(kubelab: Kubelab, node: String, what: &str) -> Self {
        let planted = Self { kubelab, node };
        planted.nft("add table ip planted");
        planted.nft("add chain ip planted some { type filter hook forward priority 0; }");
        planted.nft(&format!("add rule ip planted some {what} drop"));
        planted
    }

    #[track_caller]
    fn nft(&self, command: &str) {
        self.kubelab.exec(&self.node, &["nft", command]);
    }
}

impl Drop for PlantedRule {
    fn drop(&mut self) {
        self.nft("delete table ip planted");
    }
}

#[test]
fn a_path_between_two_pods_is_healthy_until_something_is_planted() {
    let Some(cluster) = cluster() else { return };
    let Some([_, far]) = cluster.pair() else {
        return;
    };
    let before = cluster.inventory();
    // What the machine does meanwhile is not there again, and what is wrong with a path is.
    let checks = [
        "reach",
        "loss",
        "black hole",
        "MTU",
        "MSS",
        "TCP",
        "checksums",
        "route back",
    ];
    let all_well = |found: &[Value]| checks.iter().all(|it| wrong(found, it).is_none());
    let healthy = (0..3)
        .map(|_| findings(&cluster, &[]))
        .find(|it| all_well(it));
    let healthy = healthy.expect("one of three looks at a healthy path finds nothing");
    let mut names = healthy.iter().map(|it| &it["check"]);
    assert!(names.any(|it| it == "name server"), "{healthy:?}");

    let Some(kubelab) = Kubelab::of_cluster("no nodes on which to plant a rule") else {
        return;
    };
    let _planted = PlantedRule::drop(kubelab, far, "ip length >= 1301");
    let found = findings(&cluster, &[]);
    let hole = wrong(&found, "black hole").unwrap_or_else(|| panic!("{found:?}"));
    let evidence = hole["finding"].as_str().unwrap();
    assert!(evidence.contains("1300 B arrive"), "{evidence}");
    assert_eq!(cluster.inventory(), before);
}

/// Two pods of somebody else's on two nodes, in a namespace that goes when dropped.
struct OthersPods<'a>(&'a Cluster);

impl OthersPods<'_> {
    const NAMESPACE: &'static str = "somebody-elses";

    #[track_caller]
    fn start<'a>(cluster: &'a Cluster, nodes: &[String; 2]) -> OthersPods<'a> {
        cluster.kubectl(&["create", "namespace", Self::NAMESPACE]);
        let pods = OthersPods(cluster);
        let pod = |(name, node): (&str, &String)| {
            json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": { "name": name, "namespace": Self::NAMESPACE },
                "spec": {
                    "nodeName": node,
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{
                        "name": "theirs",
                        "image": own_image(cluster),
                        "imagePullPolicy": "IfNotPresent",
                        "command": ["/plumbline", "hold"],
                    }],
                },
            })
        };
        let all: Vec<Value> = ["web", "data"].into_iter().zip(nodes).map(pod).collect();
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": all });
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), list.to_string()).unwrap();
        cluster.kubectl(&["apply", "--filename", file.path().to_str().unwrap()]);
        let ready = ["wait", "--for=condition=Ready", "pod", "--all"];
        cluster.kubectl(&[&ready[..], &["--namespace", Self::NAMESPACE]].concat());
        pods
    }
}

impl Drop for OthersPods<'_> {
    fn drop(&mut self) {
        self.0.kubectl(&["delete", "namespace", Self::NAMESPACE]);
    }
}

/// The image that is loaded into the nodes.
fn own_image(cluster: &Cluster) -> String {
    if let Ok(image) = std::env::var("PLUMBLINE_TEST_IMAGE") {
        return image;
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let written = cluster.plumbline(&["image", "--output", path]).output();
    let written = stdout(&written.unwrap());
    let (reference, _) = written.split_once(' ').expect("reference and digest");
    reference.to_owned()
}

/// Between pods that are there, of which nothing is changed: a container of ours is beside theirs.
#[test]
fn two_pods_of_somebody_elses_are_looked_at() {
    let Some(cluster) = cluster() else { return };
    let Some(nodes) = cluster.pair() else {
        return;
    };
    let before = cluster.inventory();
    let pods = OthersPods::start(&cluster, &nodes);
    let [web, data] = ["web", "data"].map(|it| format!("{}/{it}", OthersPods::NAMESPACE));
    let ends = [web.as_str(), data.as_str()];
    let is_well = |found: &[Value]| {
        let checks = ["reach", "loss", "black hole", "MTU", "TCP"];
        checks.iter().all(|it| wrong(found, it).is_none())
    };
    let healthy = (0..3).any(|_| is_well(&findings_of(&cluster, &ends)));
    assert!(
        healthy,
        "one of three looks at a healthy path finds nothing"
    );
    let shown = ["--output", "jsonpath={.spec.ephemeralContainers[*].name}"];
    let of_web = ["get", "pod", "web", "--namespace", OthersPods::NAMESPACE];
    let ours = cluster.kubectl(&[&of_web[..], &shown].concat());
    assert!(ours.starts_with("plumbline-"), "{ours}");

    let absent = format!("{}/absent", OthersPods::NAMESPACE);
    refused(
        &doctor(&cluster, &[&web, &absent]),
        2,
        &["absent", "not found"],
    );
    let many = doctor(&cluster, &[&web, &data, "--nodes", "a,b"]);
    refused(&many, 64, &["--nodes", "are there already"]);
    if let Some(kubelab) = Kubelab::of_cluster("no nodes on which to plant a rule") {
        let _planted = PlantedRule::drop(kubelab, nodes[1].clone(), "ip length >= 1301");
        let found = findings_of(&cluster, &ends);
        let hole = wrong(&found, "black hole").unwrap_or_else(|| panic!("{found:?}"));
        let evidence = hole["finding"].as_str().unwrap();
        assert!(evidence.contains("1300 B arrive"), "{evidence}");
        assert!(evidence.contains(&web), "{evidence}");
    }
    drop(pods);
    assert_eq!(inventory_in_time(&cluster, &before), before);
}

/// By consent a pod on each node sees what the node's kernel drops.
#[test]
fn what_a_node_drops_is_named_with_the_reason_of_its_kernel() {
    let Some(cluster) = cluster() else { return };
    let Some([_, far]) = cluster.pair() else {
        return;
    };
    let Some(kubelab) = Kubelab::of_cluster("no nodes on which to plant a rule") else {
        return;
    };
    let before = cluster.inventory();
    let rule = "udp length 180 numgen inc mod 10 == 0";
    let planted = PlantedRule::drop(kubelab, far.clone(), rule);
    let found = findings(&cluster, &["--allow-tracing"]);
    let loss = wrong(&found, "loss").unwrap_or_else(|| panic!("{found:?}"));
    let evidence = loss["finding"].as_str().unwrap();
    let place = format!(" of {far} (NETFILTER_DROP)");
    assert!(evidence.contains(&place), "{evidence}");
    drop(planted);
    assert_eq!(cluster.inventory(), before);
}

/// What asks the name server of a cluster.
const CHECK: &str = "name server";

/// In a cluster that has one: `kubelab up --dns on`.
#[test]
fn a_name_server_that_does_not_answer_is_named() {
    let Some(cluster) = cluster() else { return };
    let Some([near, _]) = cluster.pair() else {
        return;
    };
    let is_well = |found: &[Value]| {
        found
            .iter()
            .any(|it| it["check"] == CHECK && it["level"] == "good")
    };
    let healthy = (0..3).any(|_| is_well(&findings(&cluster, &[])));
    assert!(healthy, "one of three looks finds that it answers");
    for (what, says) in [
        ("udp dport 53", "answers none of"),
        ("udp dport 53 numgen inc mod 2 == 0", "and not at all"),
    ] {
        let Some(kubelab) = Kubelab::of_cluster("no nodes on which to plant a rule") else {
            return;
        };
        let planted = PlantedRule::drop(kubelab, near.clone(), what);
        let found = findings(&cluster, &[]);
        let silent = wrong(&found, CHECK).unwrap_or_else(|| panic!("{what}: {found:?}"));
        let evidence = silent["finding"].as_str().unwrap();
        assert!(evidence.contains(says), "{what}: {evidence}");
        drop(planted);
    }
}

/// While this file is there, a name server is stopped for 0.2 s, then runs for some milliseconds,
/// and so on for two minutes at most. Each time is shorter than half of what the doctor waits for
/// an answer, so that one that comes too late for one gap comes in the next; and in one gap there
/// is no time for all the questions. The name server runs in the end.
const STOPS: &str = r#"
file=/run/plumbline-late pid=$1
: >"$file"
setsid flock "$file.lock" sh -c '
    file=$1 pid=$2 left=600
    while [ -e "$file" ] && [ $left -gt 0 ]; do
        kill -STOP "$pid"; sleep 0.2
        kill -CONT "$pid"; sleep 0.005
        left=$((left - 1))
    done' - "$file" "$pid" </dev/null >/dev/null 2>&1 &
"#;

/// Waits for the end of what [`STOPS`] began, and lets the name server run whatever became of that.
const RUNS: &str = r#"
file=/run/plumbline-late pid=$1
rm -f "$file"
flock "$file.lock" kill -CONT "$pid"
rm -f "$file.lock"
"#;

/// A name server that answers late, until dropped.
struct LateServer {
    kubelab: Kubelab,
    node: String,
    /// In the namespace of the node's processes.
    pid: String,
}

impl LateServer {
    #[track_caller]
    fn plant(kubelab: Kubelab, cluster: &Cluster) -> Self {
        let pods = [
            "--namespace",
            "kube-system",
            "--selector",
            "k8s-app=kube-dns",
        ];
        let where_ = ["--output", "jsonpath={.items[0].spec.nodeName}"];
        let node = cluster.kubectl(&[&["get", "pods"][..], &pods, &where_].concat());
        let pid = kubelab.exec(&node, &["pgrep", "--exact", "coredns"]);
        let pid = pid.trim().to_owned();
        assert!(pid.parse::<u32>().is_ok(), "one process on {node}: {pid}");
        let late = Self { kubelab, node, pid };
        late.shell(STOPS);
        late
    }

    #[track_caller]
    fn shell(&self, script: &str) {
        let order = ["sh", "-euc", script, "-", &self.pid];
        self.kubelab.exec(&self.node, &order);
    }
}

impl Drop for LateServer {
    fn drop(&mut self) {
        self.shell(RUNS);
    }
}

/// In a cluster that has one, as above.
#[test]
fn a_name_server_that_answers_late_is_named() {
    let Some(cluster) = cluster() else { return };
    let Some(kubelab) = Kubelab::of_cluster("no node on which to stop a name server") else {
        return;
    };
    let _late = LateServer::plant(kubelab, &cluster);
    let mut told = Vec::new();
    // On a machine that is busy it may answer later than it is waited for.
    for _ in 0..3 {
        let found = findings(&cluster, &[]);
        let said = wrong(&found, CHECK);
        let Some(slow) = said.filter(|it| it["level"] == "note") else {
            told.push(said.cloned());
            continue;
        };
        let evidence = slow["finding"].as_str().unwrap();
        assert!(evidence.ends_with(" ms at most"), "{evidence}");
        let remedy = slow["remedy"].as_str().unwrap();
        assert!(remedy.contains("more of its pods"), "{remedy}");
        return;
    }
    panic!("three looks do not find it slow: {told:?}");
}
