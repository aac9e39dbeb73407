//! Commands that run while traffic goes on, in the lab: what the traffic survived is as long
//! as what was planted, and nothing of a command stays.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::left::{MARK, marked};
use crate::observed::whole_lines;
use crate::world::{self, Running, eventually, plumbline, run_directory, stderr};

const MS: u64 = 1_000_000;

/// Two repetitions, a second each beside what the command takes.
const SHORT: &[&str] = &[
    "--blocks",
    "2",
    "--set",
    "design.warm_up=400ms",
    "--duration",
    "700ms",
    "--set",
    "design.retries=2",
];

/// Has the sender's node drop all that it sends for some 300 ms, and dates in a file, with
/// lines of nanoseconds, what it does before and after. (A device that is down forgets its
/// neighbours, and the kernel asks for them again only after a second.)
fn off(dates: &Path) -> String {
    let date = format!("date +%s%N >>'{}'", dates.display());
    [
        &*date,
        "tc qdisc add dev eth0 root pfifo limit 0",
        &date,
        "sleep 0.3",
        &date,
        "tc qdisc del dev eth0 root",
        &date,
    ]
    .join(" && ")
}

/// How long each outage was at least and at most, in nanoseconds, by the dates of [`off`].
fn planted(dates: &Path) -> Vec<[u64; 2]> {
    let text = std::fs::read_to_string(dates).unwrap();
    let dates: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
    let outages = dates.chunks_exact(4);
    outages.map(|it| [it[2] - it[1], it[3] - it[0]]).collect()
}

fn survive(out: &Path, mark: &str, network: &str, during: &str, more: &[&str]) -> Output {
    plumbline(&["survive", "--out", out.to_str().unwrap()])
        .args(["--network", network, "--during", during])
        .args(SHORT)
        .args(more)
        .env(MARK, mark)
        .output()
        .expect("the program starts")
}

/// Whether the commands of these tests are there; else a counted skip.
fn has_tools(test: &str) -> bool {
    let has = |tool: &str| Command::new(tool).arg("-V").output().is_ok();
    let has_all = ["ip", "tc", "nsenter"].into_iter().all(has);
    if !has_all {
        world::skip(test, "no ip, tc or nsenter");
    }
    has_all
}

/// What was seen in the trials that count, with what the program said: of the first of ten
/// runs that has so many, for a machine that is somebody else's has few.
fn seen(
    (mark, least): (&str, usize),
    network: &str,
    during: &str,
    more: &[&str],
) -> (Output, Vec<Value>) {
    for _ in 0..10 {
        let out = tempfile::tempdir().unwrap();
        let result = survive(out.path(), mark, network, during, more);
        if stderr(&result).contains("not supported here") {
            return (result, Vec::new());
        }
        assert!(marked(mark).is_empty(), "processes are left");
        let trials = whole_lines(&run_directory(out.path()));
        let counts = |it: &Value| it["status"]["status"] == "valid";
        let counted = trials.into_iter().filter(counts);
        let seen: Vec<Value> = counted
            .map(|it| it["observation"]["what"].clone())
            .collect();
        if seen.len() >= least {
            return (result, seen);
        }
    }
    panic!("too few trials of ten runs count");
}

fn number(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap_or_else(|| panic!("{key}: {of}"))
}

/// The longest stretch of requests without an answer in time, as reports have it, in
/// nanoseconds, and whether it ends.
fn longest_gap(flow: &Value) -> (u64, bool) {
    let spells = flow["spells"].as_array().unwrap();
    let is_late = |it: &Value| it["outcome"] != "in-time";
    let runs = spells.chunk_by(|one, next| is_late(one) == is_late(next));
    let length = |run: &[Value]| {
        number(&run[run.len() - 1], "last_ns") + number(flow, "gap_ns")
            - number(&run[0], "first_ns")
    };
    let late = runs.filter(|run| is_late(&run[0]));
    let Some(longest) = late.max_by_key(|run| length(run)) else {
        return (0, true);
    };
    (length(longest), longest.last() != spells.last())
}

/// The flows of all repetitions of a run that was disturbed, and the outages that were planted.
type Endured = (Vec<Value>, Vec<[u64; 2]>);

