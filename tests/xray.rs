//! `plumbline xray`: hops that add up, each where it belongs.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::world::{Running, eventually, json, lab, output, skip, stderr, stdout};

/// As root programs in the kernel look, and taps where that is asked for or nothing else is
/// allowed.
const EYES: &[&[&str]] = &[&[], &["--taps"]];

/// How much of the latency may be in no hop, on a machine that is not quiet: the ends that
/// taps see are of other requests than the middle.
fn most_unaccounted(found: &Value) -> f64 {
    match found["by"].as_str() {
        Some("taps") => 0.4,
        _ => 0.2,
    }
}

fn number(of: &Value, key: &str) -> f64 {
    of[key].as_f64().unwrap_or_else(|| panic!("{key} of {of}"))
}

fn hops(network: &Value) -> &[Value] {
    network["hops"].as_array().expect("a list")
}

/// The time of all hops whose names have this word.
fn time_in(network: &Value, word: &str) -> f64 {
    let of_word = hops(network).iter().filter(|hop| is_called(hop, word));
    of_word.map(|hop| number(hop, "ns")).sum()
}

fn is_called(hop: &Value, word: &str) -> bool {
    hop["name"].as_str().is_some_and(|name| name.contains(word))
}

fn has(network: &Value, word: &str) -> bool {
    hops(network).iter().any(|hop| is_called(hop, word))
}

/// Whether one of five looks shows what it should; else a counted skip, for on a machine that
/// is somebody else's the load changes from one window to the next.
fn is_shown<T: std::fmt::Debug>(test: &str, mut look: impl FnMut() -> (bool, T)) {
    let mut told = Vec::new();
    for _ in 0..5 {
        match look() {
            (true, _) => return,
            (false, seen) => told.push(seen),
        }
    }
    skip(test, &format!("not shown on a busy machine: {told:?}"));
}

fn look(arguments: &[&str]) -> Value {
    json(&[&["xray", "--rounds", "2", "--json"], arguments].concat())
}

/// Beside the trials of a run are the hops of what it compared, baseline first.
#[test]
fn a_run_is_looked_into_when_it_has_ended() {
    let Some(_alone) = lab("a run that is looked into") else {
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let place = out.path().to_str().unwrap();
    let run = ["run", "tour", "--xray", "--out", place, "--workload", "rr"];
    let few = ["--blocks", "1", "--duration", "50ms", "--control", "off"];
    let looked = output(&[&run[..], &few, &["--network", "host,host-gw"]].concat());
    let said = stderr(&looked);
    let entries = fs::read_dir(out.path()).unwrap();
    let mut runs = entries.map(|it| it.unwrap().path());
    let run = runs.find(|it| it.join("hops.json").exists());
    let run = run.unwrap_or_else(|| panic!("{said}"));
    let hops = fs::read_to_string(run.join("hops.json")).unwrap();
    let hops: Value = serde_json::from_str(&hops).unwrap();
    let networks = hops["networks"].as_array().unwrap();
    let names: Vec<_> = networks.iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["host", "host-gw"], "{said}");
    assert!(stdout(&looked).contains("against host"), "{said}");
    let page = fs::read_to_string(run.join("hops.html")).unwrap();
    assert!(page.contains("Over host-gw a request takes"), "{page}");
}

#[test]
fn hops_add_up_to_the_latency_and_a_tunnel_has_its_own() {
    let Some(_alone) = lab("hops add up") else {
        return;
    };
    for eye in EYES {
        is_shown("hops add up", || {
            let found = look(&[&["--network", "host,host-gw,vxlan"], *eye].concat());
            let networks = found["networks"].as_array().unwrap();
            holds_hops(networks);
            let share = |network| number(network, "unaccounted_ns") / number(network, "total_ns");
            let shares: Vec<f64> = networks.iter().map(share).collect();
            let most = most_unaccounted(&found);
            (shares.iter().all(|share| share.abs() < most), (eye, shares))
        });
    }
}

