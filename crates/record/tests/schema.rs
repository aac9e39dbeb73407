//! The schemas in docs/schema are those of the types, and real files keep them.
//!
//! `PLUMBLINE_BLESS=1 cargo test -p plumbline-record --test schema` writes them
//! anew after a change of the types.

mod sample;

use std::fs;
use std::path::PathBuf;

use plumbline_experiment::Scene;
use plumbline_record::{
    GateFailure, Run, RunDirectory, SearchGoal, SearchOutcome, SearchPurpose, SearchRecord,
    SearchTrial, Trial, TrialStatus, Warning,
};
use serde_json::Value;

const BLESS: &str = "PLUMBLINE_BLESS";

/// Cargo runs tests in the directory of their package. The path is not fixed at
/// compile time, because CI runs the same binary in a copy of the tree too.
fn checked_in(file: &str) -> PathBuf {
    PathBuf::from("../../docs/schema").join(file)
}

fn generated<T: schemars::JsonSchema>() -> Value {
    schemars::schema_for!(T).to_value()
}

#[track_caller]
fn assert_current(file: &str, schema: &Value) {
    let path = checked_in(file);
    let text = serde_json::to_string_pretty(schema).unwrap() + "\n";
    if std::env::var_os(BLESS).is_some() {
        fs::write(&path, &text).unwrap();
    }
    let standing = fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!("{} cannot be read: {error}", path.display());
    });
    assert!(
        standing == text,
        "{} is not the schema of the type; if the change is meant, set {BLESS}=1 and run again",
        path.display()
    );
}

#[track_caller]
fn assert_valid(schema: &Value, instance: &Value) {
    let validator = jsonschema::validator_for(schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(instance)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn the_schemas_are_current() {
    assert_current("run.schema.json", &generated::<Run>());
    assert_current("trial.schema.json", &generated::<Trial>());
    assert_current("search.schema.json", &generated::<SearchRecord>());
}

#[test]
fn real_files_keep_their_schema() {
    let parent = tempfile::tempdir().unwrap();
    let mut directory = RunDirectory::create(parent.path(), "sample", &sample::run(), &[]).unwrap();
    for n in 0..6 {
        directory.append(&sample::trial(n)).unwrap();
    }
    let mut failed = sample::trial(6);
    failed.observation = None;
    failed.status = TrialStatus::Failed {
        error: "the agent was killed".to_owned(),
    };
    failed.warnings.push(Warning::Steal { share: 0.25 });
    directory.append(&failed).unwrap();

    let run = fs::read(directory.path().join("run.json")).unwrap();
    assert_valid(&generated::<Run>(), &serde_json::from_slice(&run).unwrap());
    let trials = fs::read_to_string(directory.path().join("trials.jsonl")).unwrap();
    assert_eq!(trials.lines().count(), 7);
    for line in trials.lines() {
        assert_valid(&generated::<Trial>(), &serde_json::from_str(line).unwrap());
    }
}

/// A search of two trials.
fn search() -> SearchRecord {
    let trial = |purpose, rate, held| SearchTrial {
        purpose,
        rate,
        duration_ns: 1_000_000_000,
        loss_ratio: if held { 0.0 } else { 0.25 },
        held,
        generator: if held {
            Vec::new()
        } else {
            vec![GateFailure::GeneratorBusy {
                share: 0.95,
                limit: 0.7,
            }]
        },
        disturbed: Vec::new(),
        load: sample::load(3),
    };
    SearchRecord {
        workload: "rr".to_owned(),
        scene: Scene::of("host"),
        limit: "p99<1ms".parse().unwrap(),
        goal: SearchGoal {
            final_trial_ns: 1_000_000_000,
            duration_sum_ns: 5_000_000_000,
            loss_ratio: 0.0,
            exceed_ratio: 0.5,
            width: 0.05,
        },
        outcome: SearchOutcome::Found {
            lower_bound: 80_000.0,
            upper_bound: Some(82_000.0),
            conditional_throughput: 79_990.0,
            generator_limited: true,
        },
        trials: vec![
            trial(SearchPurpose::Ramp, 80_000.0, true),
            trial(SearchPurpose::Search, 82_000.0, false),
        ],
        failed: vec!["the agent on node2 ended".to_owned()],
    }
}

#[test]
fn searches_stand_beside_the_run_and_keep_their_schema() {
    let parent = tempfile::tempdir().unwrap();
    let search = search();
    let run = sample::run();
    let searched = [search.clone(), search];
    let with = RunDirectory::create(parent.path(), "with", &run, &searched).unwrap();
    let text = fs::read_to_string(with.path().join("searches.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 2);
    for line in text.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        assert_valid(&generated::<SearchRecord>(), &value);
        let read: SearchRecord = serde_json::from_value(value).unwrap();
        assert_eq!(read, searched[0]);
    }
    let without = RunDirectory::create(parent.path(), "without", &run, &[]).unwrap();
    assert!(!without.path().join("searches.jsonl").exists());
}

#[test]
fn a_file_of_another_shape_does_not_keep_the_schema() {
    let schema = generated::<Trial>();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let sound = serde_json::to_value(sample::trial(0)).unwrap();
    assert!(validator.is_valid(&sound));
    let mut without = sound.clone();
    without.as_object_mut().unwrap().remove("treatment");
    assert!(!validator.is_valid(&without));
    let mut wrong = sound;
    wrong["took_ns"] = Value::from("soon");
    assert!(!validator.is_valid(&wrong));
}
