//! A run is finished by the build that began it, unless it is said that builds
//! may be mixed.

use std::fs;

use serde_json::Value;

use crate::observed::{make_all_alike, ran_to_its_end};
use crate::world::{self, output, run_directory, stderr, stdout};

const ANOTHER: &str = "00000000000000000000000000000000000000000000000000000000000000ab";

#[test]
fn another_build_goes_on_only_when_told_to_and_tables_say_so() {
    let Some(_alone) = world::lab("another_build_goes_on_only_when_told_to_and_tables_say_so")
    else {
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let short = [
        "--network",
        "host,routed",
        "--workload",
        "rr",
        "--blocks",
        "2",
    ];
    let begin = [
        "run",
        "--out",
        out.path().to_str().unwrap(),
        "--duration",
        "50ms",
    ];
    let begun = output(&[&begin[..], &short[..]].concat());
    let directory = run_directory(out.path());
    let path = directory.to_str().unwrap();
    ran_to_its_end(&begun, &directory);

    // As if another program had begun it, and been cut off after a trial.
    let file = directory.join("run.json");
    let mut run: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let own = run["provenance"]["build"]["sha256"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(own.len(), 64);
    assert!(run["conditions"]["thresholds"]["rate_deviation"].is_f64());
    run["provenance"]["build"]["sha256"] = ANOTHER.into();
    fs::write(&file, run.to_string()).unwrap();
    let trials = directory.join("trials.jsonl");
    let text = fs::read_to_string(&trials).unwrap();
    let first = text.lines().next().unwrap();
    fs::write(&trials, format!("{first}\n")).unwrap();

    let refused = output(&["run", "--resume", path]);
    assert_eq!(refused.status.code(), Some(64));
    let why = stderr(&refused);
    assert!(
        why.contains(&ANOTHER[..12]) && why.contains("--mix-builds"),
        "{why}"
    );

    let mixed = output(&["run", "--resume", path, "--mix-builds"]);
    ran_to_its_end(&mixed, &directory);
    make_all_alike(&directory);
    let shown = stdout(&output(&["report", path]));
    assert!(shown.contains("2 builds of Plumbline"), "{shown}");
    let text = fs::read_to_string(&trials).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(last["build"]["sha256"], own.as_str());
}
