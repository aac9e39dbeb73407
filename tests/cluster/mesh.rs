//! Many nodes, of which this cluster has two: a mesh of one pair, and one pair of
//! pairs.

use super::{cluster, read, short};
use crate::world::{run_directory, stderr, stdout};

#[test]
fn a_mesh_measures_the_nodes_of_the_cluster_and_leaves_nothing() {
    let Some(cluster) = cluster() else { return };
    let before = cluster.inventory();
    let flags = short(&["--blocks", "2", "--network", "pod,cluster-ip,host"]);
    let mesh = ["--mesh", "--allow-host-network", "--baseline", "host"];
    let output = cluster.run(&flags).args(mesh).output().unwrap();
    let run = run_directory(cluster.out());
    let (record, trials) = read(&run);
    let nodes = record["plan"]["pairing"]["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 2, "{}", stderr(&output));
    // Two blocks of three paths, each way round once.
    let first = trials.iter().filter(|it| it["attempt"] == 0);
    let first: Vec<_> = first.collect();
    assert_eq!(first.len(), 6, "{}", stderr(&output));
    for trial in &first {
        assert_ne!(trial["status"]["status"], "failed", "{}", trial["status"]);
        let sends = &nodes[trial["block"].as_u64().unwrap() as usize];
        // Whoever sends first, it is the other one in the second block.
        let turned = first[0]["pair"]["client"] != nodes[0];
        let expected = if turned {
            nodes.iter().find(|node| *node != sends).unwrap()
        } else {
            sends
        };
        assert_eq!(&trial["pair"]["client"], expected);
    }
    let facts = &record["fingerprint"]["versions"];
    for node in nodes {
        let fact = format!("node {}", node.as_str().unwrap());
        assert!(facts[&fact].is_string(), "{fact}: {facts}");
    }
    let shown = stdout(&output);
    assert!(
        shown.contains("p50 between nodes: pod, rr; 2 nodes"),
        "{shown}"
    );
    assert_eq!(cluster.inventory(), before);
}

#[test]
fn pairs_are_as_many_as_there_are_nodes_for() {
    let Some(cluster) = cluster() else { return };
    let before = cluster.inventory();
    let output = cluster
        .run(&short(&["--network", "pod", "--pairs", "2"]))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("--pairs 2 takes 4 nodes"), "{said}");
    assert!(said.contains("ask for at most --pairs 1"), "{said}");
    assert_eq!(cluster.inventory(), before);

    let output = cluster
        .run(&short(&["--network", "pod", "--pairs", "1"]))
        .output()
        .unwrap();
    let (record, trials) = read(&run_directory(cluster.out()));
    assert_eq!(record["plan"]["pairing"]["layout"], "pairs");
    let pair = &trials[0]["pair"];
    assert_ne!(pair["client"], pair["server"], "{}", stderr(&output));
    assert_ne!(trials[0]["status"]["status"], "failed", "{}", trials[0]);
    assert_eq!(cluster.inventory(), before);
}
