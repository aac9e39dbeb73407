//! Real runs over real networks, short.

use std::collections::BTreeSet;
use std::path::Path;

use plumbline_record::RunDirectory;
use serde_json::Value;

use crate::observed;
use crate::world::{self, json, output, run_directory, stderr, stdout};

/// A short experiment: enough blocks to judge nothing, but all of the way.
const SHORT: &[&str] = &[
    "--blocks",
    "2",
    "--duration",
    "60ms",
    "--set",
    "design.warm_up=20ms",
    "--seed",
    "5",
];

fn run<'a>(out: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["run", "--out", out.to_str().unwrap()];
    arguments.extend(more);
    arguments.extend(SHORT);
    arguments
}

/// What is reported of a run that was asked for JSON once all its trials count, which is up to
/// the machine.
#[track_caller]
fn report(out: &std::path::Path, more: &[&str]) -> Value {
    let result = output(&run(out, more));
    let directory = run_directory(out);
    observed::ran_to_its_end(&result, &directory);
    let printed: Value = serde_json::from_slice(&result.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", stdout(&result)));
    observed::make_all_alike(&directory);
    let report = json(&["report", "--json", directory.to_str().unwrap()]);
    assert_eq!(printed["experiment"], report["experiment"]);
    report
}

fn of<'a>(list: &'a Value, key: &str, value: &str) -> Vec<&'a Value> {
    list.as_array()
        .unwrap()
        .iter()
        .filter(|item| item[key] == value)
        .collect()
}

#[test]
fn a_run_goes_from_experiment_to_report() {
    let Some(_alone) = world::lab("a_run_goes_from_experiment_to_report") else {
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let result = output(&run(out.path(), &["--network", "vxlan"]));
    let directory = run_directory(out.path());
    observed::ran_to_its_end(&result, &directory);
    let table = stdout(&result);
    assert!(table.contains("host") && table.contains("vxlan"), "{table}");
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );

    let path = directory.to_str().unwrap();
    assert_eq!(observed::every_treatment_carried_load(&directory), 4);
    let page = std::fs::read_to_string(directory.join("report.html")).unwrap();
    assert!(page.contains("vxlan"));
    assert_eq!(
        stdout(&output(&["report", path])),
        table.trim_end_matches('\n').to_owned() + "\n"
    );
    observed::make_all_alike(&directory);
    for (format, has) in [
        ("html", "</html>"),
        ("markdown", "vxlan"),
        ("csv", "vxlan"),
        ("json", "\"treatments\""),
    ] {
        let text = stdout(&output(&["report", path, "--format", format]));
        assert!(text.contains(has), "{format}: {text}");
    }
}

#[test]
fn a_planted_cost_is_found_in_turns_and_in_whole_windows() {
    let Some(_alone) = world::lab("a_planted_cost_is_found_in_turns_and_in_whole_windows") else {
        return;
    };
    // What a busy machine adds to a median is not there in every block: the least of all
    // blocks of a treatment counts, of every try so far.
    let least_ns = |rotate: &str| {
        let out = tempfile::tempdir().unwrap();
        let words = format!(
            "run --network host+500us --workload rr --rate 300 --rotate {rotate} --blocks 4 \
             --duration 150ms --set design.warm_up=20ms --seed 5 --out"
        );
        let words = words.split_whitespace();
        let words = Vec::from_iter(words.chain([out.path().to_str().unwrap()]));
        let result = output(&words);
        let directory = run_directory(out.path());
        observed::ran_to_its_end(&result, &directory);
        let (_, trials) = RunDirectory::read(&directory).unwrap();
        let least = |treatment| {
            let of_it = trials.iter().filter(|it| it.treatment == treatment);
            let seen = of_it.filter_map(|it| it.observation.as_ref());
            let medians = seen.filter_map(|it| {
                let takes_turns = it.common.rotation.is_some();
                assert_eq!(takes_turns, rotate == "on", "{:?}", it.common.rotation);
                Some(it.load()?.load.latency.value_at(0.5))
            });
            medians.min().expect("a trial that saw its load")
        };
        [least(0), least(1)]
    };
    let mut tries = Vec::new();
    let mut leasts = [[u64::MAX; 2]; 2];
    let is_found = (0..5).any(|_| {
        for (leasts, rotate) in leasts.iter_mut().zip(["on", "off"]) {
            let seen = least_ns(rotate);
            *leasts = [0, 1].map(|at| leasts[at].min(seen[at]));
        }
        let [on, off] = leasts.map(|[host, slow]| (slow as f64 - host as f64) / 1_000.0);
        tries.push((on, off));
        // A receiver computes for no less than was planted, and for longer where something
        // else has its CPU.
        let is_planted = |us: f64| (480.0..560.0).contains(&us);
        is_planted(on) && is_planted(off) && (on - off).abs() < 40.0
    });
    assert!(is_found, "in turns and in whole windows, µs: {tries:?}");
}