/// Holds the hops of host, host-gw and vxlan to what these are.
fn holds_hops(networks: &[Value]) {
    for network in networks {
        let sum: f64 = hops(network).iter().map(|hop| number(hop, "ns")).sum();
        let left = number(network, "unaccounted_ns");
        assert!(
            (sum + left - number(network, "total_ns")).abs() < 1.0,
            "{network}"
        );
        assert!(number(network, "journeys") > 10.0, "{network}");
        for trip in ["request", "answer"] {
            let one_way = |hop: &&Value| hop["trip"] == trip && is_called(hop, "underlay");
            assert_eq!(hops(network).iter().filter(one_way).count(), 1, "{network}");
        }
        let last = hops(network).last().unwrap();
        assert!(is_called(last, "wake-up"), "{last}");
    }
    let [host, host_gw, vxlan] = networks else {
        panic!("{networks:?}");
    };
    for part in ["vxlan", "decapsulation"] {
        let has_it = [host, host_gw, vxlan].map(|network| has(network, part));
        assert_eq!(has_it, [false, false, true], "{part}");
    }
    for part in ["veth", "forward"] {
        let has_it = [host, host_gw, vxlan].map(|network| has(network, part));
        assert_eq!(has_it, [false, true, true], "{part}");
    }
    assert!(host["against"].is_null() && vxlan["against"]["baseline"] == "host");
}

#[test]
fn what_rules_cost_is_found_in_the_hops_that_they_are_in() {
    let test = "what rules cost is found in their hops";
    let Some(_alone) = lab(test) else {
        return;
    };
    // They have the kernel track connections, too.
    let rules = ["--policies", "300", "--enforcer", "nft"];
    for eye in EYES {
        let network = |more: &[&str]| {
            let mut found = look(&[&["--network", "host-gw"], *eye, more].concat());
            found["networks"][0].take()
        };
        is_shown(test, || {
            let (bare, ruled) = (network(&[]), network(&rules));
            let more = |name| time_in(&ruled, name) - time_in(&bare, name);
            let there = more("prerouting") + more("forward");
            let elsewhere = ["veth", "underlay", "bridge"].map(more);
            let is_there = there > 500.0 && elsewhere.iter().all(|it| *it < there / 2.0);
            (is_there, (eye, there, elsewhere))
        });
    }
}

/// The network namespaces that a program holds, each once.
fn namespaces_of(program: u32) -> Vec<PathBuf> {
    let held = fs::read_dir(format!("/proc/{program}/fd"))
        .into_iter()
        .flatten();
    let held = held.filter_map(|entry| {
        let file = entry.ok()?.path();
        let target = fs::read_link(&file).ok()?.to_string_lossy().into_owned();
        target.starts_with("net:[").then_some((target, file))
    });
    held.collect::<BTreeMap<_, _>>().into_values().collect()
}

