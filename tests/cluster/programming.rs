//! How long a Service or a policy takes until it acts.

use serde_json::Value;

use super::{Cluster, gates, lasting, read, refused, statuses};
use crate::world::{run_directory, stderr};

/// Each object added and removed, with these factors beside the network.
fn run(cluster: &Cluster, object: &str, factors: &str) -> std::process::Output {
    let file = cluster.out().join(format!("{object}.toml"));
    let workload = |change: &str| {
        format!(
            "[[workload]]\nkind = \"programming\"\nobject = \"{object}\"\nchange = \"{change}\"\n"
        )
    };
    let text = format!(
        "name = \"programming-{object}\"\nquestion = \"When?\"\nbaseline = \"pod\"\n\
         [factors]\nnetwork = \"pod\"\n{factors}{}{}\
         [design]\nblocks = 1\nwarm_up = \"300ms\"\nduration = \"2s\"\nretries = 3\n",
        workload("add"),
        workload("remove")
    );
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    cluster.run(&[file]).output().unwrap()
}

/// Whether a trial shows its change: connections ended otherwise at its end than before it.
fn shows_change(trial: &Value) -> bool {
    let what = &trial["observation"]["what"];
    let Some(spells) = what["probe"]["spells"].as_array() else {
        return false;
    };
    assert_eq!(what["exercise"], "programming");
    let [asked, answered] = ["asked_ns", "answered_ns"].map(|it| what[it].as_u64().unwrap());
    assert!(asked < answered, "{what}");
    let opened = spells.iter().map(|it| it["outcome"] == "opened");
    let opened: Vec<bool> = opened.collect();
    let opens = what["opens"].as_bool().unwrap();
    opened.first() == Some(&!opens) && opened.last() == Some(&opens)
}

/// Each change was seen, and nothing but a busy machine voided a trial: there connections
/// are sent late, or are lost.
fn assert_acted(said: &str, record: &Value, trials: &[Value], treatments: usize) {
    let planned = record["plan"]["treatments"].as_array().unwrap();
    assert_eq!(planned.len(), treatments);
    for at in 0..treatments {
        let mut of_it = trials.iter().filter(|it| it["treatment"] == at);
        assert!(of_it.any(shows_change), "{:?} {said}", statuses(trials));
    }
    let is_of_load = |it: &String| ["send-lag", "no-change"].contains(&it.as_str());
    let are_of_load = trials.iter().flat_map(gates).all(|it| is_of_load(&it));
    assert!(are_of_load, "{:?}", statuses(trials));
}

#[test]
fn a_service_that_comes_and_goes_acts_after_its_answer() {
    let Some(cluster) = lasting() else { return };
    let before = cluster.inventory();
    let said = stderr(&run(&cluster, "service", ""));
    let (record, trials) = read(&run_directory(cluster.out()));
    assert_acted(&said, &record, &trials, 2);
    assert_eq!(cluster.inventory(), before);
}

/// Beside 50 that stand while one more comes and goes.
#[test]
fn a_service_comes_and_goes_beside_standing_ones() {
    let Some(cluster) = lasting() else { return };
    let before = cluster.inventory();
    let factors = "services = 50\nposition = \"none\"\n";
    let said = stderr(&run(&cluster, "service", factors));
    let (record, trials) = read(&run_directory(cluster.out()));
    assert_acted(&said, &record, &trials, 2);
    let treatments = record["plan"]["treatments"].as_array().unwrap();
    let standing = |it: &&Value| it["services"]["count"] == 50;
    assert_eq!(
        treatments.iter().filter(standing).count(),
        2,
        "{treatments:?}"
    );
    let made = |it: &Value| it["observation"]["what"]["network"] == "50 services";
    assert!(trials.iter().any(made), "{said}");
    assert_eq!(cluster.inventory(), before);
}

/// Where nothing enforces policies, that is said before the first trial.
#[test]
fn a_policy_that_comes_and_goes_acts_where_policies_are_enforced() {
    let Some(cluster) = lasting() else { return };
    let before = cluster.inventory();
    let output = run(&cluster, "policy", "");
    let said = stderr(&output);
    if std::env::var("PLUMBLINE_TEST_POLICIES").is_ok_and(|it| it == "enforced") {
        let (record, trials) = read(&run_directory(cluster.out()));
        assert_acted(&said, &record, &trials, 2);
    } else {
        refused(&output, 2, &["a network that enforces NetworkPolicies"]);
    }
    assert_eq!(cluster.inventory(), before);
}
