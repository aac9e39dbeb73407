//! `plumbline gate` with real plugins of CNI: the installed ones as base, and as head the same
//! with rules before every packet.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::observed::{blocks, every_treatment_carried_load, whole_lines};
use crate::tried::dead_end;
use crate::world::{
    self, CNI_PLUGINS, PATIENCE, Running, eventually, output, plumbline, run_directory, runs_in,
    stderr, stdout, trials,
};

/// The first look after 8 blocks of less than two seconds.
const SHORT: &[&str] = &["--rate", "2000", "--duration", "300ms"];

/// A slow build, and where its runs are.
struct Change(tempfile::TempDir);

impl Change {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let slow = scratch.path().join("slow");
        fs::create_dir(&slow).unwrap();
        fs::copy("tests/gate/slowed-bridge", slow.join("bridge")).unwrap();
        symlink(format!("{CNI_PLUGINS}/bridge"), slow.join("bridge-itself")).unwrap();
        Self(scratch)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// The gate of a directory of plugins against the installed ones: the first of two that
    /// decides, for a machine that is somebody else's may not show enough. `None`, and a
    /// counted skip, where none does.
    fn gate(&self, test: &str, head: &Path, more: &[&str]) -> Option<Output> {
        for _ in 0..2 {
            // The run of the one before.
            let _ = fs::remove_dir_all(self.path().join("out"));
            let gate = self.gate_once(head, more);
            if gate.status.code() != Some(2) {
                return Some(gate);
            }
            let said = stdout(&gate);
            assert!(said.starts_with("Whether cni:"), "{said}{}", stderr(&gate));
        }
        // One that never decides does not do so where the machine is quiet either.
        let trials = whole_lines(&run_directory(&self.path().join("out")));
        let counts = |trial: &&Value| trial["status"]["status"] == "valid";
        let (counted, of) = (trials.iter().filter(counts).count(), trials.len());
        assert!(
            2 * counted < of,
            "two gates were undecided, although {counted} of {of} trials count"
        );
        world::skip(test, "two gates were undecided on a busy machine");
        None
    }

    fn gate_once(&self, head: &Path, more: &[&str]) -> Output {
        plumbline(&["gate", "--base-cni-bin", CNI_PLUGINS, "--head-cni-bin"])
            .arg(head)
            .args(["--network", "cni:tests/gate/bridge.conflist", "--out"])
            .arg(self.path().join("out"))
            .args(SHORT)
            .args(more)
            .output()
            .expect("the program starts")
    }

    fn blocks(&self) -> BTreeSet<u64> {
        blocks(&run_directory(&self.path().join("out")))
    }
}

#[test]
fn a_slowed_build_of_a_plugin_is_worse() {
    let test = "a_slowed_build_of_a_plugin_is_worse";
    let Some(_alone) = world::lab_with_plugins(test, "nft") else {
        return;
    };
    let change = Change::new();
    let slow = change.path().join("slow");
    let [table, tests] = ["gate.md", "gate.xml"].map(|it| change.path().join(it));
    let files = [
        "--markdown",
        table.to_str().unwrap(),
        "--junit",
        tests.to_str().unwrap(),
    ];
    let limit = ["--limit", "p50=10%", "--budget", "90s"];
    let Some(gate) = change.gate(test, &slow, &[&files[..], &limit].concat()) else {
        return;
    };
    let (said, errors) = (stdout(&gate), stderr(&gate));
    assert_eq!(gate.status.code(), Some(1), "{said}{errors}");
    assert_eq!(said.trim_end().lines().count(), 1, "one sentence: {said}");
    assert!(said.contains("/slow is worse than cni:"), "{said}");
    assert!(said.contains("where 10 % is allowed"), "{said}");
    let table = fs::read_to_string(table).unwrap();
    assert!(table.contains("| 10 % | worse |"), "{table}");
    let tests = fs::read_to_string(tests).unwrap();
    assert!(tests.contains("failures=\"1\" errors=\"0\""), "{tests}");

    // An ordinary run, which ended at one of its looks.
    let run = run_directory(&change.path().join("out"));
    let recorded: Value =
        serde_json::from_str(&fs::read_to_string(run.join("run.json")).unwrap()).unwrap();
    let sequential = &recorded["plan"]["sequential"];
    let blocks = change.blocks().len();
    let looks = sequential["looks"].as_array().unwrap();
    assert!(
        looks.iter().any(|look| *look == blocks),
        "{blocks}: {looks:?}"
    );
    assert!(blocks < 100, "far from the end of its budget");
    let report = world::json(&["report", "--json", run.to_str().unwrap()]);
    assert_eq!(report["experiment"], "gate");
    assert_eq!(report["cut_off"], false);
    let compared = output(&["compare", run.to_str().unwrap()]);
    assert_eq!(compared.status.code(), Some(1), "{}", stdout(&compared));
}

