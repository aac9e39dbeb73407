//! SIGKILL of a process that holds a lab, with agents running in it, leaves no
//! process and no namespace behind.
//!
//! This program is the test and the process that is killed (`hold`), so it has
//! its own `main`. `cat` stands in for an agent.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use plumbline_experiment::{Family, Placement, ServiceProxy, Services};
use plumbline_harness::{Path, Target};
use plumbline_lab::{Dressing, Lab, LabError, LabOptions, StandingNetwork};
use plumbline_testkit as testkit;

const LIMIT: Duration = Duration::from_secs(20);
/// Proxies that have many rules for many services.
const WRITTEN: [ServiceProxy; 3] = [
    ServiceProxy::IptablesLegacy,
    ServiceProxy::IptablesNft,
    ServiceProxy::Nftables,
];

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("hold") => hold(),
        Some("forward") => forward(),
        Some("renew") => renew(),
        Some(word) if written(word).is_some() => return dress(word),
        _ => {
            if testkit::in_private_namespaces("a killed lab leaves nothing") {
                a_killed_lab_leaves_nothing();
                a_killed_lab_leaves_no_proxy();
                an_agent_killed_leaves_the_lab_standing();
                a_lab_killed_while_it_is_made_anew_leaves_nothing();
                a_lab_killed_while_rules_are_written_leaves_nothing();
            }
            println!("killed: ok");
        }
    }
    ExitCode::SUCCESS
}

fn lab() -> Lab {
    Lab::new(LabOptions {
        agent: "/bin/cat".into(),
        agent_arguments: Vec::new(),
        mtu: 1500,
        cni_directories: Vec::new(),
        awake: false,
    })
}

/// Makes the paths of a lab anew all the time, and tells when it does.
fn renew() {
    let mut lab = lab().with_clock(|| 0);
    for network in ["vxlan", "host-gw"] {
        let standing = lab.stand(network, Placement::CrossNode, Family::V4);
        standing.expect("stands");
    }
    for block in 0.. {
        println!("{block}");
        std::io::stdout().flush().expect("flushed");
        lab.begin_block(block);
    }
}

/// Holds a lab with two agents, tells its namespaces and processes, and waits.
fn hold() {
    let mut lab = lab();
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
    tell(standing);
}

/// Holds a lab whose services are carried by a process on each node.
fn forward() {
    let mut lab = lab();
    let standing = lab.stand("host-gw", Placement::CrossNode, Family::V4);
    let standing = standing.expect("stands");
    let services = Services {
        count: 3,
        proxy: ServiceProxy::Userspace,
        ..Services::default()
    };
    let dressed = standing.dress(Dressing {
        services,
        ..Dressing::default()
    });
    match dressed {
        Ok(()) => tell(standing),
        Err(error @ LabError::Unsupported { .. }) => println!("unsupported: {error}"),
        Err(error) => panic!("{error}"),
    }
}

/// Tells the namespaces of a path, and waits.
fn tell(standing: &StandingNetwork) {
    tell_namespaces(standing);
    std::thread::sleep(Duration::from_secs(60));
}

fn tell_namespaces(standing: &StandingNetwork) {
    let topology = standing.topology();
    let pods = topology.pods.iter().map(|pod| &pod.place);
    let places = topology.nodes.iter().chain(pods);
    let inodes = places.map(|place| place.namespace.inode().to_string());
    println!("{}", inodes.collect::<Vec<_>>().join(" "));
    std::io::stdout().flush().expect("flushed");
}

fn written(word: &str) -> Option<ServiceProxy> {
    WRITTEN.into_iter().find(|proxy| proxy.as_str() == word)
}

/// Tells the namespaces of a lab, and writes the rules of many services there. Ends
/// without success where something for that is missing.
fn dress(proxy: &str) -> ExitCode {
    let mut lab = lab();
    let standing = lab.stand("host-gw", Placement::CrossNode, Family::V4);
    let standing = standing.expect("stands");
    tell_namespaces(standing);
    let services = Services {
        count: 30_000,
        proxy: written(proxy).expect("its word"),
        ..Services::default()
    };
    let dressed = standing.dress(Dressing {
        services,
        ..Dressing::default()
    });
    match dressed {
        Err(LabError::Unsupported { .. }) => ExitCode::FAILURE,
        dressed => dressed.map(|()| ExitCode::SUCCESS).expect("dressed"),
    }
}

