//! What is shown of an anonymous record tells no names, in any format.

use std::collections::BTreeMap;

use plumbline_record::{Pseudonyms, Run, Trial, Warning};
use plumbline_report::{Summary, csv, html, json, markdown, terminal};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::fake::{Fake, Network};

const MARK: &str = "zqx";

/// Keys of what readers need, and of times, versions and hashes: they stay as they are.
const MAY_STAY: &[&str] = &[
    "architecture",
    "clock_source",
    "cpu_model",
    "driver",
    "governor",
    "hypervisor",
    "kernel",
    "limits",
    "microcode",
    "offloads",
    "qdisc",
    "sha256",
    "started",
    "sysctls",
    "thresholds",
    "version",
];

/// Puts a mark into every string of a record that its type takes it in, the same into
/// equal ones.
fn planted<T: Serialize + DeserializeOwned>(record: &T, marks: &mut BTreeMap<String, String>) -> T {
    let mut value = serde_json::to_value(record).unwrap();
    let mut places = Vec::new();
    strings(&value, String::new(), &mut places);
    for place in places {
        let before = value.pointer(&place).unwrap().clone();
        let number = marks.len();
        let mark = marks.entry(before.as_str().unwrap().to_owned());
        let mark = mark.or_insert_with(|| format!("{MARK}{number}")).clone();
        *value.pointer_mut(&place).unwrap() = mark.into();
        if serde_json::from_value::<T>(value.clone()).is_err() {
            *value.pointer_mut(&place).unwrap() = before;
        }
    }
    serde_json::from_value(value).unwrap()
}

/// The places of all strings that may not stay.
fn strings(value: &Value, place: String, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(place),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                strings(item, format!("{place}/{at}"), found);
            }
        }
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .filter(|(key, _)| !MAY_STAY.contains(&&***key));
            for (key, inner) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                strings(inner, format!("{place}/{key}"), found);
            }
        }
        _ => {}
    }
}

fn shown(run: &Run, trials: &[Trial]) -> [(&'static str, String); 5] {
    let summary = Summary::new(run, trials);
    [
        (
            "terminal",
            terminal::render(&summary, terminal::Style::default()),
        ),
        ("page", html::render(&summary, run, trials)),
        ("Markdown", markdown::render(&summary)),
        ("CSV", csv::render(&summary)),
        ("JSON", json::render(&summary)),
    ]
}

#[test]
fn no_format_tells_names() {
    let (mut run, trials) = Fake::new(&[Network::same("host"), Network::same("vxlan")]).run();
    run.warnings.push(Warning::CarriesNothing {
        network: "dead".to_owned(),
        reason: "10.7.7.7 does not answer".to_owned(),
    });
    let mut marks = BTreeMap::new();
    let run = planted(&run, &mut marks);
    let mut trials: Vec<Trial> = trials;
    for trial in trials.iter_mut().take(3) {
        *trial = planted(trial, &mut marks);
    }
    for (format, text) in shown(&run, &trials) {
        assert!(
            text.contains(MARK),
            "{format} would show no name in any case"
        );
    }
    let (run, trials) = Pseudonyms::default().record(&run, &trials).unwrap();
    for (format, text) in shown(&run, &trials) {
        let at = text
            .find(MARK)
            .map(|at| text[..at].chars().rev().take(80).collect::<String>());
        assert!(at.is_none(), "{format}, backwards: {at:?}");
    }
}
