//! What the trials of a run say: that load really went over its path.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::world::stderr;

/// Gates that a trial may fail because of the machine: others used it, or it
/// stood still for longer than the drain waits. CI machines are like that.
const OF_THE_MACHINE: &[&str] = &[
    "disturbed",
    "send-lag",
    "achieved-rate",
    "errors",
    "no-steady-state",
];

/// The trials of a run; a line that was being written when it was killed is none.
pub(crate) fn whole_lines(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("trials.jsonl")).unwrap();
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    let lines = text.split_inclusive('\n');
    lines
        .filter(|line| line.ends_with('\n'))
        .map(parse)
        .collect()
}

/// The numbers of the blocks of a run.
#[track_caller]
pub(crate) fn blocks(run: &Path) -> BTreeSet<u64> {
    let trials = whole_lines(run);
    let numbers = trials.iter().map(|it| it["block"].as_u64().unwrap());
    numbers.collect()
}

/// Whether it is no trial, but notes what was set up between trials.
pub(crate) fn is_set_up(trial: &Value) -> bool {
    trial["observation"]["what"]["exercise"] == "set-up"
}

/// How a run that went to its end ends: exit code 0, or 2 when the machine was too busy for
/// a single trial to count.
pub(crate) fn exit_code(run: &Path) -> i32 {
    let counts = |trial: &Value| trial["status"]["status"] == "valid" && !is_set_up(trial);
    if whole_lines(run).iter().any(counts) {
        0
    } else {
        2
    }
}

/// A run went to its end.
#[track_caller]
pub(crate) fn ran_to_its_end(result: &Output, run: &Path) {
    let expected = Some(exit_code(run));
    assert_eq!(result.status.code(), expected, "{}", stderr(result));
}

/// Makes every trial of a run count and see what the first one of its treatment saw: what
/// follows from trials is under test, not how quiet this machine was.
pub(crate) fn make_all_alike(run: &Path) {
    let mut first = BTreeMap::new();
    let mut alike = String::new();
    for mut trial in whole_lines(run) {
        assert!(!trial["observation"].is_null(), "{trial}");
        let seen = first.entry(trial["treatment"].as_u64().unwrap());
        trial["observation"] = seen.or_insert(trial["observation"].clone()).clone();
        trial["status"] = serde_json::json!({"status": "valid"});
        alike += &(trial.to_string() + "\n");
    }
    std::fs::write(run.join("trials.jsonl"), alike).unwrap();
}

/// No trial of a run went wrong but for the machine, and every treatment of the
/// plan has one in which both ends saw its load. Gives the number of treatments.
#[track_caller]
pub(crate) fn every_treatment_carried_load(run: &Path) -> usize {
    let plan = std::fs::read_to_string(run.join("run.json")).unwrap();
    let plan: Value = serde_json::from_str(&plan).unwrap();
    let treatments = plan["plan"]["treatments"].as_array().unwrap();
    let mut carried = BTreeSet::new();
    for trial in whole_lines(run) {
        let id = trial["treatment"].as_u64().unwrap();
        let treatment = &treatments[id as usize];
        assert_eq!(treatment["id"], id);
        let faults = faults(&trial);
        assert!(faults.is_empty(), "{treatment}: {faults:?}");
        if !failed(&trial, "errors") {
            carried_load(treatment, &trial["observation"]);
            carried.insert(id);
        }
    }
    for treatment in treatments {
        let id = treatment["id"].as_u64().unwrap();
        assert!(
            carried.contains(&id),
            "no trial without errors of {treatment}"
        );
    }
    treatments.len()
}

fn gates(trial: &Value) -> &[Value] {
    trial["status"]["gates"]
        .as_array()
        .map_or(&[], Vec::as_slice)
}

fn failed(trial: &Value, gate: &str) -> bool {
    gates(trial).iter().any(|failure| failure["gate"] == gate)
}

