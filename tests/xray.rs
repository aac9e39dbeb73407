//! `plumbline xray`: hops that add up, each where it belongs.

mod scenes;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::left::held_namespaces;
use crate::observed::ran_to_its_end;
use crate::world::{
    CNI_PLUGINS, Running, eventually, is_installed, json, lab, lab_as_root, lab_with_plugins,
    output, plumbline, run_directory, skip, stderr, stdout,
};

/// As root programs in the kernel look, and taps where that is asked for; nothing else is allowed
/// to others.
fn eyes() -> &'static [&'static [&'static str]] {
    match nix::unistd::geteuid().is_root() {
        true => &[&[], &["--taps"]],
        false => &[&[]],
    }
}

/// What only root may use.
const TRACEPOINTS: &str = "programs at the kernel's tracepoints take root";

/// How much of the latency may be in no hop, on a machine that is not quiet.
const MOST_UNACCOUNTED: f64 = 0.2;

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

/// Has one of five looks show what it should, for on a machine that is somebody else's the
/// load changes from one window to the next.
#[track_caller]
fn is_shown<T: std::fmt::Debug>(mut look: impl FnMut() -> (bool, T)) {
    let mut told = Vec::new();
    for _ in 0..5 {
        match look() {
            (true, _) => return,
            (false, seen) => told.push(seen),
        }
    }
    panic!("five looks do not show it: {told:?}");
}

fn look(arguments: &[&str]) -> Value {
    json(&[&["xray", "--rounds", "2", "--json"], arguments].concat())
}

/// An experiment over a link that carries a request of 64 bytes in a millisecond.
const OVER_A_SLOW_LINK: &str = r#"name = "slow"
question = "Where does the time of a request over a slow link go?"
link = { rate = "1Mbit" }
[factors]
network = ["host", "host-gw"]
[[workload]]
kind = "rr"
connections = 1
arrival = "closed"
[design]
blocks = 1
duration = "50ms"
control = "off"
"#;

/// Beside the trials of a run are the hops of what it compared, baseline first, over the link that
/// it had.
#[test]
fn a_run_is_looked_into_when_it_has_ended() {
    let Some(_alone) = lab("a run that is looked into") else {
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("slow.toml");
    fs::write(&file, OVER_A_SLOW_LINK).unwrap();
    let [file, place] = [&file, out.path()].map(|it| it.to_str().unwrap());
    let looked = output(&["run", file, "--xray", "--out", place]);
    let said = stderr(&looked);
    let run = run_directory(out.path());
    ran_to_its_end(&looked, &run);
    let hops = fs::read_to_string(run.join("hops.json"));
    let hops = hops.unwrap_or_else(|e| panic!("{e}: {said}"));
    let hops: Value = serde_json::from_str(&hops).unwrap();
    let networks = hops["networks"].as_array().unwrap();
    let names: Vec<_> = networks.iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["host", "host-gw"], "{said}");
    for network in networks {
        assert!(number(network, "total_ns") > 500_000.0, "{network}");
        let waits = has(network, "queue tbf");
        assert_eq!(waits, hops["by"] == "tracepoints", "{network}");
    }
    assert!(stdout(&looked).contains("against host"), "{said}");
    let page = fs::read_to_string(run.join("hops.html")).unwrap();
    assert!(page.contains("Over host-gw a request takes"), "{page}");
    let by_cpu = networks.iter().all(|it| it["cpu_ns"].is_number());
    assert_eq!(page.contains("CPU by hop"), by_cpu, "{page}");
    let report = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(report.contains("<a href=\"hops.html\">"));
}

#[test]
fn hops_add_up_to_the_latency_and_a_tunnel_has_its_own() {
    let Some(_alone) = lab("hops add up") else {
        return;
    };
    for eye in eyes() {
        is_shown(|| {
            let found = look(&[&["--network", "host,host-gw,vxlan"], *eye].concat());
            let networks = found["networks"].as_array().unwrap();
            holds_hops(networks, found["by"] == "taps");
            let share = |network| number(network, "unaccounted_ns") / number(network, "total_ns");
            let shares: Vec<f64> = networks.iter().map(share).collect();
            let holds = shares.iter().all(|share| share.abs() < MOST_UNACCOUNTED);
            (holds, (eye, shares))
        });
    }
}