#[test]
fn a_build_against_itself_is_not_worse() {
    let test = "a_build_against_itself_is_not_worse";
    let Some(_alone) = world::lab_with_plugins(test, "nft") else {
        return;
    };
    let change = Change::new();
    let limit = ["--limit", "p50=50%", "--budget", "30s"];
    let Some(gate) = change.gate(test, Path::new(CNI_PLUGINS), &limit) else {
        return;
    };
    let (said, errors) = (stdout(&gate), stderr(&gate));
    assert_eq!(gate.status.code(), Some(0), "{said}{errors}");
    assert!(said.contains("is not worse than cni:"), "{said}");
}

/// Two lists of plugins, as two branches have them.
#[test]
fn base_and_head_may_be_lists_of_plugins() {
    let test = "base_and_head_may_be_lists";
    let Some(_alone) = world::lab_with_plugins(test, "nft") else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let list = fs::read_to_string("tests/gate/bridge.conflist").unwrap();
    let lists = ["main", "pr"].map(|name| {
        let file = scratch.path().join(format!("{name}.conflist"));
        fs::write(&file, &list).unwrap();
        format!("cni:{}", file.display())
    });
    let out = scratch.path().join("out");
    let compared = ["gate", "--base", &lists[0], "--head", &lists[1]];
    let limit = ["--limit", "p50=50%", "--budget", "1s", "--out"];
    let gate = [&compared[..], SHORT, &limit, &[out.to_str().unwrap()]].concat();
    let gate = output(&gate);
    assert_eq!(gate.status.code(), Some(2), "{}", stderr(&gate));
    let said = stdout(&gate);
    assert!(said.contains("pr.conflist"), "{said}");
    every_treatment_carried_load(&run_directory(&out));
}

#[test]
fn a_budget_that_is_too_short_leaves_it_undecided_and_says_what_would_do() {
    let test = "a_budget_that_is_too_short";
    let Some(_alone) = world::lab(test) else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().to_str().unwrap();
    let networks = ["gate", "--base", "routed", "--head", "routed", "--out", out];
    let limit = ["--limit", "p50=50%", "--budget", "1s", "--json"];
    let tests = scratch.path().join("gate.xml");
    let file = ["--junit", tests.to_str().unwrap()];
    let gate = output(&[&networks[..], SHORT, &limit, &file].concat());
    assert_eq!(gate.status.code(), Some(2), "{}", stderr(&gate));
    assert!(tests.exists(), "by which it is told from an error");
    let answer: Value = serde_json::from_slice(&gate.stdout).unwrap();
    crate::documented::check("gate", &answer);
    assert_eq!(answer["verdict"], "undecided");
    let sentence = answer["sentence"].as_str().unwrap();
    let says = match answer["limits"][0]["overhead"].is_null() {
        // The machine was too busy for it, and that is said.
        true => "is not known (",
        false => "more would give an interval (--budget ",
    };
    assert!(sentence.contains(says), "{sentence}");
    // Each takes about a second, and none begins when the budget is spent.
    let blocks = blocks(&run_directory(scratch.path()));
    assert!((1..=2).contains(&blocks.len()), "{blocks:?}");
}

/// An error has the exit code of what is undecided. By the file that it does not leave,
/// services tell them apart (docs/ci.md).
#[test]
fn a_head_that_carries_nothing_is_an_error_and_leaves_no_file() {
    let Some(_alone) = world::lab("a_head_that_carries_nothing") else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let dead = dead_end(scratch.path());
    let path = scratch.path().to_str().unwrap();
    let tests = scratch.path().join("gate.xml");
    let networks = ["gate", "--base", "routed", "--head", &dead];
    let places = ["--cni-bin", path, "--out", path];
    let limit = ["--limit", "p50=50%", "--budget", "1s"];
    let file = ["--junit", tests.to_str().unwrap()];
    let gate = output(&[&networks[..], &places, SHORT, &limit, &file].concat());
    let said = stderr(&gate);
    assert_eq!(gate.status.code(), Some(2), "{said}");
    let sentence = format!("{dead} could not carry a packet: ");
    assert_eq!(said.matches(&sentence).count(), 1, "{said}");
    assert_eq!(stdout(&gate), "");
    assert!(!tests.exists());
}

