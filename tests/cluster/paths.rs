//! Every path carries every workload, and the record says where.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Cluster, gates, lasting, read, short, statuses};
use crate::observed::ran_to_its_end;
use crate::world::{run_directory, stderr};

/// The gates that a path fails that leads elsewhere or damages content.
const NEVER: &[&str] = &["wrong-path", "path-fault"];

/// The trial ran, and its packets took their path whole.
#[track_caller]
pub(super) fn assert_sound(label: &dyn std::fmt::Display, trial: &Value) {
    let status = &trial["status"];
    assert_ne!(status["status"], "failed", "{label}: {trial}");
    let failed = gates(trial);
    let is_never = |gate: &String| NEVER.contains(&gate.as_str());
    assert!(!failed.iter().any(is_never), "{label}: {status}");
}

#[test]
fn every_path_carries_packets_where_it_says_and_nothing_is_left() {
    let Some(cluster) = lasting() else { return };
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
    ran_to_its_end(&output, &run);
    let (record, trials) = read(&run);
    let treatments = record["plan"]["treatments"].as_array().unwrap();
    let networks: BTreeSet<&str> = treatments
        .iter()
        .map(|it| it["path"].as_str().unwrap())
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
            assert_sound(label, trial);
        }
    }
    // C-13: what the cluster is made of.
    let facts = &record["fingerprint"]["versions"];
    let (system, kubelet) = ("client node system", "client node kubelet");
    let of_node = match std::env::var_os("PLUMBLINE_TEST_ROLE") {
        None => vec![kubelet, "client node runtime"],
        Some(_) => {
            assert_eq!(facts[system], "not shown to this account", "{facts}");
            assert!(facts[kubelet].is_null(), "{facts}");
            Vec::new()
        }
    };
    let of_all = [
        "kubernetes",
        "server node name",
        "client node kube-proxy",
        "server node kube-proxy",
    ];
    for fact in of_node.into_iter().chain(of_all) {
        assert!(facts[fact].is_string(), "{fact}: {facts}");
    }
    assert_ne!(facts["client node name"], facts["server node name"]);
    let devices = &record["fingerprint"]["devices"]["pod"];
    assert!(devices[0]["mtu"].as_u64().unwrap() > 1000, "{devices}");
    assert_eq!(cluster.inventory(), before);
}

#[test]
fn every_workload_goes_through_a_cluster_ip() {
    let Some(cluster) = lasting() else { return };
    carries_every_workload(&cluster, "cluster-ip", "2");
}

/// Each connection goes to one of them, and all get some. That 24 random connections
/// miss one of three happens twice in ten thousand runs.
#[test]
fn every_workload_goes_to_several_pods_behind_a_cluster_ip() {
    let Some(cluster) = lasting() else { return };
    let before = cluster.inventory();
    let trials = carries_every_workload(&cluster, "cluster-ip:3", "24");
    for index in 1..=3 {
        let pod = format!("server-cluster-ip-3-{index}");
        for trial in &trials {
            let devices = trial["observation"]["common"]["devices"].as_array();
            let mut own = devices.into_iter().flatten();
            let seen = own
                .any(|it| it["namespace"] == pod.as_str() && it["rx_packets"].as_u64() > Some(0));
            assert!(seen, "{pod} got nothing: {}", trial["treatment"]);
        }
    }
    assert_eq!(cluster.inventory(), before);
}

/// Runs them, and gives the trials that carried something.
#[track_caller]
fn carries_every_workload(cluster: &Cluster, network: &str, connections: &str) -> Vec<Value> {
    let output = cluster
        .run(&[
            "--network",
            network,
            "--baseline",
            network,
            "--workload",
            "rr,crr,stream,datagram,http",
            "--rate",
            "200",
            "--connections",
            connections,
            "--duration",
            "100ms",
            "--blocks",
            "1",
            "--set",
            "design.retries=1",
        ])
        .output()
        .unwrap();
    ran_to_its_end(&output, &run_directory(cluster.out()));
    let (record, trials) = read(&run_directory(cluster.out()));
    let treatments = record["plan"]["treatments"].as_array().unwrap();
    assert_eq!(treatments.len(), 5, "{}", stderr(&output));
    let whole = |it: &&Value| !gates(it).iter().any(|gate| NEVER.contains(&gate.as_str()));
    let carried = trials
        .iter()
        .filter(whole)
        .filter(|it| it["observation"]["what"]["load"]["bytes_sent"].as_u64() > Some(0));
    let carried: Vec<Value> = carried.cloned().collect();
    for treatment in treatments {
        assert!(
            carried.iter().any(|it| it["treatment"] == treatment["id"]),
            "{}: {:?}",
            treatment["workload"]["name"],
            statuses(&trials)
        );
    }
    carried
}

#[test]
fn without_leave_for_host_networking_paths_among_pods_are_compared() {
    let Some(cluster) = lasting() else { return };
    let output = cluster.run(&short(&[])).output().unwrap();
    let (record, _) = read(&run_directory(cluster.out()));
    let treatments = record["plan"]["treatments"].as_array().unwrap();
    let networks: Vec<&str> = treatments
        .iter()
        .map(|it| it["path"].as_str().unwrap())
        .collect();
    // The last is the control.
    assert_eq!(networks, ["pod", "cluster-ip", "node-port", "pod"]);
    assert_eq!(record["plan"]["controls"], 1);
    assert!(treatments[0]["baseline"].is_null());
    let missing = record["warnings"].to_string();
    assert!(missing.contains("--allow-host-network"), "{missing}");
    ran_to_its_end(&output, &run_directory(cluster.out()));

    let output = cluster.run(&["--network", "host"]).output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(stderr(&output).contains("--allow-host-network"));
}
