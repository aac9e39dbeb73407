//! SIGKILL of a process that holds a lab, with agents running in it, leaves no
//! process and no namespace behind.
//!
//! This program is the test and the process that is killed (`hold`), so it has
//! its own `main`. `cat` stands in for an agent.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use plumbline_experiment::{Family, Placement};
use plumbline_harness::Path;
use plumbline_lab::{Lab, LabOptions};
use plumbline_testkit as testkit;

const LIMIT: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("hold") => hold(),
        _ => {
            if testkit::in_private_namespaces("a killed lab leaves nothing") {
                a_killed_lab_leaves_nothing();
                an_agent_killed_leaves_the_lab_standing();
            }
            println!("killed: ok");
        }
    }
    ExitCode::SUCCESS
}

/// Holds a lab with two agents, tells its namespaces and processes, and waits.
fn hold() {
    let mut lab = Lab::new(LabOptions {
        agent: "/bin/cat".into(),
        agent_arguments: Vec::new(),
        mtu: 1500,
        cni_directories: Vec::new(),
    });
    let standing = lab.stand("vxlan", Placement::CrossNode, Family::V4);
    let standing = standing.expect("stands");
    let mut agents = Vec::new();
    for site in [Path::client(standing), Path::server(standing)] {
        let mut link = site.start_agent().expect("started");
        // An answer shows that it has entered its namespace.
        let mut word = [0; 5];
        link.input.write_all(b"ready").expect("written");
        link.output.read_exact(&mut word).expect("answered");
        agents.push(link);
    }
    let topology = standing.topology();
    let pods = topology.pods.iter().map(|pod| &pod.place);
    let places = topology.nodes.iter().chain(pods);
    let inodes = places.map(|place| place.namespace.inode().to_string());
    println!("{}", inodes.collect::<Vec<_>>().join(" "));
    std::io::stdout().flush().expect("flushed");
    std::thread::sleep(Duration::from_secs(60));
}

struct Holder {
    process: Child,
    namespaces: BTreeSet<u64>,
}

fn holder() -> Holder {
    let program = std::env::current_exe().expect("this program");
    let mut process = Command::new(program)
        .arg("hold")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut line = String::new();
    let mut output = BufReader::new(process.stdout.take().expect("piped"));
    output.read_line(&mut line).expect("told");
    let namespaces = line
        .split_whitespace()
        .map(|inode| inode.parse().expect("a number"));
    let namespaces: BTreeSet<u64> = namespaces.collect();
    assert_eq!(namespaces.len(), 4, "two nodes and two pods: {line}");
    Holder {
        process,
        namespaces,
    }
}

fn a_killed_lab_leaves_nothing() {
    let mut holder = holder();
    let agents = inside(&holder.namespaces);
    assert_eq!(agents.len(), 2, "the two agents: {agents:?}");
    assert!(
        held_by(holder.process.id(), &holder.namespaces),
        "the holder has descriptors"
    );

    holder.process.kill().expect("killed");
    holder.process.wait().expect("reaped");
    let deadline = Instant::now() + LIMIT;
    loop {
        let processes = inside(&holder.namespaces);
        let held = processes_with_descriptors(&holder.namespaces);
        if processes.is_empty() && held.is_empty() {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "inside: {processes:?}, holding: {held:?}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn an_agent_killed_leaves_the_lab_standing() {
    let mut holder = holder();
    let agents = inside(&holder.namespaces);
    let victim = *agents.first().expect("an agent");
    let status = Command::new("kill")
        .args(["-9", &victim.to_string()])
        .status();
    assert!(status.expect("kill is there").success());
    let deadline = Instant::now() + LIMIT;
    while inside(&holder.namespaces).contains(&victim) {
        assert!(Instant::now() < deadline, "the agent does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(
        inside(&holder.namespaces).len(),
        1,
        "the other agent runs on"
    );
    assert!(
        holder.process.try_wait().expect("asked").is_none(),
        "the holder runs on"
    );
    holder.process.kill().expect("killed");
    holder.process.wait().expect("reaped");
}

/// Processes that run in one of the namespaces.
fn inside(namespaces: &BTreeSet<u64>) -> BTreeSet<u32> {
    let runs_inside = |pid: &u32| {
        let link = std::fs::read_link(format!("/proc/{pid}/ns/net"));
        link.is_ok_and(|link| names_one(&link.to_string_lossy(), namespaces))
    };
    pids().filter(runs_inside).collect()
}

/// Processes that have a descriptor of one of the namespaces.
fn processes_with_descriptors(namespaces: &BTreeSet<u64>) -> BTreeSet<u32> {
    pids().filter(|pid| held_by(*pid, namespaces)).collect()
}

fn held_by(pid: u32, namespaces: &BTreeSet<u64>) -> bool {
    let Ok(descriptors) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    descriptors
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .any(|link| names_one(&link.to_string_lossy(), namespaces))
}

/// Whether a link such as `net:[4026532008]` is one of the namespaces.
fn names_one(link: &str, namespaces: &BTreeSet<u64>) -> bool {
    link.strip_prefix("net:[")
        .and_then(|rest| rest.strip_suffix(']'))
        .and_then(|inode| inode.parse().ok())
        .is_some_and(|inode| namespaces.contains(&inode))
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc is mounted");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}
