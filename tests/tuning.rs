//! `plumbline run tuning`, from the command to what is said of each setting.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::observed::{ran_to_its_end, whole_lines};
use crate::world::{plumbline, run_directory};

const EXPERIMENT: &str = include_str!("../experiments/tuning.toml");

const SHORT: &str = "--workload rr --rate 500 --duration 40ms --blocks 2 --set design.retries=0";

#[test]
fn each_setting_stands_beside_the_network_as_it_is() {
    let out = tempfile::tempdir().unwrap();
    let mut command = plumbline(&["run", "tuning", "--out", out.path().to_str().unwrap()]);
    let result = command.args(SHORT.split(' ')).output().unwrap();
    let run = run_directory(out.path());
    ran_to_its_end(&result, &run);
    let record = std::fs::read_to_string(run.join("run.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();

    let treatments = record["plan"]["treatments"].as_array().unwrap();
    let label = |of: &Value| of["label"].as_str().unwrap().to_owned();
    let of_label = |wanted: &str| treatments.iter().position(|it| label(it) == wanted);
    let plain = of_label("vxlan").expect("the network as it is");
    let sections = EXPERIMENT.lines();
    let settings: Vec<&str> = sections
        .filter_map(|it| it.strip_prefix("[network.")?.strip_suffix(']'))
        .collect();
    assert_eq!(settings.len(), 12);
    let mut tried = BTreeSet::new();
    for setting in &settings {
        match of_label(&format!("vxlan+{setting}")) {
            Some(treatment) => {
                assert_eq!(treatments[treatment]["baseline"], plain, "{setting}");
                tried.insert(treatment as u64);
            }
            // What is missing here is said by name.
            None => assert!(
                record["warnings"].to_string().contains(setting),
                "{setting}: {}",
                record["warnings"]
            ),
        }
    }
    assert!(tried.len() >= 8, "{} of 12 are tried", tried.len());

    let answered = whole_lines(&run).into_iter().filter(|it| {
        let load = &it["observation"]["what"]["load"];
        load["completed"].as_u64().is_some_and(|count| count > 0)
    });
    let answered: BTreeSet<u64> = answered
        .map(|it| it["treatment"].as_u64().unwrap())
        .collect();
    assert!(answered.is_superset(&tried), "{answered:?} of {tried:?}");
}
