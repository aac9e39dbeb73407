//! A node that tracks as many connections as it may while a trial runs.

use std::collections::BTreeSet;
use std::fs::File;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Instant;

use plumbline_sys::counters::{ConntrackTotals, conntrack};

use crate::inventory::Inventory;
use crate::left::{enterable_lab, family, held_namespaces, inside, nothing_left, own_namespaces};
use crate::observed::whole_lines;
use crate::world::{self, PATIENCE, Running, eventually, output, run_directory, stdout};

/// A single trial of some seconds, over a service whose rules track connections.
const RUN: &[&str] = &[
    "run",
    "--network",
    "vxlan",
    "--baseline",
    "vxlan",
    "--services",
    "5",
    "--proxy",
    "nftables",
    "--workload",
    "rr",
    "--rate",
    "200",
    "--blocks",
    "1",
    "--duration",
    "5s",
    "--control",
    "off",
    "--set",
    "design.retries=0",
    "--out",
];

/// The connections that a node tracks, and two ends for more. How many there may be is the
/// machine's to say, and no namespace's.
struct Table {
    namespace: File,
    sender: UdpSocket,
    receiver: UdpSocket,
    sent: u32,
}

impl Table {
    /// `None` where those are not tracked.
    fn of(namespace: File) -> Option<Self> {
        let bind = || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port is free");
        let (sender, receiver) = inside(&namespace, || (bind(), bind()));
        let mut table = Self {
            namespace,
            sender,
            receiver,
            sent: 0,
        };
        table.add(100);
        (table.totals().entries >= 100).then_some(table)
    }

    fn totals(&self) -> ConntrackTotals {
        inside(&self.namespace, conntrack).expect("the kernel counts them")
    }

    /// Each datagram goes to an address of its own, and so is a connection of its own.
    fn add(&mut self, count: u32) {
        let port = self.receiver.local_addr().expect("it is bound").port();
        for _ in 0..count {
            let address = Ipv4Addr::from_bits(0x7f01_0000 + self.sent);
            // It may be refused for want of room.
            let _ = self.sender.send_to(&[0], (address, port));
            self.sent += 1;
        }
    }
}

/// The namespaces that a program has.
fn namespaces(program: u32) -> Vec<File> {
    let held = held_namespaces(program).into_iter();
    held.filter_map(|it| File::open(it).ok()).collect()
}

fn is_one_of(namespace: &File, others: &[File]) -> bool {
    let inode = |it: &File| it.metadata().expect("it is open").ino();
    others.iter().any(|it| inode(it) == inode(namespace))
}

/// Adds to the table of a node that tracks connections, for as long as a program runs. The kernel
/// makes room now and then, and what is made for a trial may replace what the path was tried in.
fn fill_while(run: &mut Running) {
    let mut table: Option<Table> = None;
    let deadline = Instant::now() + PATIENCE;
    while run.0.try_wait().expect("it is ours").is_none() && Instant::now() < deadline {
        let held = namespaces(run.pid());
        table = table.filter(|it| is_one_of(&it.namespace, &held));
        table = table.or_else(|| held.into_iter().find_map(Table::of));
        table.iter_mut().for_each(|it| it.add(5_000));
    }
}

/// A table that is nearly full is planted on a path, and what is put into it beyond its limit
/// while packets of the path are watched.
#[test]
fn what_a_full_table_has_no_room_for_is_told_of_a_path() {
    let test = "what a full table has no room for";
    let Some(_alone) = enterable_lab(test) else {
        return;
    };
    if !Path::new("/usr/sbin/nft").exists() {
        return world::skip(test, "`nft` is not installed");
    }
    let order = ["doctor", "--json", "--path", "vxlan"];
    let mut doctor = Running::start(&[&order[..], &["--fault", "conntrack-full"]].concat());
    fill_while(&mut doctor);
    let code = doctor.wait(PATIENCE);
    let told = std::io::read_to_string(doctor.0.stdout.take().unwrap()).unwrap();
    let said = std::io::read_to_string(doctor.0.stderr.take().unwrap()).unwrap();
    if code != Some(0) && said.contains("is not supported here") {
        return world::skip(test, &said);
    }
    assert_eq!(code, Some(0), "{said}");
    let found: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    let mut found = found.as_array().expect("a list").iter();
    let full = found.find(|it| it["check"] == "connection tracking");
    let full = full.expect("it is looked at");
    assert_eq!(full["level"], "bad", "{full}");
    let evidence = full["finding"].as_str().expect("words");
    let lost = evidence.strip_suffix(" dropped for want of room meanwhile");
    let lost = lost.and_then(|it| it.rsplit_once(" in node1, "));
    let lost = lost.unwrap_or_else(|| panic!("{evidence}")).1;
    assert!(lost.parse::<u64>().is_ok_and(|it| it > 0), "{evidence}");
}

#[test]
fn a_table_of_tracked_connections_that_is_full_voids_the_trial() {
    let test = "a table of tracked connections that is full";
    let Some(_alone) = enterable_lab(test) else {
        return;
    };
    if !Path::new("/usr/sbin/nft").exists() {
        return world::skip(test, "`nft` is not installed");
    }
    let before = Inventory::take();
    let out = tempfile::tempdir().unwrap();
    let mut run = Running::start(&[RUN, &[out.path().to_str().unwrap()]].concat());
    let mut pids = BTreeSet::new();
    eventually("a sender and a receiver run", PATIENCE, || {
        pids = family(run.pid());
        !world::runs_in(out.path()).is_empty() && pids.len() >= 3
    });
    let own = own_namespaces(&pids);
    fill_while(&mut run);
    assert_eq!(run.wait(PATIENCE), Some(2), "no trial counts");
    let said = std::io::read_to_string(run.0.stderr.take().unwrap()).unwrap();
    nothing_left(&pids, &own);
    before.assert_unchanged();

    let directory = run_directory(out.path());
    let [trial] = &whole_lines(&directory)[..] else {
        panic!("one trial: {said}");
    };
    let gates = trial["status"]["gates"].as_array().expect("it is void");
    let gate = gates.iter().find(|it| it["gate"] == "conntrack-full");
    let gate = gate.unwrap_or_else(|| panic!("{gates:?}"));
    let max = conntrack().expect("the kernel counts them").max;
    assert_eq!(gate["max"].as_u64(), Some(max), "{gate}");
    assert!(gate["dropped"].as_u64() > Some(0), "{gate}");
    let namespace = gate["namespace"].as_str().expect("a name");
    assert!(["node1", "node2"].contains(&namespace), "{gate}");
    assert!(said.contains("connections and dropped"), "{said}");
    let told = stdout(&output(&["report", directory.to_str().unwrap()]));
    let told: Vec<&str> = told.split_whitespace().collect();
    let told = told.join(" ");
    assert!(
        told.contains("table of tracked connections full 1×"),
        "{told}"
    );
}