/// Holds the hops of host, host-gw and vxlan to what these are.
fn holds_hops(networks: &[Value], by_taps: bool) {
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
        let [first, .., last] = hops(network) else {
            panic!("{network}");
        };
        let end = if by_taps { "wake-up" } else { "system calls" };
        assert!(is_called(last, end), "{last}");
        holds_cpu(network, by_taps);
        // Where taps look, the sender's socket tells both ends.
        let is_of_socket = [
            is_called(first, "sender: protocol"),
            is_called(last, "sender: "),
        ];
        assert_eq!(is_of_socket, [by_taps; 2], "{first} {last}");
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
    // A tunnel has hops of its own, and no other one comes or goes with it. Those of taps are
    // compounds, which have more in them with a tunnel.
    if !has(vxlan, "node: ") {
        let mut wanted = names(host_gw);
        wanted.extend(["vxlan", "decapsulation"]);
        assert_eq!(names(vxlan), wanted);
    }
}

/// How long a CPU works: for none longer than the hop, in most of them as long, and not at all
/// while a program is woken. Taps cannot tell.
fn holds_cpu(network: &Value, by_taps: bool) {
    if by_taps {
        let all = [network].into_iter().chain(hops(network));
        return all.for_each(|it| assert!(it["cpu_ns"].is_null(), "{it}"));
    }
    let cpu = |of: &Value| number(of, "cpu_ns");
    let sum: f64 = hops(network).iter().map(cpu).sum();
    assert!((sum - cpu(network)).abs() < 1.0, "{network}");
    let works = |hop: &&Value| cpu(hop) > 0.0;
    assert!(hops(network).iter().filter(works).count() > hops(network).len() / 2);
    for hop in hops(network) {
        assert!(cpu(hop) <= number(hop, "ns") + 1.0, "{hop}");
        assert!(!is_called(hop, "wake-up") || cpu(hop) == 0.0, "{hop}");
    }
}

/// What the hops of a network are called.
fn names(network: &Value) -> BTreeSet<&str> {
    let names = hops(network).iter().map(|hop| hop["name"].as_str());
    names.map(|name| name.expect("a name")).collect()
}

/// Nodes with kernels of their own see a half each, which on one kernel can be tried too: the
/// names of the hops and where they are do not depend on it, but for what lies between the nodes.
#[test]
fn the_halves_that_two_nodes_follow_apart_are_those_of_the_whole() {
    let test = "the halves of two nodes";
    let Some(_alone) = lab_as_root(test, TRACEPOINTS) else {
        return;
    };
    is_shown(|| {
        let order = ["--network", "host,host-gw,vxlan"];
        let whole = look(&order);
        let apart = look(&[&order[..], &["--by-node"]].concat());
        let of = |found: &Value| found["networks"].as_array().unwrap().clone();
        let names = |found: &Value| {
            of(found)
                .iter()
                .map(|it| it["name"].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&whole), ["host", "host-gw", "vxlan"]);
        assert_eq!(names(&apart), names(&whole));
        let mut worst: f64 = 0.0;
        for (whole, apart) in of(&whole).iter().zip(&of(&apart)) {
            holds_halves(whole, apart);
            let sum: f64 = hops(apart).iter().map(|hop| number(hop, "ns")).sum();
            let left = number(apart, "unaccounted_ns");
            assert!(
                (sum + left - number(apart, "total_ns")).abs() < 1.0,
                "{apart}"
            );
            worst = worst.max(left.abs() / number(apart, "total_ns"));
        }
        (worst < MOST_UNACCOUNTED, worst)
    });
}

