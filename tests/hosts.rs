//! `--target hosts` between two hosts with real ssh servers: namespaces of this
//! machine, made by `tests/hosts/world.sh`.

mod many;
mod server;
mod stopped;
pub(crate) mod two_hosts;

use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use self::two_hosts::TwoHosts;
use crate::inventory::Inventory;
use crate::moments::{Moments, say, times};
use crate::observed::ran_to_its_end;
use crate::world::{self, eventually, run_directory, stderr};

/// How long agents may go on without a controller (S-5e), which `lease` holds, and what their
/// processes and shells may then take to be gone, with what they made, on a machine that is busy.
const LEASE: Duration = Duration::from_secs(3);
pub(crate) const CLEANED: Duration = Duration::from_secs(20);

/// A short run that repeats nothing: the machine may be busy, and whether a
/// trial counts is not asked here.
const SHORT: &[&str] = &[
    "--workload",
    "rr",
    "--rate",
    "500",
    "--blocks",
    "1",
    "--duration",
    "200ms",
    "--set",
    "design.retries=0",
];

/// Two trials, one after the other, over the link that the hosts have for themselves.
pub(crate) const TWO_TRIALS: &[&str] = &[
    "--host",
    "a",
    "--host",
    "b",
    "--address",
    "direct",
    "--workload",
    "rr",
    "--rate",
    "500",
    "--blocks",
    "2",
    "--set",
    "design.retries=0",
];

pub(crate) fn record(out: &Path) -> (Value, Vec<Value>) {
    let run = run_directory(out);
    let read = |name: &str| std::fs::read_to_string(run.join(name)).expect("it was written");
    let trials = read("trials.jsonl");
    let parsed = |line: &str| serde_json::from_str(line).expect("valid JSON");
    (
        parsed(&read("run.json")),
        trials.lines().map(parsed).collect(),
    )
}

/// As [`record`], of a run that went to its end.
#[track_caller]
fn whole_record(hosts: &TwoHosts, output: &Output) -> (Value, Vec<Value>) {
    let out = hosts.path("out");
    ran_to_its_end(output, &run_directory(&out));
    record(&out)
}

#[track_caller]
pub(crate) fn assert_measured(trial: &Value) {
    assert_ne!(trial["status"]["status"], "failed", "{trial}");
    let load = &trial["observation"]["what"]["load"];
    assert!(load["completed"].as_u64() > Some(0), "{load}");
}

#[test]
fn two_hosts_are_measured_over_the_networks_that_were_chosen() {
    let Some(hosts) = TwoHosts::stand("two hosts are measured") else {
        return;
    };
    let networks = ["--address", "10.9.0.0/24", "--address", "fast=direct"];
    let output = hosts.run(&[&["--host", "a", "--host", "b"], &networks[..], SHORT].concat());
    let (run, trials) = whole_record(&hosts, &output);
    assert_eq!(run["provenance"]["target"], "hosts");
    let devices = &run["fingerprint"]["devices"];
    for (network, device) in [("host", "control"), ("fast", "direct")] {
        for (end, side) in ["client", "server"].iter().enumerate() {
            let described = &devices[network][end];
            assert_eq!(described["device"], device);
            assert_eq!(described["namespace"], *side);
            assert_eq!(described["driver"], "veth");
            assert_eq!(described["mtu"], 1500);
        }
    }
    // Two namespaces are one kernel, and the run knows.
    assert_eq!(run["warnings"][0]["warning"], "one-kernel");
    assert_eq!(trials.len(), 2);
    for trial in &trials {
        assert_measured(trial);
        let seen = &trial["observation"];
        // Both networks of the two hosts took turns.
        let rotation = &seen["common"]["rotation"];
        assert_eq!(rotation["treatments"], 2, "{rotation}");
        let network = &run["plan"]["treatments"][trial["treatment"].as_u64().unwrap() as usize];
        let device = if network["label"] == "fast" {
            "direct"
        } else {
            "control"
        };
        for (end, count) in [(0, "tx_packets"), (1, "rx_packets")] {
            let counters = &seen["common"]["devices"][end];
            assert_eq!(counters["device"], device);
            let moved = counters[count].as_u64().unwrap();
            assert!(moved >= 100, "{device} {count}: {moved}");
        }
    }
    hosts.nothing_left();
}

