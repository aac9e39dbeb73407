//! What fuzzing targets reach of the readers of `/proc` and `/sys`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{IdleCounter, conntrack, cpu, idle, protocol, softnet};
use crate::cgroup;
use crate::cpu::{is_guest, listed, user_share};
use crate::identity::state_in;
use crate::user_mode::named_in;
use crate::waiting::waiting_in;

/// Reads a text as each of the files that there are; gives the readers that find something.
///
/// # Panics
///
/// When what is read is impossible.
pub fn files(text: &str) -> Vec<&'static str> {
    let lines = text.lines().count();
    let cpus = cpu::parse(text, 10_000_000);
    assert!(cpus.as_ref().is_none_or(|it| it.len() <= lines));
    let (mut paired, mut columns) = (BTreeMap::new(), BTreeMap::new());
    protocol::parse_paired_lines(text, &mut paired);
    protocol::parse_columns(text, &mut columns);
    for counters in [&paired, &columns] {
        let totals = protocol::totals(counters);
        assert!(totals == protocol::ProtocolTotals::default() || !counters.is_empty());
    }
    // Each is a sum of numbers of 32 bits.
    let most = u64::from(u32::MAX) * text.len() as u64;
    let softnet = softnet::parse(text);
    assert!(softnet.is_none_or(|it| it.dropped <= most));
    let untracked = conntrack::dropped(text);
    assert!(untracked.is_none_or(|it| it <= most));
    let uptime = idle::parse_uptime(text.as_bytes());
    assert!(uptime.is_none_or(|it| it % IdleCounter::STEP_NS == 0));
    // Ten digits of a number take a byte each.
    let idle_us = idle::parse(text.as_bytes());
    assert!(idle_us.is_none_or(|it| it.to_string().len() <= text.len()));
    let kernel = named_in(text);
    assert!(kernel.as_ref().is_none_or(|it| it.len() < text.len()));
    let share = user_share(text);
    assert!((0.0..=1.0).contains(&share), "{share}");
    // Each takes more than one byte of the text, and is bounded.
    let listed = listed(text);
    assert!(listed.len() <= 8_192 * text.len().max(1));
    let [tcp, udp] = [false, true].map(|udp| waiting_in(text, 80, udp));
    assert!(tcp.len() <= lines && udp.len() <= lines);
    let began = state_in(text).map(|(_, began)| began);
    assert!(began.as_ref().is_none_or(|it| text.contains(it)));
    // Of both files that it takes: who is in a group, and where groups are mounted.
    let group = cgroup::of(text, text);
    let length = |it: &PathBuf| it.as_os_str().len();
    assert!(group.as_ref().is_none_or(|it| length(it) <= 2 * text.len()));
    let is_guest = is_guest(text);
    assert!(!is_guest || text.contains("hypervisor"));
    let found = [
        ("CPUs", cpus.is_some_and(|it| !it.is_empty())),
        ("paired lines", !paired.is_empty()),
        ("columns", !columns.is_empty()),
        ("softnet", softnet.is_some_and(|it| it.dropped > 0)),
        ("conntrack", untracked.is_some()),
        ("uptime", uptime.is_some()),
        ("idle time", idle_us.is_some()),
        ("User-mode Linux", kernel.is_some()),
        ("user share", share > 0.0),
        ("list", !listed.is_empty()),
        ("who waits with TCP", !tcp.is_empty()),
        ("who waits with UDP", !udp.is_empty()),
        ("state", began.is_some()),
        ("control group", group.is_some()),
        ("guest", is_guest),
    ];
    let names = found.into_iter().filter(|(_, is_found)| *is_found);
    names.map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::seed;

    #[test]
    fn every_reader_finds_something_in_a_seed() {
        let seeds = [
            ("proc-stat", "CPUs"),
            ("proc-net-snmp", "paired lines"),
            ("proc-net-netstat", "paired lines"),
            ("proc-net-snmp6", "columns"),
            ("proc-net-softnet_stat", "softnet"),
            ("proc-net-stat-nf_conntrack", "conntrack"),
            ("proc-uptime", "uptime"),
            (
                "sys-devices-system-cpu-cpu0-cpuidle-state1-time",
                "idle time",
            ),
            ("proc-cpuinfo", "User-mode Linux"),
            ("proc-cpuinfo-of-a-guest", "guest"),
            ("proc-self-stat", "user share"),
            ("proc-self-stat", "state"),
            ("sys-devices-system-cpu-online", "list"),
            ("list", "list"),
            ("proc-net-tcp", "who waits with TCP"),
            ("proc-net-udp", "who waits with UDP"),
            ("proc-self-cgroup-and-mounts", "control group"),
        ];
        for (name, reader) in seeds {
            let text = String::from_utf8(seed(&format!("proc/{name}"))).unwrap();
            let found = files(&text);
            assert!(found.contains(&reader), "{name}: {reader} not in {found:?}");
        }
    }
}
