//! `plumbline run` with loads that are shares of a measured maximum.

use serde_json::Value;

use crate::observed;
use crate::world::{self, output, run_directory, stderr, stdout};

/// Short trials of two networks at two shares. The limit is one that a busy
/// machine holds too, where a latency would be a matter of luck.
const EXPERIMENT: &str = r#"
name = "shares"
[factors]
network = ["host", "host-gw"]
load = ["30%", "50%"]
[[workload]]
kind = "rr"
connections = 4
limit = "loss<5%"
[design]
blocks = 1
duration = "100ms"
warm_up = "20ms"
"#;

/// Fields of one kind over the treatments of a run, by network and share.
fn rates(run: &Value) -> Vec<(String, String, f64)> {
    let treatments = run["plan"]["treatments"].as_array().unwrap();
    let of = |treatment: &Value| {
        let workload = &treatment["workload"];
        (
            treatment["network"].as_str().unwrap().to_owned(),
            workload["name"].as_str().unwrap().to_owned(),
            workload["arrival"]["rate"].as_f64().unwrap(),
        )
    };
    treatments.iter().map(of).collect()
}

#[test]
fn shares_of_a_maximum_go_from_search_to_report() {
    let Some(_alone) = world::lab("shares_of_a_maximum_go_from_search_to_report") else {
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("shares.toml");
    std::fs::write(&file, EXPERIMENT).unwrap();
    let runs = out.path().join("runs");
    let (file, into) = (file.to_str().unwrap(), runs.to_str().unwrap());
    let run = || output(&["run", file, "--out", into, "--json", "--seed", "42"]);
    let mut result = run();
    for _ in 0..4 {
        if !world::runs_in(&runs).is_empty() {
            break;
        }
        // On a machine that others use a low load may not be flawless (Q-6).
        let said = stderr(&result);
        assert!(said.contains("has no maximum"), "{said}");
        result = run();
    }
    let directory = run_directory(&runs);
    observed::ran_to_its_end(&result, &directory);
    assert_eq!(observed::every_treatment_carried_load(&directory), 4);

    // One search, with every trial of it.
    let text = std::fs::read_to_string(directory.join("searches.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 1);
    let search: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&search["network"], &search["limit"]),
        (&"host".into(), &"loss<5%".into())
    );
    let trials = search["trials"].as_array().unwrap();
    let seeds: Vec<u64> = trials
        .iter()
        .map(|trial| trial["load"]["seed"].as_u64().unwrap())
        .collect();
    let counted: Vec<u64> = (42..).take(trials.len()).collect();
    assert_eq!(seeds, counted, "--seed decides the arrivals of each trial");
    for purpose in ["path", "ramp", "floor", "search"] {
        assert!(
            trials.iter().any(|trial| trial["purpose"] == purpose),
            "{purpose}"
        );
    }
    assert_eq!(
        trials.len(),
        stderr(&result)
            .lines()
            .filter(|line| line.starts_with("  "))
            .count(),
        "each trial is told: {}",
        stderr(&result)
    );

    // Both networks carry the same share of it.
    let run = std::fs::read_to_string(directory.join("run.json")).unwrap();
    let run: Value = serde_json::from_str(&run).unwrap();
    let maximum = run["maxima"][0]["rate"].as_f64().unwrap();
    assert_eq!(search["outcome"]["conditional_throughput"], maximum);
    for (network, name, rate) in rates(&run) {
        let share = if name.ends_with("30%") { 0.3 } else { 0.5 };
        assert!(
            (rate / maximum - share).abs() < 1e-9,
            "{network} {name}: {rate} of {maximum}"
        );
    }

    // It is said, with the floor, wherever results are shown.
    let report: Value = serde_json::from_slice(&result.stdout).unwrap();
    assert_eq!(report["maxima"][0]["rate"], maximum);
    assert!(
        report["floor_ns"]["p50"].as_u64().unwrap() > 1_000,
        "{report}"
    );
    let path = directory.to_str().unwrap();
    for format in ["html", "markdown"] {
        let page = stdout(&output(&["report", path, "--format", format]));
        let page = page
            .replace("&#60;", "<")
            .replace("&lt;", "<")
            .replace('\\', "");
        assert!(
            page.contains("maximum of rr with loss<5% on host"),
            "{format}: {page}"
        );
    }
    let table = stdout(&output(&["report", path]));
    let table = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        table.contains("maximum of rr with loss<5% on host"),
        "{table}"
    );
    assert!(table.contains("The generator itself takes"), "{table}");
}

#[test]
fn a_search_without_a_maximum_leaves_every_trial() {
    let Some(_alone) = world::lab("a_search_without_a_maximum_leaves_every_trial") else {
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("shares.toml");
    let impossible = EXPERIMENT.replace("loss<5%", "p50<1us");
    std::fs::write(&file, impossible).unwrap();
    let runs = out.path().join("runs");
    let (file, into) = (file.to_str().unwrap(), runs.to_str().unwrap());
    let result = output(&["run", file, "--out", into]);
    assert_eq!(result.status.code(), Some(2), "{}", stderr(&result));
    assert_eq!(world::runs_in(&runs), Vec::<std::path::PathBuf>::new());

    let mut left = std::fs::read_dir(&runs).unwrap();
    let kept = left.next().expect("the record of the search").unwrap();
    assert!(left.next().is_none());
    let told = stderr(&result);
    assert!(told.contains("has no maximum with p50<1us"), "{told}");
    assert!(told.contains(kept.path().to_str().unwrap()), "{told}");
    let text = std::fs::read_to_string(kept.path()).unwrap();
    let search: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(search["outcome"]["outcome"], "broken-path");
    let trials = search["trials"].as_array().unwrap();
    assert!(!trials.is_empty());
    assert!(trials.iter().all(|trial| trial["held"] == false), "{text}");
}
