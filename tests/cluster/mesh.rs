//! All nodes that the cluster has: as a mesh, and as pairs at the same time.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{lasting, read, short};
use crate::observed::ran_to_its_end;
use crate::world::{run_directory, stderr, stdout};

#[test]
fn a_mesh_measures_the_nodes_of_the_cluster_and_leaves_nothing() {
    let Some(cluster) = lasting() else { return };
    let before = cluster.inventory();
    let flags = short(&["--blocks", "2", "--network", "pod,cluster-ip,host"]);
    let mesh = ["--mesh", "--allow-host-network", "--baseline", "host"];
    let output = cluster.run(&flags).args(mesh).output().unwrap();
    let run = run_directory(cluster.out());
    ran_to_its_end(&output, &run);
    let (record, trials) = read(&run);
    let nodes = record["plan"]["pairing"]["nodes"].as_array().unwrap();
    assert!(nodes.len() >= 2, "{}", stderr(&output));
    // Two blocks of three paths: each pair is measured once in each direction.
    let first = trials.iter().filter(|it| it["attempt"] == 0);
    let first: Vec<_> = first.collect();
    let pairs = nodes.len() * (nodes.len() - 1) / 2;
    assert_eq!(first.len(), 2 * 3 * pairs, "{}", stderr(&output));
    let mut seen = BTreeSet::new();
    for trial in &first {
        assert_ne!(trial["status"]["status"], "failed", "{}", trial["status"]);
        let (client, server) = ends(trial);
        assert!(nodes.contains(&client.into()) && nodes.contains(&server.into()));
        assert_ne!(client, server);
        let which = trial["treatment"].as_u64().unwrap();
        let anew = seen.insert((which, client, server));
        assert!(anew, "{client} to {server} twice in {which}");
        let block = trial["block"].as_u64().unwrap();
        let turned = |it: &&&Value| {
            it["treatment"] == trial["treatment"]
                && it["block"] != block
                && ends(it) == (server, client)
        };
        assert_eq!(first.iter().filter(turned).count(), 1, "{client}, {server}");
    }
    let facts = &record["fingerprint"]["versions"];
    for node in nodes {
        let fact = format!("node {}", node.as_str().unwrap());
        assert!(facts[&fact].is_string(), "{fact}: {facts}");
    }
    let shown = stdout(&output);
    assert!(
        shown.contains(&format!(
            "p50 between nodes: pod, rr\n{} nodes",
            nodes.len()
        )),
        "{shown}"
    );
    assert_eq!(cluster.inventory(), before);
}

#[test]
fn pairs_are_as_many_as_there_are_nodes_for() {
    let Some(cluster) = lasting() else { return };
    let before = cluster.inventory();
    // The nodes that there are, as a mesh would take them.
    let most = cluster.workers().len() / 2;
    let pairs = |count: usize| {
        let count = count.to_string();
        let flags = short(&["--network", "pod", "--pairs", &count]);
        cluster.run(&flags).output().unwrap()
    };
    let output = pairs(most + 1);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    let takes = format!("--pairs {} takes {} nodes", most + 1, 2 * (most + 1));
    assert!(said.contains(&takes), "{said}");
    let remedy = format!("ask for at most --pairs {most}");
    assert!(said.contains(&remedy), "{said}");
    assert_eq!(cluster.inventory(), before);

    let output = pairs(most);
    ran_to_its_end(&output, &run_directory(cluster.out()));
    let (record, trials) = read(&run_directory(cluster.out()));
    assert_eq!(record["plan"]["pairing"]["layout"], "pairs");
    let first = trials.iter().filter(|it| {
        assert_ne!(it["status"]["status"], "failed", "{it}");
        it["attempt"] == 0 && it["treatment"] == trials[0]["treatment"]
    });
    let first: Vec<_> = first.map(ends).collect();
    assert_eq!(first.len(), most, "{}", stderr(&output));
    let distinct: BTreeSet<&str> = first.iter().flat_map(|it| [it.0, it.1]).collect();
    assert_eq!(distinct.len(), 2 * most, "no node twice: {first:?}");
    assert_eq!(cluster.inventory(), before);
}

/// The nodes of a trial, the sender's first.
fn ends(trial: &Value) -> (&str, &str) {
    let end = |which: &str| trial["pair"][which].as_str().unwrap();
    (end("client"), end("server"))
}