struct Holder {
    process: Child,
    namespaces: BTreeSet<u64>,
}

/// This program in another part, and the first line that it told.
fn started(part: &str) -> (Child, String) {
    let program = std::env::current_exe().expect("this program");
    let mut process = Command::new(program)
        .arg(part)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut line = String::new();
    let mut output = BufReader::new(process.stdout.take().expect("piped"));
    output.read_line(&mut line).expect("told");
    (process, line)
}

fn holder() -> Holder {
    let (process, line) = started("hold");
    holder_of(process, &line)
}

/// A process that has told its namespaces.
fn holder_of(process: Child, line: &str) -> Holder {
    let namespaces = read_namespaces(line);
    assert_eq!(namespaces.len(), 4, "two nodes and two pods: {line}");
    Holder {
        process,
        namespaces,
    }
}

fn read_namespaces(line: &str) -> BTreeSet<u64> {
    let numbers = line.split_whitespace();
    numbers.map(|it| it.parse().expect("a number")).collect()
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
    nothing_is_left(&holder.namespaces);
}

fn a_killed_lab_leaves_no_proxy() {
    let (process, line) = started("forward");
    if let Some(reason) = line.strip_prefix("unsupported: ") {
        return testkit::skip("a killed lab leaves no proxy", reason.trim());
    }
    let mut holder = holder_of(process, &line);
    let proxies = inside(&holder.namespaces);
    assert_eq!(proxies.len(), 2, "one on each node: {proxies:?}");
    holder.process.kill().expect("killed");
    holder.process.wait().expect("reaped");
    nothing_is_left(&holder.namespaces);
}

/// Waits until no process is in one of these namespaces, or holds it.
fn nothing_is_left(namespaces: &BTreeSet<u64>) {
    let deadline = Instant::now() + LIMIT;
    loop {
        let processes = inside(namespaces);
        let held = processes_with_descriptors(namespaces);
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
    signal(victim, "-9");
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

/// Several times, each somewhere else in the middle: it does nothing but that.
fn a_lab_killed_while_it_is_made_anew_leaves_nothing() {
    let mut seen = 0;
    for pause_ms in [0, 5, 20, 45, 80] {
        let (mut process, _) = started("renew");
        std::thread::sleep(Duration::from_millis(pause_ms));
        // Stopped, it cannot make others while these are looked at.
        signal(process.id(), "-STOP");
        let namespaces = held(process.id());
        seen += namespaces.len();
        process.kill().expect("killed");
        process.wait().expect("reaped");
        nothing_is_left(&namespaces);
    }
    assert!(seen > 0, "some of it stood");
}

/// At several moments: while a program writes them, and while this one does.
fn a_lab_killed_while_rules_are_written_leaves_nothing() {
    for proxy in WRITTEN {
        for pause_ms in [10, 100, 400] {
            let (mut process, line) = started(proxy.as_str());
            let namespaces = read_namespaces(&line);
            std::thread::sleep(Duration::from_millis(pause_ms));
            let ended = process.try_wait().expect("asked");
            process.kill().expect("killed");
            process.wait().expect("reaped");
            nothing_is_left(&namespaces);
            match ended.map(|status| status.success()) {
                None => {}
                Some(true) => panic!("{} has written all before", proxy.as_str()),
                Some(false) => testkit::skip("killed while rules are written", proxy.as_str()),
            }
        }
    }
}

fn signal(pid: u32, signal: &str) {
    let status = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(status.expect("kill is there").success());
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
    !held(pid).is_disjoint(namespaces)
}

/// Namespaces that a process has descriptors of.
fn held(pid: u32) -> BTreeSet<u64> {
    let Ok(descriptors) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
        return BTreeSet::new();
    };
    descriptors
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|link| inode(&link.to_string_lossy()))
        .collect()
}

/// Whether a link such as `net:[4026532008]` is one of the namespaces.
fn names_one(link: &str, namespaces: &BTreeSet<u64>) -> bool {
    inode(link).is_some_and(|inode| namespaces.contains(&inode))
}

/// The inode of a network namespace, given a link such as `net:[4026532008]`.
fn inode(link: &str) -> Option<u64> {
    let number = link.strip_prefix("net:[")?.strip_suffix(']')?;
    number.parse().ok()
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc is mounted");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}
