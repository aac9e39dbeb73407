//! What pods set for themselves on a path.

use std::process::Output;

use serde_json::Value;

use super::{Cluster, lasting, read, refused, statuses};
use crate::world::{run_directory, stderr};

/// A run of the path between pods, and of a variant of it in which something is set.
fn run(cluster: &Cluster, setting: &str) -> Output {
    let text = format!(
        r#"
name = "variant"
question = "What does it cost?"
target = "kubernetes"
baseline = "pod"

[factors]
network = "pod"

[network.varied]
{setting}

[[workload]]
kind = "stream"
connections = 1

[design]
blocks = 1
duration = "100ms"
control = "off"
retries = 0
"#
    );
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let path = file.path().to_str().unwrap();
    cluster.run(&[path]).output().unwrap()
}

/// Bytes that arrived in a run, without and with the setting.
#[track_caller]
fn carried(cluster: &Cluster, setting: &str) -> [u64; 2] {
    let output = run(cluster, setting);
    let directory = run_directory(cluster.out());
    let (record, trials) = read(&directory);
    let label = |one: &Value| one["label"].as_str().unwrap().to_owned();
    let treatments = record["plan"]["treatments"].as_array().unwrap();
    let labels: Vec<_> = treatments.iter().map(label).collect();
    assert_eq!(labels, ["pod", "varied/pod"], "{}", stderr(&output));
    std::fs::remove_dir_all(directory).unwrap();
    let bytes = |treatment: u64| {
        let trial = trials.iter().find(|it| it["treatment"] == treatment);
        let load = trial.map(|it| &it["observation"]["what"]["load"]);
        let bytes = load.and_then(|it| it["bytes_sent"].as_u64());
        bytes.unwrap_or_else(|| panic!("{:?}: {}", statuses(&trials), stderr(&output)))
    };
    [bytes(0), bytes(1)]
}

/// A control that the kernel lacks shows that the sockets are asked, and a small buffer that
/// the pods have their sysctls.
#[test]
fn pods_set_what_is_theirs() {
    let Some(cluster) = lasting() else { return };
    let before = cluster.inventory();
    let reno = carried(&cluster, "tcp_congestion_control = \"reno\"");
    assert!(reno.iter().all(|it| *it > 0), "{reno:?}");
    let [usual, small] = carried(&cluster, "tcp_rmem = 8192\ntcp_wmem = 8192");
    assert!(small > 0 && small < usual, "{small} of {usual}");

    let output = run(&cluster, "tcp_congestion_control = \"vegas\"");
    let said = stderr(&output);
    assert!(said.contains("congestion control vegas"), "{said}");
    assert_eq!(cluster.inventory(), before);
}

#[test]
fn what_is_the_nodes_is_not_set_by_pods() {
    let Some(cluster) = lasting() else { return };
    let before = cluster.inventory();
    let output = run(&cluster, "tcp_slow_start_after_idle = true");
    refused(&output, 64, &["slow start after idle on", "--target lab"]);
    assert_eq!(cluster.inventory(), before);
}
