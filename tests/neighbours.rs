//! Neighbours in the lab: each kind works while the path is measured, and none of them
//! stays.

use std::process::Output;

use serde_json::Value;

use crate::left::{MARK, marked};
use crate::observed::{ran_to_its_end, whole_lines};
use crate::world::{self, plumbline, run_directory, stderr};

const SHORT: &[&str] = &[
    "--workload",
    "rr",
    "--rate",
    "500",
    "--duration",
    "150ms",
    "--blocks",
    "1",
    "--control",
    "off",
    "--set",
    "design.retries=0",
];

fn run(out: &std::path::Path, mark: &str, more: &[&str]) -> Output {
    plumbline(&["run", "--out", out.to_str().unwrap()])
        .args(more)
        .args(SHORT)
        .env(MARK, mark)
        .output()
        .expect("the program starts")
}

/// Runs all kinds, each of which works while the path is measured.
fn all_work(more: &[&str]) {
    let idle = world::in_time(|| idle(more), Vec::is_empty);
    assert!(idle.is_empty(), "{idle:#?}");
}

/// Runs all kinds, and gives those that did nothing while the path was measured: on a machine
/// that is somebody else's one may get no CPU in so short a time.
fn idle(more: &[&str]) -> Vec<String> {
    let out = tempfile::tempdir().unwrap();
    let mark = format!("neighbours-{}", more.concat());
    let kinds = "none,bulk,packets,connections,policy-churn,cpu";
    let arguments = [&["--neighbours", kinds, "--share", "node,link"], more].concat();
    let result = run(out.path(), &mark, &arguments);
    let run = run_directory(out.path());
    ran_to_its_end(&result, &run);
    assert!(marked(&mark).is_empty(), "processes are left");
    let plan = std::fs::read_to_string(run.join("run.json")).unwrap();
    let plan: Value = serde_json::from_str(&plan).unwrap();
    let treatments = plan["plan"]["treatments"].as_array().unwrap();
    // Those that send are there twice.
    assert_eq!(treatments.len(), 9);
    let trials = whole_lines(&run);
    assert_eq!(trials.len(), treatments.len());
    let mut idle = Vec::new();
    for trial in &trials {
        let treatment = &treatments[trial["treatment"].as_u64().unwrap() as usize];
        let seen = &trial["observation"];
        assert!(seen.is_object(), "{treatment}: {}", trial["status"]);
        assert!(seen["what"]["load"]["completed"].as_u64().unwrap() > 0);
        let neighbour = &seen["common"]["neighbour"];
        let Some(kind) = treatment["neighbours"]["kind"].as_str() else {
            assert!(neighbour.is_null(), "{neighbour}");
            continue;
        };
        let of = |key: &str| neighbour[key].as_u64().unwrap();
        assert!(of("window_ns") >= 100_000_000, "{kind}: {neighbour}");
        let cpu = &neighbour["cpu"];
        let busy_ns = cpu["user_ns"].as_u64().unwrap() + cpu["system_ns"].as_u64().unwrap();
        if of("done") == 0 || busy_ns == 0 {
            idle.push(format!("{kind}: {neighbour}"));
        }
        // What its packets crossed too says nothing of the path.
        let devices = seen["common"]["devices"].as_array().unwrap();
        let on_nodes = devices.iter().any(|it| it["namespace"] == "node1");
        assert_eq!(
            on_nodes,
            treatment["neighbours"]["share"] != "link",
            "{kind}"
        );
    }
    idle
}

#[test]
fn every_kind_works_while_the_path_is_measured_in_turns() {
    let Some(_alone) = world::lab("every_kind_works_in_turns") else {
        return;
    };
    all_work(&["--network", "vxlan", "--baseline", "vxlan"]);
}

#[test]
fn every_kind_works_in_whole_windows_of_ipv6_on_one_node() {
    let Some(_alone) = world::lab("every_kind_works_in_whole_windows") else {
        return;
    };
    let place = ["--family", "6", "--placement", "same-node"];
    let network = ["--network", "host-gw", "--baseline", "host-gw"];
    all_work(&[&["--rotate", "off"][..], &place, &network].concat());
}

#[test]
fn the_ready_made_interference_has_each_beside_the_same_path() {
    let Some(_alone) = world::lab("the_ready_made_interference_has_each") else {
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let result = run(out.path(), "interference", &["interference"]);
    let run = run_directory(out.path());
    ran_to_its_end(&result, &run);
    let record = std::fs::read_to_string(run.join("run.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    let treatments = record["plan"]["treatments"].as_array().unwrap();
    let kinds: Vec<_> = treatments
        .iter()
        .map(|it| it["neighbours"]["kind"].as_str())
        .collect();
    let alone = kinds
        .iter()
        .position(Option::is_none)
        .expect("the path alone");
    assert_eq!(kinds.len(), 9, "{kinds:?}");
    for kind in ["bulk", "packets", "connections", "policy-churn", "cpu"] {
        assert!(kinds.contains(&Some(kind)), "{kind}: {kinds:?}");
    }
    let trials = whole_lines(&run);
    assert_eq!(trials.len(), treatments.len());
    for (treatment, kind) in treatments.iter().zip(&kinds) {
        let label = &treatment["label"];
        let trial = trials.iter().find(|it| it["treatment"] == treatment["id"]);
        let seen = &trial.expect("each has one")["observation"];
        assert!(
            seen["what"]["load"]["completed"].as_u64() > Some(0),
            "{label}: {seen}"
        );
        assert_eq!(
            seen["common"]["neighbour"].is_null(),
            kind.is_none(),
            "{label}"
        );
        if kind.is_some() {
            assert_eq!(treatment["baseline"], alone, "{label}");
        }
    }
}

#[test]
fn what_has_no_second_pair_is_refused_before_the_run() {
    let Some(_alone) = world::lab("what_has_no_second_pair_is_refused") else {
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let asked = ["--network", "host", "--neighbours", "none,bulk"];
    let result = run(
        out.path(),
        "refused",
        &[&asked[..], &["--share", "link"]].concat(),
    );
    assert_eq!(result.status.code(), Some(2), "{}", stderr(&result));
    assert!(
        stderr(&result).contains("no second pair"),
        "{}",
        stderr(&result)
    );
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 0);
}

#[test]
fn pairs_do_the_same_at_once_in_pods_and_between_nodes() {
    let Some(_alone) = world::lab("pairs_do_the_same_at_once") else {
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let pairs = ["--network", "host,host-gw", "--set", "factors.pairs=[1,3]"];
    let result = run(out.path(), "pairs", &pairs);
    let run = run_directory(out.path());
    ran_to_its_end(&result, &run);
    let plan = std::fs::read_to_string(run.join("run.json")).unwrap();
    let plan: Value = serde_json::from_str(&plan).unwrap();
    let trials = whole_lines(&run);
    assert_eq!(trials.len(), 4);
    for trial in &trials {
        let treatment = &plan["plan"]["treatments"][trial["treatment"].as_u64().unwrap() as usize];
        let seen = &trial["observation"];
        assert!(seen.is_object(), "{treatment}: {}", trial["status"]);
        let of_two = seen["common"]["neighbour"]["done"].as_u64().unwrap_or(0);
        if treatment["neighbours"].is_null() {
            assert_eq!(of_two, 0);
        } else {
            // Two others at 500/s for 150 ms each, by chance; a busy machine answers fewer.
            assert!((1..=300).contains(&of_two), "{of_two}");
        }
    }
}