#[test]
fn what_is_wrong_between_two_hosts_is_named() {
    let Some(hosts) = TwoHosts::stand("what is wrong between two hosts") else {
        return;
    };
    let config = hosts.path("config");
    let config = config.to_str().expect("a plain path");
    let wrong = || -> Vec<Value> {
        let program = world::plumbline(&[]).get_program().to_owned();
        let mut command = hosts.inside(&[program.to_str().expect("a plain path")]);
        command.args(["doctor", "--json", "--target", "hosts"]);
        let output = command
            .args(["--ssh-config", config, "--address", "control"])
            .args(["--path", "a", "b"])
            .output();
        let output = output.expect("it starts");
        assert!(output.status.success(), "{}", stderr(&output));
        let findings: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
        findings
            .into_iter()
            .filter(|it| it["level"] != "good")
            .collect()
    };
    assert_eq!(wrong(), Vec::<Value>::new());
    // What joins them swallows datagrams, and leaves ssh alone.
    let rules = "add table bridge hole; \
         add chain bridge hole forward { type filter hook forward priority 0; }; \
         add rule bridge hole forward ip protocol udp ip length > 1300 drop";
    match hosts.inside(&["nft", rules]).output() {
        Ok(done) if done.status.success() => {}
        _ => return world::skip("a black hole between two hosts", "no `nft` for bridges"),
    }
    let found = wrong();
    let hole = found.iter().find(|it| it["check"] == "black hole");
    let hole = hole.unwrap_or_else(|| panic!("{found:#?}"));
    let said = hole["finding"].as_str().expect("a sentence");
    assert!(
        said.contains("from a to b") && said.contains("1300 B arrive"),
        "{said}"
    );
    hosts.nothing_left();
}

#[test]
fn without_an_address_it_is_the_network_of_ssh() {
    let Some(hosts) = TwoHosts::stand("the network of ssh") else {
        return;
    };
    let output = hosts.run(&[&["--host", "a", "--host", "b"], SHORT].concat());
    let (run, trials) = whole_record(&hosts, &output);
    let devices = run["fingerprint"]["devices"].as_object().unwrap();
    assert_eq!(devices.keys().collect::<Vec<_>>(), ["host"]);
    assert_eq!(devices["host"][1]["device"], "control");
    assert_measured(&trials[0]);
    hosts.nothing_left();
}

#[test]
fn pairs_of_hosts_are_compared_in_one_run() {
    let Some(hosts) = TwoHosts::stand("pairs of hosts") else {
        return;
    };
    let pairs = [
        "--pair",
        "there=a,b",
        "--pair",
        "back=b,a",
        "--baseline",
        "there",
    ];
    let output = hosts.run(&[&pairs[..], SHORT].concat());
    let (run, trials) = whole_record(&hosts, &output);
    let labels = run["plan"]["treatments"].as_array().unwrap().iter();
    let labels: Vec<&Value> = labels.map(|one| &one["label"]).collect();
    assert_eq!(labels, ["there", "back"]);
    trials.iter().for_each(assert_measured);
    // Pairs are machines of their own and take no turns.
    let rotation = |trial: &Value| trial["observation"]["common"]["rotation"].clone();
    assert!(trials.iter().all(|it| rotation(it).is_null()));
    // Of the second pair both machines are others than the first sender's, as
    // far as the run can know.
    let others = run["fingerprint"]["others"].as_object().unwrap();
    assert_eq!(others.keys().collect::<Vec<_>>(), ["back client"]);
    hosts.nothing_left();
}

