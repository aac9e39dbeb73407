//! Four hosts: every one with every other, and two pairs at once.

use std::collections::BTreeSet;

use serde_json::Value;

use super::two_hosts::TwoHosts;
use super::{assert_measured, whole_record};
use crate::world::{run_directory, stderr, stdout};

const FOUR: &[&str] = &["--host", "a", "--host", "b", "--host", "c", "--host", "d"];

/// Little load: the hosts share the machine that tests share too.
const LITTLE: &[&str] = &[
    "--workload",
    "rr",
    "--rate",
    "200",
    "--connections",
    "2",
    "--duration",
    "200ms",
];

fn pair(trial: &Value) -> (&str, &str) {
    let name = |side: &str| trial["pair"][side].as_str().expect("it has a pair");
    (name("client"), name("server"))
}

#[test]
fn every_host_is_measured_with_every_other() {
    let Some(hosts) = TwoHosts::stand_many("a mesh of hosts") else {
        return;
    };
    let blocks = ["--mesh", "--blocks", "2", "--set", "design.retries=2"];
    let output = hosts.run(&[FOUR, &blocks[..], LITTLE].concat());
    let (run, trials) = whole_record(&hosts, &output);
    let pairing = &run["plan"]["pairing"];
    assert_eq!(pairing["layout"], "mesh");
    assert_eq!(pairing["nodes"], serde_json::json!(["a", "b", "c", "d"]));
    let first: Vec<&Value> = trials.iter().filter(|it| it["attempt"] == 0).collect();
    assert_eq!(first.len(), 12, "{}", stderr(&output));
    first.iter().for_each(|trial| assert_measured(trial));
    // The second block turns every pair round.
    let pairs: BTreeSet<(&str, &str)> = first.iter().map(|trial| pair(trial)).collect();
    assert_eq!(pairs.len(), 12);
    let shown = stdout(&output);
    assert!(
        shown.contains("p50 between nodes: host, rr\n4 nodes, "),
        "{shown}"
    );
    let page = std::fs::read_to_string(run_directory(&hosts.path("out")).join("report.html"));
    let page = page.expect("it was written");
    assert!(page.contains("Rows send, columns receive"));
    hosts.nothing_left();
}

#[test]
fn a_host_that_nobody_reaches_is_named_and_the_others_are_measured() {
    let Some(hosts) = TwoHosts::stand_many("a mesh with a dead host") else {
        return;
    };
    let down = ["ip", "link", "set", "data-d", "down"];
    let status = hosts.inside(&down).status();
    assert!(status.expect("ip runs").success());
    let mesh = ["--mesh", "--address", "10.2.0.0/24", "--blocks", "1"];
    let more = ["--set", "design.retries=0"];
    let output = hosts.run(&[FOUR, &mesh[..], &more[..], LITTLE].concat());
    let (_, trials) = whole_record(&hosts, &output);
    assert_eq!(trials.len(), 6, "{}", stderr(&output));
    for trial in &trials {
        let (client, server) = pair(trial);
        if client == "d" || server == "d" {
            assert_ne!(trial["status"]["status"], "valid", "{trial}");
        } else {
            assert_measured(trial);
        }
    }
    let shown = stdout(&output);
    let named = "node d: none of its 3 pairs has a valid trial";
    assert!(shown.contains(named), "{shown}{}", stderr(&output));
    hosts.nothing_left();
}

#[test]
fn two_pairs_run_at_the_same_time() {
    let Some(hosts) = TwoHosts::stand_many("two pairs of hosts at once") else {
        return;
    };
    let pairs = ["--pairs", "2", "--blocks", "1", "--set", "design.retries=0"];
    let output = hosts.run(&[FOUR, &pairs[..], LITTLE].concat());
    let (run, trials) = whole_record(&hosts, &output);
    assert_eq!(run["plan"]["pairing"]["layout"], "pairs");
    assert_eq!(trials.len(), 2, "{}", stderr(&output));
    assert_eq!(
        trials.iter().map(pair).collect::<Vec<_>>(),
        [("a", "b"), ("c", "d")]
    );
    for trial in &trials {
        assert_measured(trial);
        assert_eq!(trial["started"], trials[0]["started"]);
        // One kernel, whose CPU is that of both pairs.
        let others = &trial["observation"]["common"]["companions_cpu"];
        let total = others["user_ns"].as_u64().zip(others["system_ns"].as_u64());
        assert!(
            total.is_some_and(|(user, system)| user + system > 0),
            "{others}"
        );
    }
    hosts.nothing_left();
}

#[test]
fn hosts_that_make_no_pairs_are_refused_with_a_sentence() {
    let Some(hosts) = TwoHosts::stand("hosts that make no pairs") else {
        return;
    };
    for (arguments, says) in [
        (
            &["--pairs", "2", "--host", "a", "--host", "b"][..],
            "takes 4 hosts",
        ),
        (&["--mesh", "--host", "a"], "of two hosts at least"),
        (&["--mesh", "--host", "a", "--host", "a"], "given twice"),
        (&["--mesh", "--pair", "x=a,b"], "give a --host for each"),
        (
            &["--host", "a", "--host", "b", "--host", "a"],
            "--mesh or --pairs N too",
        ),
        (
            &["--mesh", "--pairs", "1", "--host", "a", "--host", "b"],
            "cannot be used with",
        ),
    ] {
        let output = hosts.run(arguments);
        assert_eq!(output.status.code(), Some(64), "{arguments:?}");
        let said = stderr(&output)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(said.contains(says), "{says}: {said}");
        hosts.nothing_left();
    }
}