/// A look at host-gw, whose nodes have 200 rules that match nothing in what they forward.
fn look_among_rules() -> Value {
    let mut xray = Running::start(&["xray", "--network", "host-gw", "--rounds", "4", "--json"]);
    // Two nodes and two pods.
    eventually("the path stands", Duration::from_secs(10), || {
        namespaces_of(xray.pid()).len() >= 4
    });
    let rules = (1..=200).map(|at| format!("ip saddr 203.0.113.{at} drop\n"));
    let chain = "type filter hook forward priority 0; policy accept;\n";
    let table = format!(
        "table ip planted {{\nchain nothing {{\n{chain}{}}}\n}}\n",
        rules.collect::<String>()
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules.nft");
    fs::write(&file, table).unwrap();
    // One that is held for a moment only may be gone by now.
    let plant = |namespace: &PathBuf| {
        let mut nsenter = Command::new("nsenter");
        nsenter.arg(format!("--net={}", namespace.display()));
        let planted = nsenter.args(["nft", "-f"]).arg(&file).output().unwrap();
        planted.status.success()
    };
    let namespaces = namespaces_of(xray.pid());
    let planted = namespaces.iter().filter(|it| plant(it)).count();
    assert!(planted >= 4, "{planted} of {namespaces:?}");
    let output = xray.0.stdout.take().expect("piped");
    let text = io::read_to_string(output).unwrap();
    assert_eq!(xray.wait(Duration::from_secs(5)), Some(0));
    let mut found: Value = serde_json::from_str(&text).unwrap();
    found["networks"][0].take()
}

#[test]
fn rules_that_match_nothing_are_found_in_the_hop_that_they_are_in() {
    let name = "rules that match nothing are found in their hop";
    let Some(_alone) = lab(name) else {
        return;
    };
    let has_nft = Command::new("nft").arg("--version").output().is_ok();
    if !has_nft || !nix::unistd::geteuid().is_root() {
        skip(name, "needs root and nft");
        return;
    }
    is_shown(name, || {
        let mut bare = look(&["--network", "host-gw"]);
        let (bare, ruled) = (bare["networks"][0].take(), look_among_rules());
        let more = |name| time_in(&ruled, name) - time_in(&bare, name);
        let elsewhere = ["veth", "underlay", "bridge", "prerouting"].map(more);
        let most = more("forward") / 3.0;
        let is_there = most > 500.0 && elsewhere.iter().all(|it| it.abs() < most);
        (is_there, (more("forward"), elsewhere))
    });
}

/// A network whose file is not there, in any environment.
const NOWHERE: &str = "cni:/nowhere/missing.conflist";

#[test]
fn a_network_that_cannot_be_followed_is_named_and_the_others_go_on() {
    let Some(_alone) = lab("a network that cannot be followed") else {
        return;
    };
    let xray = |networks: &str, more: &[&str]| {
        let order = ["xray", "--rounds", "1", "--network", networks];
        [&order[..], more].concat().join(" ")
    };
    let command = xray(&format!("{NOWHERE},host"), &["--json"]);
    let found = json(&command.split(' ').collect::<Vec<_>>());
    let networks = found["networks"].as_array().unwrap();
    assert_eq!((networks.len(), &networks[0]["name"]), (1, &"host".into()));
    assert!(
        networks[0]["against"].is_null(),
        "what is left is the baseline"
    );
    let unfollowed = &found["unfollowed"][0];
    assert!(unfollowed["name"].as_str().unwrap().contains("missing"));
    let why = unfollowed["why"].as_str().unwrap();
    assert!(why.contains("missing.conflist"), "{why}");

    let said = |command: &str| output(&command.split(' ').collect::<Vec<_>>());
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("hops.html");
    let page = ["--html", file.to_str().unwrap()];
    let text = said(&xray(&format!("host,{NOWHERE}"), &page));
    assert_eq!(text.status.code(), Some(0), "{}", stderr(&text));
    let shown = stdout(&text);
    assert!(shown.contains("not followed: "), "{shown}");
    assert!(shown.starts_with("host → "), "{shown}");
    let page = fs::read_to_string(file).expect("the page is written");
    for part in ["<strong>host</strong>", "was not followed: ", "</html>"] {
        assert!(page.contains(part), "{part} is not in {page}");
    }

    for none in [NOWHERE.to_owned(), format!("{NOWHERE},{NOWHERE}2")] {
        let refused = said(&xray(&none, &["--json"]));
        assert_eq!(refused.status.code(), Some(2), "{none}");
        assert_eq!(stdout(&refused), "");
        for named in none.split(',') {
            let file = named.trim_start_matches("cni:");
            assert!(stderr(&refused).contains(file), "{}", stderr(&refused));
        }
    }
}

#[test]
fn packets_that_a_program_sends_on_are_lost_sight_of_or_followed_by_taps() {
    let Some(_alone) = lab("a program sends packets on") else {
        return;
    };
    // By tracepoints it is lost sight of; without a device for it there is no such network.
    let found = look(&["--network", "host,flannel-udp"]);
    let named = |list: &str| -> Vec<String> {
        let all = found[list].as_array().unwrap().iter();
        all.map(|it| it["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let (networks, unfollowed) = (named("networks"), named("unfollowed"));
    assert_eq!(networks[0], "host");
    if found["by"] == "tracepoints" {
        assert_eq!((networks.len(), &*unfollowed[0]), (1, "flannel-udp"));
    } else {
        assert_eq!([&networks[1..], &unfollowed[..]].concat(), ["flannel-udp"]);
    }
}

#[test]
fn what_xray_cannot_look_into_is_refused() {
    let refused = output(&["xray", "--target", "kubernetes", "--allow-tracing"]);
    assert_eq!(refused.status.code(), Some(64));
    assert!(stderr(&refused).contains("the lab's networks only"));
}
