//! A run that a build of format 1 recorded, as this one reads it.

use std::fs;
use std::path::Path;

use plumbline_record::{Run, RunDirectory, RunDirectoryError, Trial};
use plumbline_report::compare::compare;
use plumbline_report::terminal::Style;
use plumbline_report::{Summary, csv, html, json, markdown, terminal};
use serde_json::{Value, json};

/// Cargo runs tests in the directory of their package.
const TOUR: &str = "tests/older/tour";

fn recorded() -> (Run, Vec<Trial>) {
    RunDirectory::read(Path::new(TOUR)).unwrap()
}

#[test]
fn an_older_run_is_reported_in_every_format() {
    let (run, trials) = recorded();
    let lines = fs::read_to_string(Path::new(TOUR).join("trials.jsonl")).unwrap();
    assert_eq!((run.format, trials.len()), (1, lines.lines().count()));
    for (line, trial) in lines.lines().zip(&trials) {
        let line: Value = serde_json::from_str(line).unwrap();
        let seen = trial.observation.as_ref().unwrap();
        let load = seen.load().expect("there was no other exercise");
        let completed = line["observation"]["load"]["completed"].as_u64();
        assert_eq!(Some(load.load.completed), completed);
        let devices = line["observation"]["devices"].as_array().unwrap();
        assert_eq!(seen.common.devices.len(), devices.len());
    }
    let summary = Summary::new(&run, &trials);
    assert!(summary.has_results());
    assert!(json::render(&summary).contains("cpu_ns_per_request"));
    assert!(csv::render(&summary).contains("routed"));
    assert!(markdown::render(&summary).contains("**routed**"));
    assert!(terminal::render(&summary, Style::default()).contains("routed"));
    assert!(html::render(&summary, &run, &trials).contains("<td>kept</td>"));
}

#[test]
fn an_older_run_equals_itself() {
    let compared = compare(&[recorded(), recorded()], false).unwrap();
    assert!(!compared.changes.is_empty());
    for change in &compared.changes {
        let ratios = change.effect.map(|effect| effect.ratio_minus_one);
        assert!(ratios.is_none_or(|ratio| ratio == 0.0), "{change:?}");
    }
}

#[test]
fn a_set_up_that_stood_on_a_trial_is_told_and_is_no_trial() {
    let copy = tempfile::tempdir().unwrap();
    for file in ["run.json", "trials.jsonl"] {
        fs::copy(Path::new(TOUR).join(file), copy.path().join(file)).unwrap();
    }
    let path = copy.path().join("trials.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let (first, others) = text.split_once('\n').unwrap();
    let mut first: Value = serde_json::from_str(first).unwrap();
    first["set_up"] = json!({
        "network": "a", "took_ns": 14_000_000_000_u64, "paths_ns": 2_000_000_000,
        "came_up": true, "log": "provision/1-a.log", "fingerprint": null,
    });
    fs::write(&path, format!("{first}\n{others}")).unwrap();
    let (run, trials) = RunDirectory::read(copy.path()).unwrap();
    let summary = Summary::new(&run, &trials);
    let (_, before) = recorded();
    assert_eq!(trials.len(), before.len() + 1);
    assert_eq!(summary.account, Summary::new(&run, &before).account);
    assert_eq!(summary.set_ups[0].took_ns.unwrap().median, 14e9);
}

#[test]
fn an_older_run_is_not_gone_on_with() {
    let error = RunDirectory::open(Path::new(TOUR)).unwrap_err();
    assert!(
        matches!(error, RunDirectoryError::Older { format: 1, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("can be reported"), "{error}");
}
