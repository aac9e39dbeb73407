//! Networks through which no packet gets: one try, one sentence.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

use crate::observed::ran_to_its_end;
use crate::world::{self, output, stderr, stdout};

/// Gives a pod an interface and an address, and no route to anywhere.
const PLUGIN: &str = r#"#!/bin/sh
set -e
case $CNI_COMMAND in
VERSION) echo '{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}' ;;
ADD)
    address=198.19.77.${CNI_CONTAINERID#plumbline-pod}/32
    in_pod() { nsenter --net="$CNI_NETNS" ip "$@"; }
    in_pod link add eth0 type veth peer name aside
    in_pod link set aside up
    in_pod address add "$address" dev eth0
    in_pod link set eth0 up
    echo '{"cniVersion": "1.0.0", "ips": [{"address": "'"$address"'"}]}'
    ;;
esac
"#;

/// What is said of it, up to the reason.
const SENTENCE: &str = "could not carry a packet: ";

/// A list that names the plugin; gives it as a network.
pub(crate) fn dead_end(directory: &Path) -> String {
    let plugin = directory.join("dead-end");
    fs::write(&plugin, PLUGIN).unwrap();
    fs::set_permissions(&plugin, fs::Permissions::from_mode(0o755)).unwrap();
    let list = directory.join("dead-end.conflist");
    let text = r#"{"cniVersion": "1.0.0", "name": "dead", "plugins": [{"type": "dead-end"}]}"#;
    fs::write(&list, text).unwrap();
    format!("cni:{}", list.display())
}

/// A short run with the plugin at hand.
pub(crate) fn run<'a>(directory: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["run", "--out", directory, "--cni-bin", directory];
    arguments.extend(["--json", "--blocks", "2", "--duration", "60ms"]);
    arguments.extend(["--set", "design.warm_up=20ms"]);
    arguments.extend(more);
    arguments
}

fn read(run: &Path, file: &str) -> String {
    fs::read_to_string(run.join(file)).unwrap()
}

/// The networks that a run has planned and those that it says carry nothing, and that no
/// trial met that one.
fn planned(run: &Path, dead: &str) -> Vec<String> {
    let recorded: Value = serde_json::from_str(&read(run, "run.json")).unwrap();
    let warnings = recorded["warnings"].as_array().unwrap();
    let said = |it: &&Value| it["warning"] == "carries-nothing";
    let said: Vec<&Value> = warnings.iter().filter(said).collect();
    assert_eq!(said.len(), 1, "{warnings:?}");
    assert_eq!(said[0]["network"], dead);
    let trials = read(run, "trials.jsonl");
    assert!(trials.lines().count() > 0);
    assert!(!trials.contains("nreachable"), "{trials}");
    let treatments = recorded["plan"]["treatments"].as_array().unwrap();
    let mut names: Vec<String> = treatments
        .iter()
        .map(|it| it["network"].as_str().unwrap().to_owned())
        .collect();
    names.dedup();
    names
}

/// What was measured, by block and treatment, however often each was tried: that is up to
/// the machine.
fn done(trials: &str) -> BTreeSet<(u64, Option<u64>)> {
    let trial = |line: &str| {
        let trial: Value = serde_json::from_str(line).unwrap();
        (
            trial["block"].as_u64().unwrap(),
            trial["treatment"].as_u64(),
        )
    };
    trials.lines().map(trial).collect()
}

#[test]
fn what_carries_nothing_is_left_out_and_said_and_stays_left_out() {
    let Some(_alone) = world::lab("what_carries_nothing_is_left_out") else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let dead = dead_end(scratch.path());
    let networks = format!("routed,{dead}");
    let path = scratch.path().to_str().unwrap();
    let ran = output(&run(path, &["--network", &networks]));
    let run = world::runs_in(scratch.path()).remove(0);
    ran_to_its_end(&ran, &run);
    let said = stdout(&ran);
    assert!(said.contains(SENTENCE), "{said}{}", stderr(&ran));
    assert!(said.contains("etwork is unreachable"), "{said}");
    assert!(!planned(&run, &dead).contains(&dead));

    // Without the last trial the run is cut off.
    let trials = read(&run, "trials.jsonl");
    let whole = trials.trim_end().rfind('\n').unwrap();
    fs::write(run.join("trials.jsonl"), &trials[..=whole]).unwrap();
    let resumed = run.to_str().unwrap();
    let resumed = output(&["run", "--json", "--resume", resumed, "--cni-bin", path]);
    ran_to_its_end(&resumed, &run);
    let said = stdout(&resumed);
    assert!(said.contains(SENTENCE), "{said}{}", stderr(&resumed));
    assert!(!planned(&run, &dead).contains(&dead));
    assert_eq!(done(&read(&run, "trials.jsonl")), done(&trials));
}

#[test]
fn a_run_without_anything_to_compare_ends_with_the_sentence() {
    let Some(_alone) = world::lab("a_run_without_anything_to_compare") else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let dead = dead_end(scratch.path());
    let path = scratch.path().to_str().unwrap();
    let as_baseline = ["--network", "routed", "--baseline", &dead];
    for asked in [&["--network", &*dead][..], &as_baseline] {
        let ran = output(&run(path, asked));
        let said = stderr(&ran);
        assert_eq!(ran.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("{dead} {SENTENCE}")), "{said}");
        assert_eq!(said.matches(SENTENCE).count(), 1, "{said}");
        assert_eq!(
            world::runs_in(scratch.path()),
            Vec::<std::path::PathBuf>::new()
        );
    }
}
