//! The paths of one client node take turns.

use std::collections::BTreeSet;

use serde_json::Value;

use super::paths::assert_sound;
use super::{lasting, read, statuses};
use crate::world::{run_directory, stderr};

#[test]
fn paths_stand_side_by_side_and_each_is_counted_apart() {
    let Some(cluster) = lasting() else { return };
    let before = cluster.inventory();
    let output = cluster
        .run(&[
            "--allow-host-network",
            "--network",
            "host,pod,cluster-ip,cluster-ip:2,node-port",
        ])
        .args([
            "--workload",
            "rr,crr,stream",
            "--rate",
            "300",
            "--connections",
            "16",
        ])
        .args(["--duration", "200ms", "--blocks", "2"])
        .output()
        .unwrap();
    let (record, trials) = read(&run_directory(cluster.out()));
    let said = stderr(&output);
    let treatments = record["plan"]["treatments"].as_array().unwrap();
    // The five, and a copy of the first.
    assert_eq!(treatments.len(), 18, "{said}");
    assert_eq!(record["plan"]["controls"], 3);
    let mut measured = BTreeSet::new();
    for (at, trial) in trials.iter().enumerate() {
        let treatment = &treatments[trial["treatment"].as_u64().unwrap() as usize];
        let label = format!("{} {}", treatment["label"], treatment["workload"]["name"]);
        // The rules before a service are kube-proxy's, and were once seen to be away for a
        // moment on a machine with much to do: such a set is repeated.
        let is_repetition = |it: &Value| {
            let is_its = ["block", "position"]
                .iter()
                .all(|key| it[*key] == trial[*key]);
            is_its && it["attempt"].as_u64() > trial["attempt"].as_u64()
        };
        let why = trial["status"]["error"].as_str().unwrap_or_default();
        if why.contains("cannot be reached") && trials[at..].iter().any(is_repetition) {
            eprintln!("{label}: {why}");
            continue;
        }
        assert_sound(&label, trial);
        let common = &trial["observation"]["common"];
        assert_eq!(common["rotation"]["treatments"], 6, "{label}: {common}");
        measured.insert(trial["treatment"].as_u64());
        check_packets(&label, treatment, &trial["observation"]);
    }
    assert_eq!(measured.len(), 18, "{:?}", statuses(&trials));
    assert_eq!(cluster.inventory(), before);
}

/// Between pods the devices count what this treatment sent and no more: the others, which
/// sent as much at the same time, would double it at least.
fn check_packets(label: &str, treatment: &Value, observation: &Value) {
    let devices = observation["common"]["devices"].as_array().unwrap();
    let path = treatment["path"].as_str().unwrap();
    if path == "host" {
        assert!(devices.is_empty(), "{label}: all share them: {devices:?}");
        return;
    }
    let received = |of: &str| -> u64 {
        let own = devices
            .iter()
            .filter(|it| it["namespace"].as_str().unwrap().starts_with(of));
        own.map(|it| it["rx_packets"].as_u64().unwrap()).sum()
    };
    let (answers, asked) = (received("client"), received("server"));
    assert!(answers > 0 && asked > 0, "{label}: {devices:?}");
    if treatment["workload"]["name"] != "crr" {
        return;
    }
    // A request on a connection of its own takes five packets each way, with what is
    // merged or sent again one or two fewer or more.
    let requests = observation["what"]["serve"]["requests"].as_u64().unwrap();
    for packets in [answers, asked] {
        let of_each = packets as f64 / requests as f64;
        assert!(
            (3.0..8.0).contains(&of_each),
            "{label}: {packets} for {requests}"
        );
    }
}
