//! `plumbline doctor --path`: planted faults are named, and healthy paths have none.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use plumbline_lab::{FAULTS, PathFault};
use serde_json::Value;

use crate::world::{self, is_installed, output, stderr};

/// What is said of a path; `Err` with what this kernel or the network lacks.
#[track_caller]
fn findings(arguments: &[&str]) -> Result<Vec<Value>, String> {
    let all = [&["doctor", "--json", "--path"], arguments].concat();
    let output = output(&all);
    let said = stderr(&output);
    let lacks = ["is not supported here", "carries IPv4 only"];
    if !output.status.success() && lacks.iter().any(|it| said.contains(it)) {
        return Err(said);
    }
    assert!(output.status.success(), "{all:?}: {said}");
    let findings: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    crate::documented::check("findings", &findings);
    Ok(findings.as_array().expect("a list").clone())
}

/// What is not as it should be.
fn wrong(findings: &[Value]) -> Vec<&Value> {
    let all = findings.iter();
    all.filter(|it| it["level"] != "good").collect()
}

/// The first of three looks that finds what it should, or the last of them: what the machine
/// does meanwhile, as when it has no CPU for a receiver, is not there again, and what is wrong
/// with a path is.
#[track_caller]
fn look(
    arguments: &[&str],
    mut is_right: impl FnMut(&[Value]) -> bool,
) -> Result<Vec<Value>, String> {
    for _ in 0..2 {
        let found = findings(arguments)?;
        if is_right(&found) {
            return Ok(found);
        }
    }
    findings(arguments)
}

/// Does work in two threads: who looks at a path mostly waits for it.
fn two_at_a_time<T: Sync, R: Send>(each: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let half = |first| -> Vec<R> { each.iter().skip(first).step_by(2).map(&work).collect() };
    std::thread::scope(|scope| {
        let halves: [_; 2] = [0, 1].map(|first| scope.spawn(move || half(first)));
        let each = halves.into_iter().map(|it| it.join().expect("a half"));
        each.flatten().collect()
    })
}

/// What plants a fault on a path on which it can be, and looks for it.
fn planted(fault: &PathFault) -> Vec<&'static str> {
    let network = match fault.name {
        "asymmetric-route" | "rp-filter" | "reordering" => "host-gw",
        _ => "vxlan",
    };
    let mut arguments = vec![network, "--fault", fault.name];
    if fault.name == "ipv4-away" {
        arguments.extend(["--family", "6"]);
    }
    if fault.check == "offload trial" {
        arguments.push("--try-offloads");
    }
    arguments
}

#[test]
fn every_planted_fault_is_named() {
    let test = "every_planted_fault_is_named";
    let Some(_alone) = world::lab(test) else {
        return;
    };
    let mut unnamed = Vec::new();
    // One at a time: maps of eBPF programs are the machine's.
    for fault in FAULTS {
        match look(&planted(fault), |found| names(found, fault.check)) {
            Err(lacks) => world::skip(&format!("{test}, {}", fault.name), &lacks),
            Ok(found) if names(&found, fault.check) && is_told(fault, &found) => {}
            Ok(found) => unnamed.push(format!("{}: {found:#?}", fault.name)),
        }
    }
    assert!(unnamed.is_empty(), "{}", unnamed.join("\n"));
}

/// Whether the evidence tells what faults of one check differ by: who says that packets are too
/// long, which map is full, which offload is off, and which IP version fails. And whether root
/// hears where the kernel drops what does not arrive, and why, if it says so at all.
fn is_told(fault: &PathFault, found: &[Value]) -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    let has_types = std::path::Path::new("/sys/kernel/btf/vmlinux").exists();
    let said = evidence(found, fault.check);
    // Of each direction one sentence. Back from the server nothing is narrow.
    let narrow = |is_said: fn(&str) -> bool| {
        let mut ways = said.iter().filter_map(|it| it.split_once(" B from pod2 "));
        ways.any(|(there, back)| is_said(there) && !back.contains("ICMP"))
    };
    let is_dropped = |it: &&str| it.contains(" of node1 (NETFILTER_DROP)");
    let says = |part: &str| said.iter().any(|it| it.contains(part));
    match fault.name {
        "mtu-one-way" => narrow(|it| it.contains(" answers to longer ones by ICMP")),
        "mtu-refused" => {
            narrow(|it| it.contains("; the own stack refuses longer ones") && !it.contains("ICMP"))
        }
        "maps-full" => says("frontends (id "),
        "maps-evict" => says("connections (id "),
        "offload-off" => says("tx-tcp-segmentation"),
        "gro-off" => says("rx-gro on flannel.1 of node2"),
        "offload-broken-back" => says(", a stream from pod2 to pod1 gets "),
        "ipv6-away" => says("addresses of IPv6,"),
        "ipv4-away" => says("addresses of IPv4,"),
        "loss" if is_root && has_types => said.iter().any(is_dropped),
        // Wrong checksums are found by whoever reads.
        "checksum" if is_root && has_types => {
            let lost = evidence(found, "loss");
            lost.iter().any(|it| it.contains(" at pod2 ("))
        }
        // Neither way.
        "cut" if is_root && has_types => said.len() == 2 && said.iter().all(is_dropped),
        _ => true,
    }
}