/// What earlier kernels do not show of messages at their sockets is in the hops beside it, and all
/// others are as they were.
#[test]
fn by_what_earlier_kernels_show_hops_add_up_too() {
    let test = "by what earlier kernels show";
    let Some(_alone) = lab_as_root(test, TRACEPOINTS) else {
        return;
    };
    if !names(&look(&["--network", "host"])["networks"][0]).contains("responder") {
        skip(test, "this kernel is an earlier one");
        return;
    }
    let order = ["--network", "host-gw,vxlan"];
    for (version, more) in [("6.3", &[][..]), ("5.10", &[]), ("5.10", &["--by-node"])] {
        is_shown(|| {
            let whole = look(&[&order[..], more].concat());
            let coarse = look(&[&order[..], more, &["--as-linux", version]].concat());
            let mut worst: f64 = 0.0;
            for at in 0..2 {
                let [whole, coarse] = [&whole, &coarse].map(|it| &it["networks"][at]);
                let mut wanted = names(whole);
                let mut replace = |unseen: &str, with| {
                    assert!(wanted.remove(unseen), "{whole}");
                    wanted.insert(with);
                };
                replace("responder", "stack and responder");
                replace("system calls", "stack and system calls");
                if version == "5.10" {
                    replace("wake-up", "stack and wake-up");
                }
                assert_eq!(names(coarse), wanted);
                let stacks = |of| hops(of).iter().filter(|it| it["name"] == "pod stack");
                assert_eq!([whole, coarse].map(|it| stacks(it).count()), [4, 2]);
                let share = number(coarse, "unaccounted_ns") / number(coarse, "total_ns");
                worst = worst.max(share.abs());
            }
            (worst < MOST_UNACCOUNTED, (version, more, worst))
        });
    }
}

/// Holds the names of hops that nodes saw apart to those that were seen as a whole.
fn holds_halves(whole: &Value, apart: &Value) {
    let between = |hop: &&Value| !is_called(hop, "underlay");
    let names = |network: &Value| -> Vec<String> {
        let kept = hops(network).iter().filter(between);
        kept.map(|hop| format!("{} {} {}", hop["trip"], hop["name"], hop["at"]))
            .collect()
    };
    assert_eq!(names(apart), names(whole));
    let both = |hop: &&Value| hop["name"] == "underlay, both ways";
    assert_eq!(hops(apart).iter().filter(both).count(), 1, "{apart}");
    assert_eq!(hops(whole).iter().filter(both).count(), 0, "{whole}");
}

/// What is had without the rules of policies, and with them.
fn without_and_with_rules(eye: &[&str]) -> (Value, Value) {
    // They have the kernel track connections, too.
    let rules = ["--policies", "300", "--enforcer", "nft"];
    let network = |more: &[&str]| {
        let mut found = look(&[&["--network", "host-gw"], eye, more].concat());
        found["networks"][0].take()
    };
    (network(&[]), network(&rules))
}

#[test]
fn what_rules_cost_is_found_in_the_hops_that_they_are_in() {
    let Some(_alone) = lab("what rules cost is found in their hops") else {
        return;
    };
    for eye in eyes() {
        is_shown(|| {
            let (bare, ruled) = without_and_with_rules(eye);
            let more = |name| time_in(&ruled, name) - time_in(&bare, name);
            let there = more("prerouting") + more("forward");
            let elsewhere = ["veth", "underlay", "bridge"].map(more);
            let is_there = there > 500.0 && elsewhere.iter().all(|it| *it < there / 2.0);
            (is_there, (eye, there, elsewhere))
        });
    }
}

/// Where netfilter's hooks are hops of their own, each is little more than our programs in it once
/// nothing else is, and what they took with rules is in no other hop.
#[test]
fn without_its_rules_netfilter_takes_next_to_nothing() {
    let name = "hooks of netfilter without rules";
    let Some(_alone) = lab(name) else {
        return;
    };
    if !can_plant(name) {
        return;
    }
    is_shown(|| {
        let (bare, ruled) = without_and_with_rules(&["--netfilter"]);
        let gone = time_in(&ruled, "netfilter") - time_in(&bare, "netfilter");
        let hooks = hops(&bare).iter().filter(|hop| is_called(hop, "netfilter"));
        let left = hooks.map(|hop| number(hop, "ns")).fold(0.0, f64::max);
        let others = [
            "veth",
            "underlay",
            "bridge",
            "prerouting",
            "route",
            "forward",
        ];
        let elsewhere = others.map(|name| time_in(&ruled, name) - time_in(&bare, name));
        let is_gone = gone > 500.0 && left > 0.0 && left < gone / 4.0;
        let is_shown = is_gone && elsewhere.iter().all(|it| it.abs() < gone / 3.0);
        (is_shown, (left, gone, elsewhere))
    });
}