/// What a change broke is no part of the rest that could pass.
#[test]
fn a_head_that_carries_one_workload_of_two_is_an_error() {
    const DEAF: &str = r#"#!/bin/sh
set -e
"$(dirname "$0")/bridge-itself"
if [ "$CNI_COMMAND" = ADD ]; then
    in_pod() { nsenter --net="$CNI_NETNS" nft "$@"; }
    in_pod add table ip deaf
    in_pod 'add chain ip deaf in { type filter hook input priority 0; }'
    in_pod add rule ip deaf in meta l4proto udp drop
fi
"#;
    let test = "a_head_that_carries_one_workload_of_two_is_an_error";
    let Some(_alone) = world::lab_with_plugins(test, "nft") else {
        return;
    };
    let change = Change::new();
    let head = change.path().join("slow");
    fs::write(head.join("bridge"), DEAF).unwrap();
    let tests = change.path().join("gate.xml");
    let file = ["--junit", tests.to_str().unwrap()];
    let both = ["--set", "workload.protocol=tcp,udp"];
    let limit = ["--limit", "p50=50%", "--budget", "20s"];
    let gate = change.gate_once(&head, &[&both[..], &limit, &file].concat());
    let said = stderr(&gate);
    assert_eq!(gate.status.code(), Some(2), "{said}");
    assert!(said.contains("could not carry a packet: "), "{said}");
    assert_eq!(stdout(&gate), "");
    assert!(!tests.exists());
}

/// What the program says of a gate that was cut off is typed as it stands.
#[test]
fn a_gate_that_was_cut_off_goes_on_as_a_gate() {
    let Some(_alone) = world::lab("a_gate_that_was_cut_off") else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().to_str().unwrap();
    let networks = ["gate", "--base", "routed", "--head", "routed+100us"];
    let limit = ["--limit", "p50=10%", "--budget", "1m", "--out", out];
    let mut gate = Running::start(&[&networks[..], SHORT, &limit].concat());
    eventually("a trial has ended", PATIENCE, || {
        let mut runs = runs_in(scratch.path()).into_iter();
        runs.any(|run| trials(&run) > 0)
    });
    gate.signal(Signal::SIGINT);
    assert_eq!(gate.wait(PATIENCE), Some(2));
    let said = gate.said();
    let mut hints = said
        .lines()
        .filter_map(|line| line.split_once("To go on: "));
    let (_, typed) = hints.next().unwrap_or_else(|| panic!("no hint: {said}"));
    let words: Vec<&str> = typed.split_whitespace().skip(1).collect();
    let resumed = output(&words);
    let said = stdout(&resumed);
    // Where the machine was too busy, that is no verdict.
    let code = match said.starts_with("Whether routed+100us is worse than routed is undecided") {
        true => 2,
        false => 1,
    };
    assert_eq!(resumed.status.code(), Some(code), "{typed}: {said}");
    assert!(said.contains(" is worse than routed"), "{typed}: {said}");
}

/// Starts a gate in whose run directory this file has no place: a directory has it, which no file
/// can take.
fn without_place(file: &str, out: &Path, words: &[&str]) -> Running {
    let gate = Running::start(words);
    eventually("the run has a directory", PATIENCE, || {
        !runs_in(out).is_empty()
    });
    fs::create_dir_all(run_directory(out).join(file).join("taken")).unwrap();
    gate
}

/// The verdict is not lost with what was to be shown beside it.
#[test]
fn an_error_beside_a_gate_is_said_behind_its_verdict() {
    let Some(_alone) = world::lab("an_error_beside_a_gate") else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    let tests = scratch.path().join("gate.xml");
    let networks = ["gate", "--base", "routed", "--head", "host-gw", "--xray"];
    let limit = ["--limit", "p50=50%", "--budget", "1s", "--out"];
    let places = [out.to_str().unwrap(), "--junit", tests.to_str().unwrap()];
    let mut gate = without_place(
        "hops.json",
        &out,
        &[&networks[..], SHORT, &limit, &places].concat(),
    );
    // What xray looks at takes longer than the gate.
    let code = gate.wait(4 * PATIENCE);
    let said = gate.said();
    assert_eq!(code, Some(2), "{said}");
    let last = said.trim_end().lines().last().unwrap_or_default();
    assert!(last.starts_with("plumbline: "), "{said}");
    assert!(tests.exists(), "{said}");
}

