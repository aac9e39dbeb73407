//! Neighbours of a path between pods.

use super::kubelab::Kubelab;
use super::{Cluster, lasting, read, refused, statuses};
use crate::observed::ran_to_its_end;
use crate::world::{run_directory, stderr};

const SHORT: &[&str] = &[
    "--network",
    "pod",
    "--baseline",
    "pod",
    "--workload",
    "rr",
    "--rate",
    "300",
    "--duration",
    "200ms",
    "--blocks",
    "2",
    "--control",
    "off",
    "--set",
    "design.retries=0",
];

/// Runs with some neighbours, and gives for each treatment the most that they did in a
/// trial, 0 without any.
fn done(more: &[&str]) -> Vec<u64> {
    let cluster = lasting().expect("there is one");
    let before = cluster.inventory();
    let output = cluster.run(SHORT).args(more).output().unwrap();
    let directory = run_directory(cluster.out());
    ran_to_its_end(&output, &directory);
    let (record, trials) = read(&directory);
    let said = stderr(&output);
    let treatments = record["plan"]["treatments"].as_array().unwrap();
    assert_eq!(trials.len(), 2 * treatments.len(), "{said}");
    let mut done = vec![0; treatments.len()];
    for trial in &trials {
        let seen = &trial["observation"];
        assert!(seen.is_object(), "{:?}: {said}", statuses(&trials));
        assert!(seen["what"]["load"]["planned"].as_u64().unwrap() > 0);
        let neighbour = &seen["common"]["neighbour"];
        let of = trial["treatment"].as_u64().unwrap() as usize;
        assert_eq!(
            neighbour.is_null(),
            treatments[of]["neighbours"].is_null(),
            "{}",
            treatments[of]["label"]
        );
        done[of] = neighbour["done"].as_u64().unwrap_or(0).max(done[of]);
    }
    assert_eq!(cluster.inventory(), before);
    done
}

#[test]
fn a_second_pair_of_pods_works_beside_a_path() {
    if lasting().is_none() {
        return;
    }
    let kinds = "none,bulk,packets,connections,cpu";
    for turns in ["on", "off"] {
        let more = ["--neighbours", kinds, "--share", "link", "--rotate", turns];
        let done = done(&more);
        assert_eq!((done.len(), done[0]), (5, 0), "{done:?}");
        assert!(done[1..].iter().all(|it| *it > 0), "{turns}: {done:?}");
    }
}

/// Their pods are both on the sender's node, so nothing of theirs takes the way between nodes.
#[test]
fn neighbours_that_share_a_node_work_there() {
    if lasting().is_none() {
        return;
    }
    let done = done(&["--neighbours", "none,bulk", "--share", "node,link"]);
    assert_eq!((done.len(), done[0]), (3, 0), "{done:?}");
    assert!(done[1..].iter().all(|it| *it > 0), "{done:?}");
}

/// Bytes that the nodes have received from each other and from the control plane so far.
fn received(cluster: &Cluster, kubelab: &Kubelab) -> u64 {
    let file = "/sys/class/net/eth0/statistics/rx_bytes";
    let of = |node: &String| kubelab.exec(node, &["cat", file]);
    let counts = cluster.workers();
    let counts = counts.iter().map(|it| of(it).trim().parse::<u64>());
    counts.sum::<Result<u64, _>>().unwrap()
}

/// What the devices of the nodes carry meanwhile, by their counters.
#[test]
fn only_neighbours_that_share_the_link_take_the_way_between_nodes() {
    let crossed = |share: &str| {
        let cluster = lasting()?;
        let kubelab = Kubelab::of_cluster("no cluster whose nodes have counters")?;
        let before = received(&cluster, &kubelab);
        drop(cluster);
        let done = done(&["--neighbours", "none,bulk", "--share", share]);
        let after = received(&lasting()?, &kubelab);
        // Bytes that were acknowledged in the trial that has most of them.
        Some((after - before, done[1]))
    };
    let (Some(node), Some(link)) = (crossed("node"), crossed("link")) else {
        return;
    };
    assert!(0 < node.1 && node.0 < node.1, "{node:?}");
    assert!(0 < link.1 && link.0 >= link.1, "{link:?}");
}

#[test]
fn pairs_do_the_same_at_once() {
    if lasting().is_none() {
        return;
    }
    let done = done(&["--set", "factors.pairs=[1,2,4]"]);
    assert!(
        matches!(done[..], [0, one, three] if 0 < one && one < three),
        "{done:?}"
    );
}

#[test]
fn what_is_of_the_lab_is_refused() {
    let Some(cluster) = lasting() else { return };
    let before = cluster.inventory();
    let churn = ["--neighbours", "none,policy-churn"];
    let output = cluster.run(SHORT).args(churn).output().unwrap();
    refused(&output, 64, &["--target lab"]);
    assert_eq!(cluster.inventory(), before);
}
