//! Bad usage, bad files, and what does not touch the machine.

use std::fs;

use crate::world::{output, stderr, stdout};

#[track_caller]
fn refused(arguments: &[&str], code: i32, says: &[&str]) {
    let output = output(arguments);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    for part in says {
        assert!(
            text.contains(part),
            "{arguments:?} should say {part:?}: {text}"
        );
    }
}

/// Runs an experiment file with this text.
#[track_caller]
fn refused_file(text: &str, says: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bad.toml");
    fs::write(&file, text).unwrap();
    let out = dir.path().join("out");
    refused(
        &[
            "run",
            file.to_str().unwrap(),
            "--out",
            out.to_str().unwrap(),
        ],
        64,
        says,
    );
    assert!(!out.exists(), "a refused experiment leaves nothing");
}

#[test]
fn bad_usage_is_64() {
    refused(&["frobnicate"], 64, &["frobnicate"]);
    refused(&["run", "--bogus"], 64, &["--bogus"]);
    refused(
        &["run", "no-such-experiment"],
        64,
        &["no-such-experiment", "list experiments"],
    );
    refused(&["compare", "x", "--limit", "p50"], 64, &["METRIC=SHARE"]);
    refused(&["compare", "x", "--limit", "speed=1%"], 64, &["p50"]);
    refused(&["load", "https://127.0.0.1/"], 64, &["https"]);
    refused(&["load", "127.0.0.1"], 64, &["HOST:PORT"]);
    refused(&["load", "8.8.8.8:80"], 64, &["--i-own-this"]);
    for limit in ["p99", "p99<1", "mean<1ms", "loss<0"] {
        refused(
            &["load", "127.0.0.1:1", "--find-max", limit],
            64,
            &[limit, "p99<1ms"],
        );
    }
    let find_max = |more: &[&str], says: &str| {
        let all = [&["load", "127.0.0.1:1", "--find-max", "loss=0"], more].concat();
        refused(&all, 64, &[says]);
    };
    find_max(&["--rate", "5"], "--rate");
    find_max(&["--workload", "stream"], "no rate");
    find_max(&["--workload", "datagram"], "rr --udp");
    find_max(&["--trial", "1ms"], "100ms");
    find_max(&["--up-to", "50"], "50/s");
    find_max(&["--width", "0"], "width");
    refused(
        &["load", "127.0.0.1:1", "--trial", "2s"],
        64,
        &["--find-max"],
    );
    refused(&["lab", "up", "vxlan", "--family", "5"], 64, &["family"]);
}

#[test]
fn a_target_without_its_hosts_asks_for_them() {
    let hosts = |more: &[&str], says: &[&str]| {
        refused(&[&["run", "--target", "hosts"], more].concat(), 64, says);
    };
    hosts(&[], &["--host user@a --host user@b", "--pair"]);
    hosts(&["--host", "a"], &["it takes two"]);
    hosts(&["--host", "a", "--host", "--port"], &["--port"]);
    hosts(&["--pair", "vm=a"], &["NAME=HOST,HOST"]);
    hosts(
        &["--pair", "vm=a,b", "--pair", "vm=c,d"],
        &["two networks `vm`"],
    );
    hosts(
        &["--host", "a", "--host", "b", "--address", "10.0.0.0/40"],
        &["10.0.0.0/40", "a network such as"],
    );
    hosts(
        &["--pair", "vm=a,b"],
        &["no network `host`", "vm", "--baseline"],
    );
    refused(&["run", "--host", "a"], 64, &["--target hosts"]);
    // What only the lab can do is not left out in silence elsewhere.
    let with = |flags: &[&'static str], part| {
        let mut arguments = vec!["run", "--target", "hosts", "--host", "a", "--host", "b"];
        arguments.extend(flags);
        refused(&arguments, 64, &[part]);
    };
    let workload = "[[workload]]\nkind = \"rr\"\nrate = 100\n";
    let shaped = format!("name = \"x\"\nlink.rate = \"1Gbit\"\n{workload}");
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), shaped).unwrap();
    let mut arguments = vec!["run", file.path().to_str().unwrap()];
    arguments.extend(["--target", "hosts", "--host", "a", "--host", "b"]);
    refused(&arguments, 64, &["[link]", "--target lab"]);
    with(&["--kernel", "uml"], "--target lab");
    with(&["--cni-bin", "/plugins"], "--cni-bin: say --target lab");
    with(&["--image", "i"], "--image: say --target kubernetes");
    // What only clusters have, and what only several of them have.
    refused(
        &["run", "--path", "pod"],
        64,
        &["`path`", "--target kubernetes"],
    );
    refused(&["run", "--across-environments"], 64, &["several clusters"]);
    refused(
        &["run", "cni-comparison"],
        64,
        &["bridge-host-gw", "--provision 'COMMAND'", "--context"],
    );
    let cluster = ["run", "--target", "kubernetes"];
    let both = ["--provision", "up", "--context", "a"];
    refused(
        &[&cluster[..], &both].concat(),
        64,
        &["--context", "--provision"],
    );
    let down = ["--unprovision", "down"];
    refused(&[&cluster[..], &down].concat(), 64, &["--provision"]);
    let unnamed = ["--provision", "true", "--unprovision", "true"];
    refused(&[&cluster[..], &unnamed].concat(), 64, &["which networks?"]);
    // What an experiment asks for is its own, and the flags are named.
    refused(
        &["run", "centurylink-2016"],
        64,
        &["--pair bare-metal=HOST,HOST --pair vm=HOST,HOST", "ssh"],
    );
}