/// What is said of a check that finds something wrong.
fn evidence<'a>(found: &'a [Value], check: &str) -> Vec<&'a str> {
    let of_check = wrong(found).into_iter().filter(|it| it["check"] == check);
    of_check.filter_map(|it| it["finding"].as_str()).collect()
}

/// Whether findings name this, each with how sure it is, a remedy, and commands that set it right or
/// show where to look.
fn names(found: &[Value], check: &str) -> bool {
    let named = wrong(found);
    for finding in &named {
        let remedy = finding["remedy"].as_str().unwrap_or_default();
        assert!(!remedy.is_empty(), "{finding}");
        let commands = ["commands", "looks"].map(|it| finding[it].as_array().unwrap().len());
        assert_ne!(commands, [0; 2], "{finding}");
        let sure = finding["certainty"].as_str();
        assert!(matches!(sure, Some("certain" | "sampled")), "{finding}");
    }
    named.iter().any(|it| it["check"] == check)
}

/// Without leave to try offloads a broken one is a stream that stalls, which nothing else explains.
#[test]
fn a_stream_that_stalls_is_named_where_nothing_says_why() {
    let test = "a_stream_that_stalls_is_named_where_nothing_says_why";
    let Some(_alone) = world::lab(test) else {
        return;
    };
    let stalls = |found: &[Value]| {
        let said = evidence(found, "TCP");
        said.iter()
            .any(|it| it.contains("a stream gets ") && it.contains(" segments again, though"))
    };
    let found = match look(&["vxlan", "--fault", "offload-broken"], stalls) {
        Ok(found) => found,
        Err(lacks) => return world::skip(test, &lacks),
    };
    assert!(stalls(&found), "{found:#?}");
    assert!(found.iter().all(|it| it["check"] != "offload trial"));
    let mut looks = wrong(&found).into_iter().map(|it| it["looks"].to_string());
    assert!(looks.any(|it| it.contains("--try-offloads")));
}

/// Each trial takes some seconds, and root has them tried on two networks.
#[test]
fn offloads_that_work_are_tried_without_a_finding() {
    let test = "offloads_that_work_are_tried_without_a_finding";
    let Some(_alone) = world::lab(test) else {
        return;
    };
    let networks = match nix::unistd::geteuid().is_root() {
        true => &["vxlan", "host-gw"][..],
        false => &["vxlan"],
    };
    for network in networks {
        let arguments = [*network, "--try-offloads"];
        let found = look(&arguments, |found| wrong(found).is_empty());
        let found = found.expect("every kernel has this network");
        assert!(wrong(&found).is_empty(), "{network}: {:#?}", wrong(&found));
        let mut trials = found.iter().filter(|it| it["check"] == "offload trial");
        let said = trials.next().and_then(|it| it["finding"].as_str());
        let said = said.expect("they were tried");
        // What each of them does to a stream.
        let count = said
            .strip_prefix("none of ")
            .and_then(|it| it.split(' ').next());
        let count: usize = count.and_then(|it| it.parse().ok()).expect("how many");
        assert!(count >= 4, "both ends and both nodes have some: {said}");
        assert_eq!(said.matches('×').count(), count, "{said}");
    }
}

/// Faults that commands can set right, and the programs that these take. Of the others somebody
/// has to look first: a rule that drops packets may be meant to. The limit of `conntrack-full` is
/// that of the machine, which no test changes.
const MENDED: &[(&str, &str)] = &[
    ("mtu-black-hole", "ip"),
    ("mtu-one-way", "ip"),
    ("mtu-refused", "ip"),
    ("asymmetric-route", "ip"),
    ("rp-filter", "sysctl"),
    ("offload-off", "ethtool"),
    ("gro-off", "ethtool"),
    ("offload-broken", "ethtool"),
    ("offload-broken-back", "ethtool"),
    ("ipv6-away", "ip"),
    ("ipv4-away", "ip"),
];

