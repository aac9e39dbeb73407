//! In what two environments differ (C-13).

use std::collections::BTreeSet;

use plumbline_record::Fingerprint;
use serde_json::Value;

use crate::describe;

/// Facts that change from one run to the next without changing what it
/// measures: a clock is never read twice at the same cost, and memory depends
/// on what the kernel reserved at boot.
const VOLATILE: [&str; 3] = ["clock_read_ns", "conntrack", "memory_bytes"];

/// One fact that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Position of the later run among those compared, from 1.
    pub run: usize,
    /// Which fact, such as `kernel` or `sysctls.net.core.rmem_max`.
    pub fact: String,
    /// Its value in the first run.
    pub first: String,
    /// Its value in the later run.
    pub later: String,
}

/// Every fact that differs. Works on the stored form, so that a fact that is
/// added to fingerprints is compared without a change here.
pub fn differences(run: usize, first: &Fingerprint, later: &Fingerprint) -> Vec<Difference> {
    let value = |fingerprint| serde_json::to_value(fingerprint).unwrap_or_default();
    let mut differences = Vec::new();
    compare(run, "", &value(first), &value(later), &mut differences);
    differences
}

fn compare(run: usize, fact: &str, first: &Value, later: &Value, found: &mut Vec<Difference>) {
    if VOLATILE.contains(&fact) || first == later {
        return;
    }
    if let (Value::Object(ours), Value::Object(theirs)) = (first, later) {
        let keys: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
        for key in keys {
            let name = if fact.is_empty() {
                key.clone()
            } else {
                format!("{fact}.{key}")
            };
            let of =
                |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
            compare(run, &name, &of(ours), &of(theirs), found);
        }
        return;
    }
    found.push(Difference {
        run,
        fact: fact.to_owned(),
        first: shown(first),
        later: shown(later),
    });
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => describe::clean(text),
        other => describe::clean(&other.to_string()),
    }
}

/// A line for each difference.
pub(super) fn list(differences: &[Difference]) -> String {
    let line = |one: &Difference| {
        format!(
            "  run {}: {} is {}, was {}\n",
            one.run + 1,
            describe::clean(&one.fact),
            one.later,
            one.first
        )
    };
    differences.iter().map(line).collect()
}