/// Rules that match nothing, in what a node forwards.
fn rules_for_nothing() -> String {
    let rules = (1..=200).map(|at| format!("ip saddr 203.0.113.{at} drop\n"));
    rules.collect()
}

/// A look at host-gw, in all of whose namespaces these rules are in what is forwarded: the
/// first of five that ends well, for on a slow machine a trial may be one wait.
fn look_among(rules: &str, more: &[&str]) -> Value {
    let found = (0..5).find_map(|_| try_among(rules, more));
    found.expect("a look that ends well")
}

fn try_among(rules: &str, more: &[&str]) -> Option<Value> {
    let order = ["xray", "--network", "host-gw", "--json"];
    let mut xray = Running::start(&[&order[..], more].concat());
    let chain = "type filter hook forward priority 0; policy accept;\n";
    let table = format!("table ip planted {{\nchain nothing {{\n{chain}{rules}}}\n}}\n");
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
    // Two nodes and two pods.
    let mut planted = BTreeSet::new();
    eventually("the path stands", Duration::from_secs(10), || {
        for held in held_namespaces(xray.pid()) {
            let Ok(namespace) = fs::read_link(&held) else {
                continue;
            };
            if !planted.contains(&namespace) && plant(&held) {
                planted.insert(namespace);
            }
        }
        planted.len() >= 4
    });
    let output = xray.0.stdout.take().expect("piped");
    let text = io::read_to_string(output).unwrap();
    let is_well = xray.wait(Duration::from_secs(5)) == Some(0);
    is_well.then(|| serde_json::from_str(&text).unwrap())
}

/// Whether rules can be put into the namespaces of a program that runs; else a counted skip.
fn can_plant(test: &str) -> bool {
    let can = is_installed("nft") && nix::unistd::geteuid().is_root();
    if !can {
        skip(test, "needs root and nft");
    }
    can
}

#[test]
fn rules_that_match_nothing_are_found_in_the_hop_that_they_are_in() {
    let name = "rules that match nothing are found in their hop";
    let Some(_alone) = lab(name) else {
        return;
    };
    if !can_plant(name) {
        return;
    }
    let others = ["veth", "underlay", "bridge", "prerouting"];
    for (flags, hop, elsewhere) in [
        (&[][..], "forward", &others[..]),
        (
            &["--netfilter"],
            "netfilter",
            &[&others[..], &["forward", "route"]].concat(),
        ),
    ] {
        is_shown(|| {
            let mut bare = look(&[&["--network", "host-gw"], flags].concat());
            let rounds = [&["--rounds", "4"], flags].concat();
            let mut ruled = look_among(&rules_for_nothing(), &rounds);
            let [bare, ruled] = [&mut bare, &mut ruled].map(|it| it["networks"][0].take());
            // Three hooks on each of two nodes, both ways.
            let wanted = if flags.is_empty() { 0 } else { 12 };
            for network in [&bare, &ruled] {
                let hooks = hops(network).iter().filter(|it| is_called(it, "netfilter"));
                assert_eq!(hooks.count(), wanted, "{network}");
            }
            let more = |name: &str| time_in(&ruled, name) - time_in(&bare, name);
            let elsewhere: Vec<f64> = elsewhere.iter().map(|it| more(it)).collect();
            let most = more(hop) / 3.0;
            // Without rules the hooks take little, and all hops are there.
            let bare_hooks = time_in(&bare, "netfilter");
            let is_alike = names(&bare) == names(&ruled);
            let is_there = most > 500.0
                && bare_hooks < most
                && is_alike
                && elsewhere.iter().all(|it| it.abs() < most);
            (is_there, (more(hop), bare_hooks, is_alike, elsewhere))
        });
    }
}