#[test]
fn the_json_is_what_scripts_hold_on_to() {
    let Some(_alone) = world::lab("the_json_is_what_scripts_hold_on_to") else {
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let report = report(out.path(), &["--network", "host-gw", "--json"]);
    let treatments = report["treatments"].as_array().unwrap();
    assert_eq!(treatments.len(), 4, "two networks, two workloads");
    for treatment in treatments {
        for key in [
            "factors",
            "latency_ns",
            "service_time_ns",
            "send_lag_ns",
            "rates",
            "costs",
            "trials",
            "warnings",
        ] {
            assert!(!treatment[key].is_null(), "{key}: {treatment}");
        }
        for quantile in [
            "p50", "p90", "p99", "p99.9", "p99.99", "p99.999", "max", "mean",
        ] {
            assert!(
                treatment["latency_ns"].get(quantile).is_some(),
                "{quantile}"
            );
        }
        // 120 ms of any load cannot carry a p99.999.
        assert!(treatment["latency_ns"]["p99.999"].is_null());
    }
    let comparisons = report["comparisons"].as_array().unwrap();
    assert!(!comparisons.is_empty());
    for comparison in comparisons {
        for key in [
            "treatment",
            "baseline",
            "metric",
            "effect",
            "low",
            "high",
            "verdict",
            "smallest_effect",
        ] {
            assert!(comparison.get(key).is_some(), "{key}: {comparison}");
        }
        assert_eq!(
            comparison["verdict"], "undecided",
            "two blocks prove nothing: {comparison}"
        );
    }
}

/// The workloads of [`carries`], the rates low enough for a busy machine.
const WORKLOADS: &[&str] = &[
    "--workload",
    "rr,crr,stream,datagram,http",
    "--rate",
    "1000",
    "--blocks",
    "1",
    "--duration",
    "60ms",
    "--set",
    "design.warm_up=20ms",
    "--seed",
    "5",
];

/// Runs every workload with these factors, and looks at every trial.
#[track_caller]
fn carries(factors: &[&str], treatments: usize) {
    let out = tempfile::tempdir().unwrap();
    let mut arguments = vec!["run", "--out", out.path().to_str().unwrap()];
    arguments.extend(factors);
    arguments.extend(WORKLOADS);
    let result = output(&arguments);
    let directory = run_directory(out.path());
    observed::ran_to_its_end(&result, &directory);
    let seen = observed::every_treatment_carried_load(&directory);
    assert_eq!(seen, treatments, "{factors:?}");
}

#[test]
fn every_workload_runs_over_every_network() {
    let Some(_alone) = world::lab("every_workload_runs_over_every_network") else {
        return;
    };
    let networks = json(&["list", "networks", "--json"]);
    let here = networks
        .as_array()
        .unwrap()
        .iter()
        .filter(|network| network["available"] == true);
    let here = here.count();
    assert!(here >= 2, "{networks}");
    // The baseline has a control.
    carries(&["--network", "all"], 5 * (here + 1));
}

#[test]
fn every_workload_runs_over_both_families_and_placements() {
    let Some(_alone) = world::lab("every_workload_runs_over_both_families_and_placements") else {
        return;
    };
    let factors = [
        "--network",
        "vxlan",
        "--family",
        "4,6",
        "--placement",
        "cross-node,same-node",
    ];
    // The baseline and vxlan, two families, two placements.
    carries(&factors, 5 * 2 * 2 * 2);
}

#[test]
fn an_a_a_experiment_has_two_labels_and_no_host() {
    let Some(_alone) = world::lab("an_a_a_experiment_has_two_labels_and_no_host") else {
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let report = report(out.path(), &["--network", "host-gw,host-gw", "--json"]);
    let labels: BTreeSet<&str> = report["treatments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["label"].as_str().unwrap())
        .collect();
    assert_eq!(labels, BTreeSet::from(["host-gw", "host-gw#2"]));
    assert!(!of(&report["comparisons"], "treatment", "host-gw#2").is_empty());
    assert!(of(&report["comparisons"], "treatment", "host-gw").is_empty());
}

/// The names of systems stand for networks, and the report says for which.
#[test]
fn the_name_of_a_system_is_said_to_be_one() {
    let Some(_alone) = world::lab("the_name_of_a_system_is_said_to_be_one") else {
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let result = output(&run(
        out.path(),
        &[
            "--network",
            "flannel-vxlan,calico,routed",
            "--workload",
            "rr",
        ],
    ));
    let directory = run_directory(out.path());
    observed::ran_to_its_end(&result, &directory);
    let text = stdout(&result);
    for (alias, network) in [("flannel-vxlan", "vxlan"), ("calico", "routed")] {
        let sentence = format!("{alias} is measured as `{network}`");
        let unfolded = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(unfolded.contains(&sentence), "{text}");
        let page = std::fs::read_to_string(directory.join("report.html")).unwrap();
        assert!(page.contains(&format!("{alias} is measured as")), "{alias}");
    }
    assert!(!text.contains("routed#2"), "one path once: {text}");
    written_where_a_link_leads(&directory);
}

/// `report -o LINK` keeps the link, as a redirection would.
fn written_where_a_link_leads(run: &Path) {
    let (link, page) = (run.join("link"), run.join("page.html"));
    std::os::unix::fs::symlink("page.html", &link).unwrap();
    let (run, link_name) = (run.to_str().unwrap(), link.to_str().unwrap());
    let written = output(&["report", run, "--format", "html", "-o", link_name]);
    assert!(written.status.success(), "{}", stderr(&written));
    assert!(link.is_symlink());
    assert!(std::fs::read_to_string(page).unwrap().contains("<html"));
}

#[test]
fn networks_are_listed_with_what_they_need() {
    let Some(_alone) = world::lab("networks_are_listed_with_what_they_need") else {
        return;
    };
    let networks = json(&["list", "networks", "--json"]);
    for name in [
        "host",
        "host-gw",
        "vxlan",
        "macvlan",
        "routed",
        "ipvlan-l2",
        "ipvlan-l3",
    ] {
        let found = of(&networks, "name", name);
        assert_eq!(found.len(), 1, "{name}");
        let network = found[0];
        assert!(network["aliases"].is_array());
        let available = network["available"].as_bool().unwrap();
        assert_eq!(available, network["needs"].is_null(), "{network}");
    }
    assert_eq!(of(&networks, "name", "host")[0]["available"], true);
}

#[test]
fn a_network_that_cannot_be_built_is_a_clear_error() {
    let Some(_alone) = world::lab("a_network_that_cannot_be_built_is_a_clear_error") else {
        return;
    };
    let networks = json(&["list", "networks", "--json"]);
    let missing = networks
        .as_array()
        .unwrap()
        .iter()
        .find(|n| n["available"] == false);
    let Some(missing) = missing else {
        return world::skip(
            "a_network_that_cannot_be_built_is_a_clear_error",
            "this kernel has every driver",
        );
    };
    let out = tempfile::tempdir().unwrap();
    let result = output(&run(
        out.path(),
        &["--network", missing["name"].as_str().unwrap()],
    ));
    assert_eq!(result.status.code(), Some(2), "{}", stderr(&result));
    assert!(
        stderr(&result).contains(missing["needs"].as_str().unwrap()),
        "{}",
        stderr(&result)
    );
    assert_eq!(world::runs_in(out.path()).len(), 0);

    let unknown = output(&run(out.path(), &["--network", "warp"]));
    assert_eq!(unknown.status.code(), Some(64), "{}", stderr(&unknown));
}

#[test]
fn a_broken_limit_is_exit_code_1() {
    let Some(_alone) = world::lab("a_broken_limit_is_exit_code_1") else {
        return;
    };
    let out = tempfile::tempdir().unwrap();
    // Six blocks are the fewest that give an interval (C-7).
    let mut arguments = run(
        out.path(),
        // Longer by more than others could make the baseline.
        &[
            "--network",
            "routed+1ms",
            "--workload",
            "rr",
            "--rate",
            "200",
        ],
    );
    let blocks = arguments.iter().position(|a| *a == "2").unwrap();
    arguments[blocks] = "6";
    let result = output(&arguments);
    let directory = run_directory(out.path());
    observed::ran_to_its_end(&result, &directory);
    observed::make_all_alike(&directory);
    let path = directory.to_str().unwrap();
    let compare = |limit: &str| output(&["compare", path, "--limit", limit]);
    assert_eq!(output(&["compare", path]).status.code(), Some(0));
    let held = compare("p50=100000%");
    assert_eq!(held.status.code(), Some(0), "{}", stdout(&held));
    let broken = compare("p50=10%");
    assert_eq!(
        broken.status.code(),
        Some(1),
        "{}{}",
        stdout(&broken),
        stderr(&broken)
    );
    assert!(stdout(&broken).contains("broken"), "{}", stdout(&broken));

    // A pipeline whose reader has gone hears the same.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut unheard = world::plumbline(&["compare", path, "--limit", "p50=10%"]);
    assert_eq!(unheard.stdout(writer).status().unwrap().code(), Some(1));
}

/// Three blocks give no interval at all, and 60, which are the most, none of a thousandth.
#[test]
fn blocks_are_added_until_a_precision_is_reached_or_the_budget_ends() {
    let Some(_alone) = world::lab("blocks are added for precision") else {
        return;
    };
    let mut most = usize::MAX;
    for (precision, asked) in [("0.1%", 0.001), ("100%", 1.0)] {
        let out = tempfile::tempdir().unwrap();
        let words = format!(
            "run --network routed --workload rr --rate 8000 --duration 60ms --blocks 3 \
             --set design.retries=0 --precision {precision} --budget 15s --json --out"
        );
        let words = words.split_whitespace();
        let words = Vec::from_iter(words.chain([out.path().to_str().unwrap()]));
        let result = output(&words);
        let directory = run_directory(out.path());
        observed::ran_to_its_end(&result, &directory);
        let report: Value = serde_json::from_slice(&result.stdout).unwrap();
        let precision = &report["precision"];
        // Null where there is no interval: on a busy machine no trial may count.
        let is_reached = precision["widest"].as_f64().is_some_and(|it| it <= asked);
        assert_eq!(precision["reached"], is_reached, "{precision}");
        let blocks = observed::blocks(&directory);
        assert!(blocks.len() > 3, "{blocks:?}");
        match asked < 0.5 {
            true => assert!(!is_reached, "{precision}"),
            // Before the budget ends, that is.
            false => assert!(!is_reached || blocks.len() < most, "{blocks:?} of {most}"),
        }
        most = blocks.len();
    }
}

/// For root the kernel polls; for anybody else processes of idle priority spin, and what they
/// take counts as idle.
#[test]
fn idle_cpus_are_kept_awake_and_the_record_says_how() {
    let Some(_alone) = world::lab("CPUs that do not halt") else {
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let words = "run --awake --network host --workload rr --rate 200 --connections 1 \
                 --duration 100ms --blocks 1 --out";
    let words = words
        .split_whitespace()
        .chain([out.path().to_str().unwrap()]);
    let ran = output(&words.collect::<Vec<_>>());
    let directory = world::run_directory(out.path());
    observed::ran_to_its_end(&ran, &directory);
    let read = |name| std::fs::read_to_string(directory.join(name)).unwrap();
    let run: serde_json::Value = serde_json::from_str(&read("run.json")).unwrap();
    let known = &run["fingerprint"];
    let may = std::fs::File::options()
        .write(true)
        .open("/dev/cpu_dma_latency");
    if may.is_ok() {
        assert_eq!(known["wake_up_limit_us"], 0);
        assert_eq!(known["spinning_cpus"], serde_json::Value::Null);
        return;
    }
    assert_eq!(known["spinning_cpus"], known["cpus"]);
    let trials = read("trials.jsonl");
    let trials = trials
        .lines()
        .map(|line| -> serde_json::Value { serde_json::from_str(line).unwrap() });
    let machine = |trial: serde_json::Value| trial["observation"]["common"]["machines"][0].clone();
    let machines: Vec<serde_json::Value> = trials.map(machine).collect();
    let of = |machine: &serde_json::Value, name| machine[name].as_f64().unwrap();
    let is_mostly_idle = |it: &serde_json::Value| of(it, "busy_ns") < of(it, "capacity_ns") / 2.0;
    assert!(machines.iter().any(is_mostly_idle), "{machines:?}");
}
