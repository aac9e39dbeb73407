//! Every path carries every workload, and the record says where.

use std::collections::BTreeSet;

use super::{cluster, gates, read, short, statuses};
use crate::world::{run_directory, stderr};

/// What a path that leads elsewhere, or breaks content, would fail.
const NEVER: &[&str] = &["wrong-path", "path-fault"];

#[test]
fn every_path_carries_packets_where_it_says_and_nothing_is_left() {
    let Some(cluster) = cluster() else { return };
    let before = cluster.inventory();
    let mut command = cluster.run(&short(&[]));
    let output = command
        .args([
            "--allow-host-network",
            "--placement",
            "cross-node,same-node",
        ])
        .output()
        .unwrap();
    let run = run_directory(cluster.out());
    let (record, trials) = read(&run);
    let treatments = record["plan"]["treatments"].as_array().unwrap();
    let networks: BTreeSet<&str> = treatments
        .iter()
        .map(|it| it["network"].as_str().unwrap())
        .collect();
    let all = [
        "cluster-ip",
        "host",
        "host-pod",
        "node-port",
        "pod",
        "pod-host",
    ];
    assert_eq!(networks, all.into(), "{}", stderr(&output));
    for treatment in treatments {
        let label = &treatment["label"];
        let own = || {
            trials
                .iter()
                .filter(|it| it["treatment"] == treatment["id"])
        };
        assert!(own().count() > 0, "{label} was not run");
        for trial in own() {
            assert_ne!(
                trial["status"]["status"], "failed",
                "{label}: {}",
                trial["status"]
            );
            let failed = gates(trial);
            assert!(
                !failed.iter().any(|gate| NEVER.contains(&gate.as_str())),
                "{label}: {}",
                trial["status"]
            );
        }
    }
    // C-13: what the cluster is made of.
    let facts = &record["fingerprint"]["versions"];
    for fact in [
        "kubernetes",
        "client node kubelet",
        "client node runtime",
        "server node name",
    ] {
        assert!(facts[fact].is_string(), "{fact}: {facts}");
    }
    assert_ne!(facts["client node name"], facts["server node name"]);
    let devices = &record["fingerprint"]["devices"]["pod"];
    assert!(devices[0]["mtu"].as_u64().unwrap() > 1000, "{devices}");
    assert_eq!(cluster.inventory(), before);
}

#[test]
fn every_workload_goes_through_a_cluster_ip() {
    let Some(cluster) = cluster() else { return };
    let output = cluster
        .run(&[
            "--network",
            "cluster-ip",
            "--baseline",
            "cluster-ip",
            "--workload",
            "rr,crr,stream,datagram,http",
            "--rate",
            "200",
            "--connections",
            "2",
            "--duration",
            "100ms",
            "--blocks",
            "1",
            "--set",
            "design.retries=1",
        ])
        .output()
        .unwrap();
    let directory = run_directory(cluster.out());
    let (record, trials) = read(&directory);
    let treatments = record["plan"]["treatments"].as_array().unwrap();
    assert_eq!(treatments.len(), 5, "{}", stderr(&output));
    for treatment in treatments {
        let own = trials
            .iter()
            .filter(|it| it["treatment"] == treatment["id"]);
        let carried = own
            .filter(|it| !gates(it).iter().any(|gate| NEVER.contains(&gate.as_str())))
            .filter(|it| it["observation"]["load"]["bytes_sent"].as_u64() > Some(0));
        assert!(
            carried.count() > 0,
            "{}: {:?}",
            treatment["workload"]["name"],
            statuses(&trials)
        );
    }
}

#[test]
fn without_leave_for_host_networking_paths_among_pods_are_compared() {
    let Some(cluster) = cluster() else { return };
    let output = cluster.run(&short(&[])).output().unwrap();
    let (record, _) = read(&run_directory(cluster.out()));
    let treatments = record["plan"]["treatments"].as_array().unwrap();
    let networks: Vec<&str> = treatments
        .iter()
        .map(|it| it["network"].as_str().unwrap())
        .collect();
    assert_eq!(networks, ["pod", "cluster-ip", "node-port"]);
    assert!(treatments[0]["baseline"].is_null());
    let missing = record["warnings"].to_string();
    assert!(missing.contains("--allow-host-network"), "{missing}");
    drop(output);

    let output = cluster.run(&["--network", "host"]).output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(stderr(&output).contains("--allow-host-network"));
}