#[test]
fn a_drop_is_named_with_its_place_and_the_reason_of_the_kernel() {
    let name = "a drop is named";
    let Some(_alone) = lab(name) else {
        return;
    };
    if !can_plant(name) {
        return;
    }
    // A packet that is dropped keeps the connection waiting for 0.2 s, so a trial meets few, and
    // every request is followed.
    let rule = "meta l4proto tcp numgen inc mod 5000 == 0 drop\n";
    let usual = ["--rounds", "6", "--one-in", "1"];
    let earlier = [&usual[..], &["--as-linux", "5.10"]].concat();
    for (order, begins) in [
        (&usual[..], "NETFILTER_DROP on node"),
        // Before Linux 5.17.
        (&earlier, "reason unknown on node"),
    ] {
        is_shown(|| {
            let found = look_among(rule, order);
            let drops = found["networks"][0]["drops"].as_array().unwrap().clone();
            for drop in &drops {
                let what = drop["what"].as_str().unwrap();
                assert!(what.starts_with(begins), "{what}");
                // The device that a packet to be forwarded has come by.
                assert!(what.ends_with(" cni0") || what.ends_with(" eth0"), "{what}");
                assert!(drop["packets"].as_u64() > Some(0), "{drop}");
            }
            (!drops.is_empty(), found["by"].clone())
        });
    }
}

/// How much more than there is may be in hops, as a share. Where it is known what each look takes,
/// that is taken out; else a packet that passes more devices is looked at in more places, and what
/// that costs is in its hops. docs/xray.md has the figures.
fn most_in_looks(found: &Value) -> f64 {
    match found["sight_ns"].is_number() {
        true => 0.2,
        false => 0.5,
    }
}

/// The sum of the hops, and the latency that they are of, are held against medians which nobody
/// looked at, each with its interval. What a mean and a median of the same latencies differ by is
/// allowed, and hops that add less than a quarter are too few however wide all is.
#[test]
fn what_hops_add_is_what_is_measured_when_nobody_looks() {
    let Some(_alone) = lab("what hops add is what is measured") else {
        return;
    };
    // A CPU that halts comes back late in a virtual machine, which widens everything.
    let steadier: &[&str] = match nix::unistd::geteuid().is_root() {
        true => &["--awake"],
        false => &[],
    };
    for eye in eyes() {
        is_shown(|| {
            let (holds, seen) = held_against_medians(&[steadier, eye].concat());
            (holds, (eye, seen))
        });
    }
}

/// Whether what vxlan adds in hops is what it adds, and what was seen, by these flags.
fn held_against_medians(flags: &[&str]) -> (bool, (f64, Value, Value)) {
    let order = ["xray", "--network", "host,vxlan", "--rounds", "8", "--json"];
    let found = json(&[&order[..], flags].concat());
    let against = &found["networks"][1]["against"];
    let of_hops: f64 = hops(against).iter().map(|hop| number(hop, "ns")).sum();
    let left = [0, 1].map(|at| number(&found["networks"][at], "unaccounted_ns"));
    let [total, p50] = ["total", "alone_p50"].map(|key| &against[key]);
    let sum = of_hops + left[1] - left[0];
    assert!((sum - number(total, "ns")).abs() < 1.0, "{against}");
    let alone = number(p50, "ns").abs();
    let half = (number(total, "high") - number(total, "low")) / 2.0 + alone * 0.1;
    let is_within = |it: f64, looks: f64| {
        it - half - looks <= number(p50, "high") && number(p50, "low") <= it + half
    };
    let holds =
        is_within(number(total, "ns"), 0.0) && is_within(of_hops, alone * most_in_looks(&found));
    let is_enough = of_hops >= alone / 4.0;
    (holds && is_enough, (of_hops, total.clone(), p50.clone()))
}

/// A bridge and routes between the nodes, as host-gw has them, made by real plugins.
const CNI_LIST: &str = r#"{"cniVersion": "1.0.0", "name": "bridged", "plugins": [{
    "type": "bridge", "bridge": "cni0", "isDefaultGateway": true, "mtu": {{.MTU}},
    "ipam": {"type": "host-local", "ranges": [[{"subnet": "{{.PodCIDR}}"}]]}
}], "plumbline": {"routes": "nodes"}}"#;

#[test]
fn what_cni_plugins_make_is_followed_like_a_network_of_the_lab() {
    let Some(_alone) = lab_with_plugins("what CNI plugins make is followed", "jq") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bridged.conflist");
    fs::write(&file, CNI_LIST).unwrap();
    let networks = format!("host-gw,cni:{}", file.display());
    is_shown(|| {
        let found = look(&["--network", &networks]);
        let trips = |network: &Value| -> Vec<String> {
            let hop = |hop: &Value| format!("{} {} {}", hop["trip"], hop["name"], hop["at"]);
            hops(network).iter().map(hop).collect()
        };
        let networks = found["networks"].as_array().unwrap();
        for part in ["veth", "bridge", "prerouting", "forward", "underlay"] {
            let has_it = |network| has(network, part) || found["by"] == "taps";
            assert!(networks.iter().all(has_it), "{part}: {found}");
        }
        let followed: Vec<_> = networks.iter().map(trips).collect();
        let is_alike = followed.len() == 2 && followed[0] == followed[1];
        (is_alike, (followed, found["unfollowed"].clone()))
    });
}