#[test]
fn what_ssh_refuses_is_told_with_its_remedy() {
    let Some(hosts) = TwoHosts::stand("what ssh refuses") else {
        return;
    };
    for (host, says) in [
        ("b-wrong", ["Permission denied", "authorized_keys"]),
        (
            "b-unknown",
            ["Host key verification failed", "connect once by hand"],
        ),
        ("b-foreign", ["it is Linux on riscv64", "--program"]),
        ("nobody.invalid", ["Could not resolve", "spelt right"]),
    ] {
        let output = hosts.run(&[&["--host", "a", "--host", host], SHORT].concat());
        assert_eq!(output.status.code(), Some(2), "{host}");
        let said = stderr(&output);
        for words in says.iter().chain(&[host]) {
            assert!(said.contains(words), "{host}: {words}: {said}");
        }
        assert_eq!(world::runs_in(&hosts.path("out")), Vec::<PathBuf>::new());
        hosts.nothing_left();
    }
}

#[test]
fn a_host_without_room_or_the_network_is_told() {
    let Some(hosts) = TwoHosts::stand("a host without room") else {
        return;
    };
    let full = hosts.path("full-b");
    let full = full.to_str().unwrap();
    let pair = ["--host", "a", "--host", "b"];
    for (code, more, says) in [
        (
            2,
            ["--host-directory", full],
            ["No space left", "make room"],
        ),
        (
            2,
            ["--host-directory", "/nowhere"],
            ["/nowhere", "choose a place"],
        ),
        (
            2,
            ["--address", "192.168.7.0/24"],
            ["no address in 192.168.7.0/24", "direct 10.1.0"],
        ),
        (
            2,
            ["--address", "control,direct"],
            ["by direct and not from", "of one network"],
        ),
        (2, ["--family", "6"], ["over IPv6", "--address"]),
        (
            64,
            ["--placement", "same-node"],
            ["same-node", "--target lab"],
        ),
        (
            2,
            ["--program", "/dev/null"],
            ["/dev/null", "no program for Linux"],
        ),
        (64, ["--network", "vxlan"], ["vxlan", "these hosts have"]),
    ] {
        let output = hosts.run(&[&pair[..], &more[..], SHORT].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        for words in says {
            assert!(said.contains(words), "{more:?}: {words}: {said}");
        }
        hosts.nothing_left();
    }
}

/// Starts a run of long trials.
fn long_run(hosts: &TwoHosts, before: &[&str], more: &[&str]) -> Child {
    let mut command = hosts.run_with(before, &[TWO_TRIALS, more].concat());
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

/// Waits until both agents of a first trial run beside the observers.
fn until_a_trial_runs(hosts: &TwoHosts) {
    // The run directory is there once every path was tried.
    let out = hosts.path("out");
    eventually("four agents run a trial", Duration::from_secs(30), || {
        std::fs::read_dir(&out).is_ok_and(|it| it.count() > 0) && hosts.agents() == 4
    });
}

/// Their mounts, and of the controller and of each host, whose network a sleeping process keeps,
/// devices with addresses and qdiscs, routes, rules, what nftables has, and settings: how many
/// connections are tracked is none.
#[track_caller]
fn stands(hosts: &TwoHosts) -> String {
    const SHOW: &str = "cat /proc/self/mountinfo; for process in /proc/[0-9]*; do \
            case $process,$(cat $process/comm) in /proc/1,* | *,sleep) ;; *) continue ;; esac; \
            nsenter --net=$process/ns/net sh -c \"ip address; tc qdisc show; \
                for family in -4 -6; do \
                    ip \\$family route show table all | sed 's/ linkdown//'; ip \\$family rule; \
                done; \
                nft --stateless list ruleset; \
                grep -rs '' /proc/sys/net | grep -v nf_conntrack_count | sort\"; \
        done";
    let shown = hosts.inside(&["sh", "-c", SHOW]).output();
    let shown = shown.expect("it starts");
    let text = world::stdout(&shown);
    // Devices of the controller, and of both hosts.
    for (device, count) in [(" to-b@", 1), (" direct@", 2)] {
        assert_eq!(text.matches(device).count(), count, "{text}");
    }
    text
}

/// First while a trial runs, then at moments from the start to a while into a trial.
#[test]
fn a_controller_that_is_killed_leaves_nothing_on_the_hosts() {
    const TEST: &str = "a_controller_that_is_killed_leaves_nothing_on_the_hosts";
    let Some(hosts) = TwoHosts::stand("a killed controller and its hosts") else {
        return;
    };
    let mut moments = Moments::new(TEST);
    // Of the machine, and of the namespaces in which hosts and controller are.
    let before = Inventory::take();
    eventually("their addresses are there", CLEANED, || {
        !stands(&hosts).contains(" tentative ")
    });
    let (processes, stood) = (hosts.processes(), stands(&hosts));
    let ttl = "/proc/sys/net/ipv4/ip_default_ttl";
    for (plant, remove) in [
        (
            "ip -6 rule add priority 7 table 7",
            "ip -6 rule del priority 7",
        ),
        (&*format!("echo 100 >{ttl}"), &*format!("echo 64 >{ttl}")),
    ] {
        let done = |order| {
            let status = hosts.inside(&["sh", "-c", order]).status();
            assert!(status.expect("a shell starts").success(), "{order}");
        };
        done(plant);
        assert!(stands(&hosts) != stood, "{plant}: what is planted is found");
        done(remove);
    }
    let mut span = None;
    for _ in 0..times(3) {
        let told = hosts.path("pid");
        // `exec`, so that the number that the shell tells is the program's.
        let tell = format!("echo $$ > {}; exec \"$@\"", told.display());
        let begun = Instant::now();
        let mut child = long_run(&hosts, &["sh", "-c", &tell, "sh"], &["--duration", "60s"]);
        if let Some(span) = span {
            let moment = moments.within(span);
            std::thread::sleep(moment);
            say(&format!("killed after {moment:?}"));
        } else {
            until_a_trial_runs(&hosts);
            span = Some(begun.elapsed() * 3 / 2);
        }
        let pid = || std::fs::read_to_string(&told).unwrap_or_default();
        eventually("its number is told", CLEANED, || pid().ends_with('\n'));
        let killed = hosts.inside(&["kill", "-KILL", pid().trim()]).status();
        assert!(killed.expect("kill runs").success());
        // It would go on for longer.
        eventually("the load has stopped", LEASE + CLEANED, || {
            hosts.agents() == 0
        });
        child.wait().expect("it is ours");
        hosts.nothing_left();
        eventually("every process has ended", CLEANED, || {
            hosts.processes() == processes
        });
        eventually("mounts and networks are as before", CLEANED, || {
            stands(&hosts) == stood
        });
        before.assert_unchanged();
        std::fs::remove_file(&told).expect("it is there");
    }
}

#[test]
fn a_connection_that_is_cut_ends_the_load_and_the_next_trial_connects_again() {
    let Some(hosts) = TwoHosts::stand("a cut connection") else {
        return;
    };
    let child = long_run(&hosts, &[], &["--duration", "4s"]);
    until_a_trial_runs(&hosts);
    let link = |state| {
        let status = hosts.inside(&["ip", "link", "set", "to-b", state]).status();
        assert!(status.expect("ip runs").success());
    };
    link("down");
    let at_b = || {
        std::fs::read_dir(hosts.path("tmp-b"))
            .expect("it stands")
            .count()
    };
    // The host itself notices, without a word from anybody.
    eventually("host b has cleaned up", LEASE + CLEANED, || at_b() == 0);
    link("up");
    let output = child.wait_with_output().expect("it is ours");
    let (_, trials) = whole_record(&hosts, &output);
    assert_eq!(trials.len(), 2);
    assert_eq!(trials[0]["status"]["status"], "failed");
    assert_measured(&trials[1]);
    hosts.nothing_left();
}
