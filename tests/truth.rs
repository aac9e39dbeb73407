//! The scripts of the proof: they give flags that the program has, and read what it writes. What
//! they find is up to the machine, and not looked at.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::world::{self, is_installed, run_directory, skip, stderr, stdout};

/// Runs a script. Every trial counts of what it measures, whatever the machine is busy with; the
/// runs stay below `kept`.
fn script(name: &str, arguments: &[&str], kept: &Path) -> Output {
    let mut command = Command::new(name);
    command
        .args(arguments)
        .env("PLUMBLINE", world::plumbline(&[]).get_program())
        .env("KEPT", kept);
    command.output().expect("the script starts")
}

/// The cells of each row of the table that begins with this column.
fn rows<'a>(printed: &'a str, column: &str) -> Vec<Vec<&'a str>> {
    let head = format!("| {column} |");
    let table = printed.lines().skip_while(|line| !line.starts_with(&head));
    let rows = table.skip(2).map_while(|line| line.strip_prefix("| "));
    rows.map(|row| row.trim_end_matches(" |").split(" | ").collect())
        .collect()
}

/// These metrics have so many rows each, with a width in this cell. That of the whole machine's CPU
/// has steps of 10 ms, in which so short a trial may have worked for no time.
#[track_caller]
fn have_widths(rows: &[Vec<&str>], count: usize, cell: usize) {
    for metric in ["p50", "CPU of the processes per request"] {
        let own = rows.iter().filter(|row| row.contains(&metric));
        let widths = own.filter(|row| row[cell].contains('±')).count();
        assert_eq!(widths, count, "{metric}: {rows:?}");
    }
}

/// They come to every second run, and what they change is told.
#[track_caller]
fn strangers_come(flags: &str, kept: &Path) {
    let networks = format!("{flags} --network host,host-gw");
    let parts = ["strangers", "--runs", "3"];
    let program = ["--plumbline", "tests/truth/all-count", "--flags", &networks];
    let truth = script("scripts/truth", &[&parts[..], &program].concat(), kept);
    let (tables, errors) = (stdout(&truth), stderr(&truth));
    // 1: others have changed more than by chance, or the machine has.
    let is_told = matches!(truth.status.code(), Some(0 | 1));
    assert!(is_told, "{tables}, {errors}");
    let compared = rows(&tables, "runs compared");
    assert_eq!(compared.len(), 2, "{tables}, {errors}");
    for row in compared {
        assert!(row[1] != "0" && row[4].contains('±'), "{tables}");
    }
    let (_, came) = tables.split_once("strangers that came in a run: ").unwrap();
    assert!(!came.starts_with("0 "), "{tables}, {errors}");
    assert!(came.contains("\nas many beyond by chance: "), "{came}");
}

#[test]
fn the_scripts_of_the_proof_read_what_is_written() {
    let test = "the_scripts_of_the_proof_read_what_is_written";
    let Some(_alone) = world::lab(test) else {
        return;
    };
    if let Some(absent) = ["python3", "jq"].into_iter().find(|it| !is_installed(it)) {
        return skip(test, &format!("no {absent}"));
    }
    let kept = tempfile::tempdir().unwrap();
    let flags = "--control off --blocks 6 --duration 30ms --set design.retries=0";
    let parts = ["null", "planted", "modes", "--runs", "1"];
    let program = ["--plumbline", "tests/truth/all-count", "--flags", flags];
    let truth = script(
        "scripts/truth",
        &[&parts[..], &program].concat(),
        kept.path(),
    );
    assert!(truth.status.success(), "{}", stderr(&truth));
    let tables = stdout(&truth);
    let null = rows(&tables, "runs with intervals");
    assert!(null.len() == 1 && null[0][0] == "1", "{tables}");
    have_widths(&rows(&tables, "planted"), 2, 6);
    have_widths(&rows(&tables, "network"), 3, 2);

    if nix::unistd::geteuid().is_root() {
        for protocol in ["tcp", "udp"] {
            strangers_come(
                &format!("{flags} --set workload.protocol={protocol}"),
                kept.path(),
            );
        }
    }

    let outs = fs::read_dir(kept.path()).unwrap();
    let mut runs = outs.map(|out| run_directory(&out.unwrap().path()));
    let has_chain = |run: &Path| {
        let text = fs::read_to_string(run.join("run.json")).unwrap();
        text.contains("\"vxlan\"")
    };
    let run = runs.find(|run| has_chain(run)).expect("`modes` takes it");
    let order = script(".ci/order", &[run.to_str().unwrap()], kept.path());
    // 1: one of them is not shown, or not so.
    let is_judged = matches!(order.status.code(), Some(0 | 1));
    assert!(is_judged, "{}", stderr(&order));
    let judged = stdout(&order);
    for pair in ["host <= routed", "routed <= host-gw", "host-gw <= vxlan"] {
        let said = judged.split_once(&format!(" {pair}: p50 "));
        let said = said.and_then(|(_, rest)| rest.split_once(", CPU per request "));
        let (p50, _) = said.unwrap_or_else(|| panic!("{pair}: {judged}"));
        let verdict = p50.split(' ').next().unwrap_or_default();
        let is_verdict = matches!(verdict, "better" | "worse" | "equivalent" | "undecided");
        assert!(is_verdict, "{judged}");
    }
    assert!(judged.ends_with(" 2 skipped\n"), "{judged}");
}

/// Four of eight that drank tea with milk first, of which the lady named so many (Fisher, The Design
/// of Experiments, § 5); then more figures.
#[test]
fn a_share_that_is_larger_by_more_than_chance_is_told() {
    if !is_installed("python3") {
        return skip(
            "a_share_that_is_larger_by_more_than_chance_is_told",
            "no python3",
        );
    }
    for (counts, percent) in [
        ("4, 4, 0, 4", "1.43"),
        ("3, 4, 1, 4", "24.29"),
        ("0, 4, 0, 4", "100.00"),
        ("0, 0, 0, 0", "100.00"),
        ("30, 100, 8, 100", "0.01"),
    ] {
        let asked = format!(
            "import runpy; ours = runpy.run_path('scripts/truth'); \
             print(f'{{100 * ours[\"by_chance\"]({counts}):.2f}}')"
        );
        let told = Command::new("python3").args(["-c", &asked]).output();
        let told = told.expect("python3 starts");
        assert_eq!(stdout(&told).trim(), percent, "{counts}: {}", stderr(&told));
    }
}

#[test]
fn a_short_soak_holds_its_connections_and_reads_what_a_load_tells() {
    let test = "a_short_soak_holds_its_connections_and_reads_what_a_load_tells";
    let Some(_alone) = world::lab(test) else {
        return;
    };
    if !is_installed("jq") {
        return skip(test, "no jq");
    }
    let program = world::plumbline(&[]).get_program().to_owned();
    let soak = Command::new("scripts/soak")
        .arg(program)
        .args(["2", "100", "4"])
        .output();
    let soak = soak.expect("the script starts");
    let (told, errors) = (stdout(&soak), stderr(&soak));
    assert!(soak.status.success(), "{told}, {errors}");
    let load = &told[told.find('{').expect("what the load tells")..];
    let mut load = serde_json::Deserializer::from_str(load).into_iter::<Value>();
    let load = load.next().expect("what the load tells").unwrap();
    for key in [
        "requests",
        "errors",
        "censored",
        "achieved_rate",
        "warnings",
    ] {
        assert!(!load[key].is_null(), "{key}: {load}");
    }
}