/// Neither the verdict nor other files are lost with one that cannot be written.
#[test]
fn a_file_that_cannot_be_written_leaves_the_verdict() {
    let Some(_alone) = world::lab("a_file_that_cannot_be_written") else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    let [table, tests] = ["nowhere/gate.md", "gate.xml"].map(|it| scratch.path().join(it));
    let networks = ["gate", "--base", "routed", "--head", "routed+100us"];
    let limit = ["--limit", "p50=10%", "--budget", "1m", "--out"];
    let places = [out.to_str().unwrap(), "--junit", tests.to_str().unwrap()];
    let table = ["--markdown", table.to_str().unwrap()];
    let mut gate = without_place(
        "report.html",
        &out,
        &[&networks[..], SHORT, &limit, &places, &table].concat(),
    );
    let code = gate.wait(4 * PATIENCE);
    let said = gate.said();
    let tests = fs::read_to_string(&tests).unwrap_or_else(|error| panic!("{error}: {said}"));
    // Where the machine was too busy, that is no verdict.
    let verdict = match tests.contains("failures=\"1\"") {
        true => 1,
        false => 2,
    };
    assert_eq!(code, Some(verdict), "{said}");
    let last = said.trim_end().lines().rev();
    for (line, file) in last.zip(["gate.md", "report.html"]) {
        assert!(line.starts_with("plumbline: "), "{said}");
        assert!(line.contains(file), "{said}");
    }
}

/// A run that could not go on says nothing of its head, whatever its trials show so far.
#[test]
fn a_gate_that_ends_in_an_error_has_no_verdict() {
    let Some(_alone) = world::lab("a_gate_that_ends_in_an_error") else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let tests = scratch.path().join("gate.xml");
    let networks = ["gate", "--base", "routed", "--head", "host-gw"];
    let limit = ["--limit", "p50=50%", "--budget", "1m"];
    let file = ["--junit", tests.to_str().unwrap(), "--out"];
    let gate = plumbline(&[&networks[..], SHORT, &limit, &file].concat());
    // The disk is full, as far as the program can tell.
    let script = "trap '' XFSZ; ulimit -f 128; exec \"$@\"";
    let gate = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(gate.get_program())
        .args(gate.get_args())
        .arg(scratch.path())
        .output()
        .expect("there is a shell");
    let said = stderr(&gate);
    assert_eq!(gate.status.code(), Some(2), "{said}");
    assert!(
        said.contains("a finished trial could not be written"),
        "{said}"
    );
    assert!(
        said.contains("To go on: plumbline gate --resume "),
        "{said}"
    );
    assert_eq!(stdout(&gate), "");
    assert!(!tests.exists());
}

/// The workflow files on the page.
fn workflows() -> Vec<Value> {
    let page = fs::read_to_string("docs/ci.md").unwrap();
    let blocks = page.split("```yaml\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().unwrap());
    let read = |text: &str| serde_saphyr::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    blocks.map(read).collect()
}

/// What a command in a shell script of a workflow says after `gate`.
fn gate_in(script: &str) -> Vec<&str> {
    let (_, command) = script.split_once("plumbline gate ").expect("it has a gate");
    let command = command.split("||").next().unwrap();
    let words = command.split_whitespace();
    words.filter(|word| *word != "\\").collect()
}

/// The program knows what it is told. That the services read the files is shown by
/// `.ci/workflows`, with their own schemas.
#[test]
fn the_workflow_files_on_the_page_are_read_by_their_services() {
    let [github, gitlab] = &workflows()[..] else {
        panic!("one for each service");
    };
    let job = &github["jobs"]["gate"];
    assert!(github["on"].is_string() && job["runs-on"].is_string());
    let steps = job["steps"].as_array().unwrap();
    for step in steps {
        assert!(
            step["uses"].is_string() != step["run"].is_string(),
            "{step}"
        );
    }
    let mut scripts = steps.iter().filter_map(|it| it["run"].as_str());
    let of_github = scripts.find(|it| it.contains("plumbline gate")).unwrap();

    let job = &gitlab["network-cost"];
    let script: Vec<&str> = job["script"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap())
        .collect();
    let of_gitlab = script
        .iter()
        .find(|it| it.contains("plumbline gate"))
        .unwrap();
    assert_eq!(job["allow_failure"]["exit_codes"], 2);
    let tests = &job["artifacts"]["reports"]["junit"];

    for command in [of_github, of_gitlab] {
        let typed = gate_in(command);
        assert!(typed.contains(&tests.as_str().unwrap()), "{typed:?}");
        // The command line is understood, and the experiment is none.
        let words = [&["gate", "no-such-experiment"], &typed[..]].concat();
        let refused = output(&words);
        let said = stderr(&refused);
        assert!(
            said.contains("`no-such-experiment` is neither"),
            "{words:?}: {said}"
        );
    }
}