#[test]
fn the_commands_of_a_remedy_set_right_what_was_found() {
    let test = "the commands of a remedy";
    let Some(_alone) = world::lab(test) else {
        return;
    };
    let wrong_ones = two_at_a_time(FAULTS, |fault| {
        let (_, program) = MENDED.iter().find(|(name, _)| *name == fault.name)?;
        let skipped = |why: &str| world::skip(&format!("{test}, {}", fault.name), why);
        if !is_installed(program) {
            skipped(&format!("needs {program}"));
            return None;
        }
        let mut arguments = planted(fault);
        arguments.push("--try-remedies");
        let is_mended = |found: &[Value]| {
            let mut of_check = found.iter().filter(|it| it["check"] == fault.check);
            of_check.any(|it| it["tried"] == "gone" && it["commands"][0]["place"].is_string())
        };
        match look(&arguments, is_mended) {
            Err(lacks) => skipped(&lacks),
            Ok(found) if is_mended(&found) => {}
            Ok(found) => return Some(format!("{}: {:#?}", fault.name, wrong(&found))),
        }
        None
    });
    let wrong_ones: Vec<String> = wrong_ones.into_iter().flatten().collect();
    assert!(wrong_ones.is_empty(), "{}", wrong_ones.join("\n"));
}

/// What is tried changes something, and so happens in a lab, of which nothing is left.
#[test]
fn remedies_are_tried_in_a_lab_only() {
    for target in ["kubernetes", "hosts"] {
        let order = ["doctor", "--path", "--try-remedies", "--target", target];
        let refused = output(&order);
        assert_eq!(refused.status.code(), Some(64), "{}", stderr(&refused));
        assert!(stderr(&refused).contains("in a lab only"), "{target}");
    }
}

/// With so many, in both placements and IP versions, there are fifty paths.
const MANY_NETWORKS: usize = 15;

/// Of so many healthy paths one may be looked at again: others may have had the machine.
const MOST_AGAIN: usize = 20;

/// Every network that this kernel builds, as root in both placements and IP versions.
#[test]
fn healthy_paths_have_no_finding() {
    let test = "healthy_paths_have_no_finding";
    let Some(_alone) = world::lab(test) else {
        return;
    };
    let listed = world::json(&["list", "networks", "--json"]);
    let listed = listed.as_array().expect("a list");
    let available = listed.iter().filter(|it| it["available"] == true);
    let networks: Vec<&str> = available.filter_map(|it| it["name"].as_str()).collect();
    assert!(!networks.is_empty(), "{listed:?}");
    let scenes = [
        ["--placement", "cross-node", "--family", "4"],
        ["--placement", "cross-node", "--family", "6"],
        ["--placement", "same-node", "--family", "4"],
        ["--placement", "same-node", "--family", "6"],
    ];
    let is_root = nix::unistd::geteuid().is_root();
    let scenes = &scenes[..if is_root { 4 } else { 1 }];
    let mut paths = Vec::new();
    for flags in scenes {
        paths.extend(networks.iter().map(|it| [&[*it], &flags[..]].concat()));
    }
    let again = AtomicUsize::new(0);
    let looks = two_at_a_time(&paths, |arguments| {
        let found = look(arguments, |found| {
            let is_well = wrong(found).is_empty();
            again.fetch_add(usize::from(!is_well), Relaxed);
            is_well
        });
        (arguments.join(" "), found)
    });
    let mut healthy = 0;
    let mut blamed = Vec::new();
    let mut not_looked_at = Vec::new();
    for (arguments, found) in looks {
        match found.as_deref().map(wrong) {
            Err(lacks) => not_looked_at.push(format!("{arguments}: {lacks}")),
            Ok(wrong) if wrong.is_empty() => healthy += 1,
            Ok(wrong) => blamed.push(format!("{arguments}: {wrong:#?}")),
        }
    }
    let again = again.into_inner();
    println!("{healthy} healthy paths without a finding; {again} looks at them had one");
    println!("not looked at: {}", not_looked_at.join(""));
    assert!(blamed.is_empty(), "{}", blamed.join("\n"));
    // What is blamed now and then is blamed on other machines, too.
    let most = paths.len().div_ceil(MOST_AGAIN);
    assert!(
        again <= most,
        "{again} looks at {} healthy paths blamed one",
        paths.len()
    );
    // What is listed as available is built, over IPv4 at least.
    let of_v4 = not_looked_at.iter().filter(|it| it.contains("--family 4"));
    assert_eq!(of_v4.collect::<Vec<_>>(), Vec::<&String>::new());
    let has_v6 = std::path::Path::new("/proc/net/if_inet6").exists();
    if is_root && has_v6 && networks.len() >= MANY_NETWORKS {
        assert!(healthy >= 50, "{healthy} paths: {not_looked_at:?}");
    }
}

#[test]
fn a_fault_that_a_network_has_no_place_for_is_refused() {
    let test = "a_fault_that_a_network_has_no_place_for_is_refused";
    let Some(_alone) = world::lab(test) else {
        return;
    };
    let lacks = findings(&["host", "--fault", "loss"]).expect_err("no node forwards");
    assert!(lacks.contains("vxlan"), "{lacks}");
}

#[test]
fn every_fault_is_in_the_manual() {
    let manual = include_str!("../docs/doctor.md");
    for fault in FAULTS {
        let row = format!("| `{}` | {} | {} |", fault.name, fault.about, fault.check);
        assert!(manual.contains(&row), "docs/doctor.md lacks: {row}");
    }
}