#[test]
fn help_and_version_are_0() {
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["run", "--help"],
        &["help", "load"],
    ] {
        assert!(output(arguments).status.success(), "{arguments:?}");
    }
}

#[test]
fn a_bad_experiment_shows_its_line_and_the_remedy() {
    refused_file("name = \"x\"\nbloks = 3\n", &["bad.toml:2", "bloks"]);
    let workload = "name = \"x\"\n[factors]\nnetwork = [\"host\", \"vxlan\"]\n[[workload]]\n";
    refused_file(
        &format!("{workload}kind = \"rr\"\nrate = -5\n"),
        &["bad.toml:6", "rate"],
    );
    refused_file(
        &format!("{workload}kind = \"stream\"\nrate = 5\n"),
        &["bad.toml:6", "rate"],
    );
    refused_file(
        &format!("{workload}kind = \"http\"\nprotocol = \"udp\"\nrate = 5\n"),
        &["bad.toml:6", "udp"],
    );
    refused_file(
        &format!("{workload}kind = \"rr\"\nrate = 5\nconections = 5\n"),
        &["bad.toml:7", "connections"],
    );
    refused_file("name = [", &["bad.toml:1"]);
}

#[test]
fn a_flag_that_cannot_be_meant_is_64() {
    refused(&["run", "--blocks", "0"], 64, &["--blocks"]);
    refused(&["run", "--rate", "fast"], 64, &["--rate"]);
    refused(&["run", "--workload", "ping"], 64, &["ping"]);
    refused(&["run", "--set", "design.blocs=3"], 64, &["blocks"]);
}

#[test]
fn what_is_not_a_run_is_2() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    for command in ["report", "compare"] {
        refused(&[command, path], 2, &[path]);
        refused(&[command, "/nowhere"], 2, &["/nowhere"]);
    }
    refused(&["run", "--resume", path], 2, &[path]);
}

#[test]
fn a_newer_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("run.json"), "{\"format\": 999}").unwrap();
    fs::write(dir.path().join("trials.jsonl"), "").unwrap();
    refused(
        &["report", dir.path().to_str().unwrap()],
        2,
        &["999", "newer"],
    );
}

#[test]
fn lists_are_for_people_and_scripts() {
    assert!(stdout(&output(&["list", "experiments"])).contains("tour"));
    let workloads = crate::world::json(&["list", "workloads", "--json"]);
    let names: Vec<_> = workloads
        .as_array()
        .unwrap()
        .iter()
        .map(|w| w["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["rr", "crr", "stream", "datagram", "http"]);
}

#[test]
fn completions_and_manual_are_made() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(
            stdout(&output(&["completions", shell])).contains("plumbline"),
            "{shell}"
        );
    }
    assert!(stdout(&output(&["man"])).contains(".TH"));
    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("man");
    assert!(
        output(&["man", "--dir", pages.to_str().unwrap()])
            .status
            .success()
    );
    assert!(pages.join("plumbline-run.1").exists());
}
