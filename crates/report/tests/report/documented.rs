//! Every key of the JSON that tests see is in docs/json.md. Those that run the program
//! use this too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::Value;

/// The keys of each object by its path, such as `treatments[].latency_ns`: headings name
/// paths, the rows below them keys. `*` stands for keys that the run gives their names.
static DOCUMENTED: LazyLock<BTreeMap<String, BTreeSet<String>>> = LazyLock::new(|| {
    let text = include_str!("../../../../docs/json.md");
    let mut documented: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut paths: Vec<String> = Vec::new();
    for line in text.lines() {
        let quoted = |text: &str| -> Vec<String> {
            let all = text.split('`').skip(1).step_by(2);
            all.map(str::to_owned).collect()
        };
        if line.starts_with('#') {
            paths = quoted(line);
        } else if let Some(row) = line.strip_prefix("| ") {
            let keys = quoted(row.split(" | ").next().unwrap());
            for path in &paths {
                documented
                    .entry(path.clone())
                    .or_default()
                    .extend(keys.clone());
            }
        }
    }
    documented
});

/// Reads a report, all of whose keys are described.
#[track_caller]
pub(crate) fn read(text: &str) -> Value {
    read_as("report", text)
}

/// Reads a comparison of runs; these are reports.
#[track_caller]
pub(crate) fn read_compared(text: &str) -> Value {
    let value = read_as("comparison", text);
    for run in value["runs"].as_array().expect("a list") {
        read(&run.to_string());
    }
    value
}

#[track_caller]
fn read_as(what: &str, text: &str) -> Value {
    let value: Value = serde_json::from_str(text).expect("a report is JSON");
    check(what, &value);
    value
}

/// Holds JSON of this name to what is described.
#[track_caller]
pub(crate) fn check(what: &str, value: &Value) {
    let mut missing = BTreeSet::new();
    compare(what, value, &mut missing);
    assert!(missing.is_empty(), "not in docs/json.md: {missing:#?}");
}

fn compare(path: &str, value: &Value, missing: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items
            .iter()
            .for_each(|item| compare(&format!("{path}[]"), item, missing)),
        Value::Object(fields) => {
            let known = DOCUMENTED.get(path);
            let has = |key: &str| known.is_some_and(|keys| keys.contains(key));
            for (key, field) in fields {
                if !has(key) && !has("*") {
                    missing.insert(format!("{path}: {key}"));
                }
                let path = format!("{path}.{key}");
                // These are reports, and read as such.
                if path != "comparison.runs" {
                    compare(&path, field, missing);
                }
            }
        }
        _ => {}
    }
}

#[test]
fn a_key_that_is_described_nowhere_is_found() {
    let mut missing = BTreeSet::new();
    let value = serde_json::json!({ "experiment": "tour", "novelty": [{ "depth": 1 }] });
    compare("report", &value, &mut missing);
    let expected = ["report.novelty[]: depth", "report: novelty"];
    assert_eq!(missing.into_iter().collect::<Vec<_>>(), expected);
}