fn endured() -> Endured {
    let directory = tempfile::tempdir().unwrap();
    let dates = directory.path().join("dates");
    let limit = ["--limit", "gap=200ms"];
    let (result, seen) = seen(("outage", 1), "host", &off(&dates), &limit);
    assert_eq!(result.status.code(), Some(1), "{}", stderr(&result));
    let said = stderr(&result);
    assert!(said.contains("is the limit"), "{said}");
    let mut all = Vec::new();
    for one in &seen {
        let flows = one["flows"].as_array().unwrap();
        let kinds: Vec<&str> = flows
            .iter()
            .map(|it| it["kind"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["standing", "new", "datagram"]);
        assert_eq!(number(&flows[0], "broken"), 0);
        // Each moment has its request.
        for flow in flows {
            let spells = flow["spells"].as_array().unwrap();
            let requests: u64 = spells.iter().map(|it| number(it, "requests")).sum();
            let first = number(&spells[0], "first_ns");
            let last = number(&spells[spells.len() - 1], "last_ns");
            assert_eq!(requests, (last - first) / MS + 1, "{flow}");
        }
        all.extend(flows.iter().cloned());
    }
    (all, planted(&dates))
}

/// The first flow whose longest gap is none of the planted outages, to two milliseconds.
fn disagrees((flows, planted): &Endured) -> Option<&Value> {
    let agrees = |flow: &&Value| {
        let (gap, ends) = longest_gap(flow);
        // A standing connection goes on with the next try of TCP.
        let goes_on = flow["kind"] == "standing";
        let is_it =
            |[least, most]: &[u64; 2]| gap + 2 * MS >= *least && (goes_on || gap <= most + 2 * MS);
        ends && planted.iter().any(is_it)
    };
    flows.iter().find(|flow| !agrees(flow))
}

/// Datagrams and new connections have a gap as long as the node was off the wire, by the dates
/// of who took it off. A busy machine sends late and answers late: one run of ten has to agree.
#[test]
fn a_planted_outage_is_measured_to_two_milliseconds() {
    let test = "a_planted_outage_is_measured";
    let Some(_alone) = world::lab(test).filter(|_| has_tools(test)) else {
        return;
    };
    let tried = world::in_time(endured, |it| disagrees(it).is_none());
    let planted = &tried.1;
    assert!(!planted.is_empty());
    if let Some(flow) = disagrees(&tried) {
        panic!("{:?} of {planted:?}: {flow}", longest_gap(flow));
    }
}

/// A program that carries packets is found by its number, and is there again in the next
/// repetition.
#[test]
fn what_a_command_destroys_is_there_again_afterwards() {
    let test = "what_a_command_destroys";
    let Some(_alone) = world::lab(test).filter(|_| has_tools(test)) else {
        return;
    };
    let during = "kill -9 $PLUMBLINE_PIDS && nsenter --net=$PLUMBLINE_POD2 ip link show eth0";
    let (result, seen) = seen(("destroys", 2), "flannel-udp", during, &[]);
    if seen.is_empty() {
        return world::skip(test, &stderr(&result));
    }
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    assert!(!stderr(&result).contains("failed"), "{}", stderr(&result));
    for flow in seen.iter().flat_map(|it| it["flows"].as_array().unwrap()) {
        let (gap, ends) = longest_gap(flow);
        assert!(!ends && gap > 500 * MS, "{flow}");
    }
    assert!(
        seen.iter()
            .all(|it| number(&it["flows"][0], "connections") == 100)
    );
}

#[test]
fn a_command_that_fails_is_said_and_the_run_ends() {
    let Some(_alone) = world::lab("a_command_that_fails_is_said") else {
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let during = "echo no such agent >&2; exit 3";
    let more = ["--set", "design.retries=0"];
    let result = survive(out.path(), "fails", "host", during, &more);
    assert_eq!(result.status.code(), Some(2), "{}", stderr(&result));
    for said in ["no such agent", "exit status: 3"] {
        assert!(stderr(&result).contains(said), "{}", stderr(&result));
    }
    assert!(marked("fails").is_empty(), "processes are left");
    // Who resumes the run need not be who typed it.
    let run = run_directory(out.path());
    let resumed = world::output(&["survive", "--resume", run.to_str().unwrap()]);
    assert_eq!(resumed.status.code(), Some(64), "{}", stderr(&resumed));
    for said in [during, "--allow-commands"] {
        assert!(stderr(&resumed).contains(said), "{}", stderr(&resumed));
    }
}

#[test]
fn a_command_that_never_ends_is_killed_with_all_that_it_started() {
    let Some(_alone) = world::lab("a_command_that_never_ends_is_killed") else {
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let more = ["--set", "workload.limit=300ms", "--set", "design.retries=0"];
    let result = survive(out.path(), "never", "host", "sleep 60 & sleep 60", &more);
    assert_eq!(result.status.code(), Some(2), "{}", stderr(&result));
    let said = "had not ended after 0.3 s";
    assert!(stderr(&result).contains(said), "{}", stderr(&result));
    let limit = Duration::from_secs(3);
    eventually("all to be gone", limit, || marked("never").is_empty());
}

#[test]
fn ctrl_c_ends_the_command_and_all_traffic() {
    let Some(_alone) = world::lab("ctrl_c_ends_the_command") else {
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let begun = out.path().join("begun");
    let during = format!("touch {}; sleep 60", begun.display());
    let runs = out.path().join("runs");
    let limited = ["survive", "--limit", "gap=1s", "--network", "host"];
    let arguments = [&limited[..], &["--during", &during, "--out"]].concat();
    let mut running = Running::start(&[&arguments[..], &[runs.to_str().unwrap()], SHORT].concat());
    let family = || crate::left::family(running.pid());
    eventually("the command to run", Duration::from_secs(20), || {
        begun.exists()
    });
    let all = family();
    // The command, and two agents of each kind of traffic.
    assert!(all.len() >= 8, "{all:?}");
    running.signal(Signal::SIGINT);
    assert_eq!(running.wait(Duration::from_secs(5)), Some(2));
    crate::left::nothing_left(&all, &Default::default());
    // What goes on is held to the same limit.
    let run = run_directory(&runs);
    let to_go_on = format!("survive --limit gap=1000ms --resume {}", run.display());
    let said = running.said();
    assert!(said.contains(&to_go_on), "{said}");
}
