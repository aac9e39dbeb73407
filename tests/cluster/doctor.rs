//! `plumbline doctor --path` between two pods.

use serde_json::Value;

use super::kubelab::Kubelab;
use super::{Cluster, add_image, cluster};
use crate::documented;
use crate::world::stderr;

/// What is said of the path between two pods.
#[track_caller]
fn findings(cluster: &Cluster, more: &[&str]) -> Vec<Value> {
    let order = [
        "doctor",
        "--target",
        "kubernetes",
        "--json",
        "--path",
        "pod",
    ];
    let mut command = cluster.plumbline(&[&order[..], more].concat());
    add_image(&mut command);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
    documented::check("findings", &findings);
    findings.as_array().expect("a list").clone()
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

/// In a cluster that has one: `kubelab up --dns on`. How slow answers are told, no rule can
/// plant.
#[test]
fn a_name_server_that_does_not_answer_is_named() {
    let Some(cluster) = cluster() else { return };
    let Some([near, _]) = cluster.pair() else {
        return;
    };
    const CHECK: &str = "name server";
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
