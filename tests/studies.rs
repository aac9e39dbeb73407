//! What studies are repeated with: nginx as the server, published tables beside
//! a run, and any network of a run as the reference.

use std::path::Path;

use serde_json::Value;

use crate::left::{MARK, marked};
use crate::observed;
use crate::world::{self, json, output, plumbline, run_directory, stderr, stdout};

const SHORT: [&str; 8] = [
    "--blocks",
    "2",
    "--duration",
    "80ms",
    "--set",
    "design.warm_up=20ms",
    "--seed",
    "5",
];

/// Finished trials of a run.
fn trials(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("trials.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn nginx_answers_where_an_experiment_asks_for_it_and_leaves_nothing() {
    let test = "nginx_answers_where_an_experiment_asks_for_it_and_leaves_nothing";
    let Some(_alone) = world::lab(test) else {
        return;
    };
    let (out, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mark = format!("nginx-{}", std::process::id());
    let result = plumbline(&[
        "run",
        "http",
        "--network",
        "host-gw",
        "--set",
        "workload.server=nginx",
    ])
    .args(["--out", out.path().to_str().unwrap(), "--json"])
    .args(SHORT)
    .env("TMPDIR", temporary.path())
    .env(MARK, &mark)
    .output()
    .expect("the program starts");
    if result.status.code() == Some(2) && stderr(&result).contains("install the package `nginx`") {
        let runs = world::runs_in(out.path());
        assert!(runs.is_empty(), "refused before the run: {runs:?}");
        world::skip(test, "nginx is not installed");
        return;
    }
    let run = run_directory(out.path());
    observed::ran_to_its_end(&result, &run);
    let trials = trials(&run);
    let failed = |trial: &&Value| trial["status"]["status"] == "failed";
    assert_eq!(trials.iter().find(failed), None);
    let answered = |trial: &Value| trial["observation"]["what"]["serve"]["server"].clone();
    for trial in &trials {
        let name = answered(trial);
        assert!(name.as_str().unwrap().starts_with("nginx/"), "{name}");
        let (load, serve) = (
            &trial["observation"]["what"]["load"],
            &trial["observation"]["what"]["serve"],
        );
        let completed = load["completed"].as_u64().unwrap();
        assert!(completed > 0, "{trial}");
        // Warm-up and window, as nginx itself counted them.
        assert!(serve["requests"].as_u64().unwrap() >= completed, "{trial}");
        assert_eq!(load["errors"]["corrupt"], 0, "the body is checked: {trial}");
        let cpu = &trial["observation"]["what"]["server_cpu"];
        let used = cpu["user_ns"].as_u64().unwrap() + cpu["system_ns"].as_u64().unwrap();
        assert!(used > 0, "{trial}");
    }
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
    world::eventually("no process is left", world::PATIENCE, || {
        marked(&mark).is_empty()
    });
}

#[test]
fn a_study_is_beside_the_run_and_any_network_can_be_the_reference() {
    let Some(_alone) = world::lab("a_study_is_beside_the_run_and_any_network_can_be_the_reference")
    else {
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let mut arguments = vec!["run", "machinezone-2016", "--network", "host-gw,vxlan"];
    arguments.extend(["--rate", "2000", "--out", out.path().to_str().unwrap()]);
    // Its own nginx is not installed everywhere.
    arguments.extend(["--set", "workload.server=plumbline"]);
    arguments.extend(SHORT);
    let result = output(&arguments);
    let run = run_directory(out.path());
    observed::ran_to_its_end(&result, &run);
    observed::make_all_alike(&run);
    let path = run.to_str().unwrap();
    let report = json(&["report", path, "--json"]);
    let published = &report["published"];
    assert_eq!(published["author"], "MachineZone", "{published}");
    assert_eq!(published["tables"].as_array().unwrap().len(), 4);
    let rows = published["tables"][0]["rows"].as_array().unwrap();
    let networks: Vec<&str> = rows
        .iter()
        .map(|row| row["network"].as_str().unwrap())
        .collect();
    assert_eq!(networks, ["host", "host-gw", "vxlan"]);
    assert!(
        stdout(&result).contains("MachineZone (2016)"),
        "{}",
        stdout(&result)
    );

    let against = json(&["report", path, "--json", "--baseline", "host-gw"]);
    let comparisons = against["comparisons"].as_array().unwrap();
    assert!(!comparisons.is_empty());
    assert!(
        comparisons.iter().all(|one| one["baseline"] == "host-gw"),
        "{against}"
    );
    assert!(
        comparisons.iter().any(|one| one["treatment"] == "host"),
        "{against}"
    );
    let unknown = output(&["report", path, "--baseline", "ipip"]);
    assert_eq!(unknown.status.code(), Some(64));
    assert!(
        stderr(&unknown).contains("it has host, host-gw, vxlan"),
        "{}",
        stderr(&unknown)
    );
}