/// What a part of a path costs is in its hop, and in no other: a second bridge, and the pair of
/// devices that joins it to the first, put there by a plugin of the test's own.
#[test]
fn a_second_bridge_is_found_in_its_hop() {
    let Some(_alone) = lab_with_plugins("a second bridge is found in its hop", "jq") else {
        return;
    };
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/second-bridge");
    let networks = ["one", "two"].map(|it| format!("cni:{folder}/{it}.conflist"));
    let networks = networks.join(",");
    is_shown(|| {
        let mut xray = plumbline(&["xray", "--rounds", "2", "--json", "--network", &networks]);
        xray.env("CNI_PATH", format!("{folder}:{CNI_PLUGINS}"));
        let output = xray.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let more = |names: &[&str]| added(&found["networks"][1]["against"], names);
        let there = more(&["bridge", "veth", "receive"]);
        let in_bridges = more(&["bridge"]);
        let elsewhere = ["stack", "prerouting", "forward", "underlay"].map(|it| more(&[it]));
        let is_there = there > 300.0
            && in_bridges > 100.0
            && elsewhere.iter().all(|it| it.abs() < there / 3.0);
        (is_there, (there, in_bridges, elsewhere))
    });
}

/// What a network adds to the baseline in hops with one of these words in their names.
fn added(against: &Value, words: &[&str]) -> f64 {
    let named = hops(against).iter();
    let named = named.filter(|hop| words.iter().any(|word| is_called(hop, word)));
    named.map(|hop| number(hop, "ns")).sum()
}

/// 200 rules that match nothing, laid by a plugin of the test's own: they are in `forward`. How
/// much a request takes longer while nobody looks, docs/xray.md says: medians of a short look
/// differ by more.
#[test]
fn no_op_rules_of_a_plugin_are_found_in_their_hop() {
    let name = "no-op rules of a plugin are found in their hop";
    let Some(_alone) = lab_with_plugins(name, "jq") else {
        return;
    };
    if !is_installed("nft") {
        return skip(name, "no nft");
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/no-op-rules");
    let networks = ["without", "with"].map(|it| format!("cni:{folder}/{it}.conflist"));
    let networks = networks.join(",");
    is_shown(|| {
        let plugins = ["--cni-bin", folder, "--cni-bin", CNI_PLUGINS];
        let found = look(&[&["--network", &networks][..], &plugins].concat());
        let against = &found["networks"][1]["against"];
        let more = |word| added(against, &[word]);
        let there = more("forward");
        let elsewhere = ["veth", "bridge", "prerouting", "underlay"].map(more);
        let is_there = there > 500.0 && elsewhere.iter().all(|it| it.abs() < there / 3.0);
        (is_there, (there, elsewhere))
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
    for (order, says) in [
        (&["--target", "kubernetes"][..], "--allow-tracing allows it"),
        (&["--target", "hosts"], "so far"),
        (&["--allow-tracing"], "--allow-tracing is for clusters"),
        (&["--nodes", "a,b"], "--nodes: say --target kubernetes too"),
        (
            &["--allow-tracing", "--cni-bin", "plugins"],
            "cannot be used with",
        ),
    ] {
        let refused = output(&[&["xray"], order].concat());
        assert_eq!(refused.status.code(), Some(64), "{order:?}");
        assert!(stderr(&refused).contains(says), "{}", stderr(&refused));
    }
    // Hops have the names of nodes and devices.
    for flags in [&["--anonymise"][..], &["--kernel", "uml"]] {
        let refused = output(&[&["run", "--xray"], flags].concat());
        assert_eq!(refused.status.code(), Some(64), "{flags:?}");
        let said = stderr(&refused);
        assert!(said.contains("cannot be used with"), "{said}");
    }
}