/// What speaks against the program in the status of a trial.
fn faults(trial: &Value) -> Vec<String> {
    match trial["status"]["status"].as_str().unwrap() {
        "valid" => Vec::new(),
        "invalid" => gates(trial)
            .iter()
            .filter(|failure| !OF_THE_MACHINE.contains(&failure["gate"].as_str().unwrap()))
            .map(Value::to_string)
            .collect(),
        _ => vec![trial["status"].to_string()],
    }
}

/// Trials that anything but the machine has cost: those that failed or are void because of more
/// than the machine, and those in which no request was answered.
pub(crate) fn lost(trials: &[Value]) -> Vec<&Value> {
    let is_lost = |trial: &&Value| {
        let completed = &trial["observation"]["what"]["load"]["completed"];
        !faults(trial).is_empty() || completed.as_u64().is_none_or(|it| it == 0)
    };
    trials.iter().filter(is_lost).collect()
}

/// Both ends saw what the workload is made of, and no error.
#[track_caller]
fn carried_load(treatment: &Value, observation: &Value) {
    let what = &observation["what"];
    let (load, serve) = (&what["load"], &what["serve"]);
    let kind = treatment["workload"]["kind"].as_str().unwrap();
    let both = match kind {
        "stream" => [&load["bytes_sent"], &serve["bytes_received"]],
        "datagram" => [&load["sent"], &serve["datagrams"]["received"]],
        _ => [&load["completed"], &serve["requests"]],
    };
    for count in both {
        assert!(count.as_u64().unwrap() > 0, "{treatment}: {load} {serve}");
    }
    // Of a slow stream that takes turns all may be written before the recorded parts.
    let is_answered = kind == "stream" || load["completed"].as_u64().unwrap() > 0;
    assert!(is_answered, "{treatment}");
    for (error, count) in load["errors"].as_object().unwrap() {
        assert_eq!(count, 0, "{treatment}: {error}");
    }
    let packets = |device: &Value| device["rx_packets"].as_u64().unwrap();
    let devices = observation["common"]["devices"].as_array().unwrap();
    assert!(devices.iter().any(|d| packets(d) > 0), "{devices:?}");
}

#[test]
fn planted_faults_are_seen() {
    let trial = |status: &str| -> Value {
        serde_json::from_str(&format!("{{\"status\": {status}}}")).unwrap()
    };
    for sound in [
        r#"{"status": "valid"}"#,
        r#"{"status": "invalid", "gates": [{"gate": "disturbed"}, {"gate": "send-lag"}]}"#,
    ] {
        assert!(faults(&trial(sound)).is_empty(), "{sound}");
    }
    for faulty in [
        r#"{"status": "failed", "error": "no route"}"#,
        r#"{"status": "invalid", "gates": [{"gate": "disturbed"}, {"gate": "wrong-path"}]}"#,
        r#"{"status": "invalid", "gates": [{"gate": "path-fault"}]}"#,
    ] {
        assert_eq!(faults(&trial(faulty)).len(), 1, "{faulty}");
    }
    let unanswered = trial(r#"{"status": "invalid", "gates": [{"gate": "errors"}]}"#);
    assert!(failed(&unanswered, "errors") && !failed(&unanswered, "disturbed"));
}

#[test]
fn planted_losses_are_seen() {
    let trial = |status: &str, completed: u64| {
        let status: Value = serde_json::from_str(status).unwrap();
        let what = serde_json::json!({ "load": { "completed": completed } });
        serde_json::json!({ "status": status, "observation": { "what": what } })
    };
    let valid = r#"{"status": "valid"}"#;
    let failed = r#"{"status": "failed", "error": "no route"}"#;
    let of_machine = r#"{"status": "invalid", "gates": [{"gate": "disturbed"}]}"#;
    let wrong_path = r#"{"status": "invalid", "gates": [{"gate": "wrong-path"}]}"#;
    let kept = [trial(valid, 7), trial(of_machine, 7)];
    assert!(lost(&kept).is_empty());
    let mut all_lost = [(valid, 0), (failed, 7), (wrong_path, 7)].map(|(it, n)| trial(it, n));
    assert_eq!(lost(&all_lost).len(), 3);
    all_lost[1]["observation"] = Value::Null;
    assert_eq!(lost(&all_lost).len(), 3);
}
