//! What fuzzing targets reach of the readers of `/proc` and `/sys`.

use std::collections::BTreeMap;

use super::{IdleCounter, conntrack, cpu, idle, protocol, softnet};
use crate::cgroup;
use crate::cpu::{is_guest, listed, user_share};
use crate::identity::state_in;
use crate::user_mode::named_in;
use crate::waiting::waiting_in;

/// Reads a text as each of the files that there are.
///
/// # Panics
///
/// When what is read is impossible.
pub fn files(text: &str) {
    let lines = text.lines().count();
    let cpus = cpu::parse(text, 10_000_000);
    assert!(cpus.is_none_or(|it| it.len() <= lines));
    let mut counters = BTreeMap::new();
    protocol::parse_paired_lines(text, &mut counters);
    protocol::parse_columns(text, &mut counters);
    let totals = protocol::totals(&counters);
    assert!(totals == protocol::ProtocolTotals::default() || !counters.is_empty());
    // Each is a sum of numbers of 32 bits.
    let most = u64::from(u32::MAX) * text.len() as u64;
    assert!(softnet::parse(text).is_none_or(|it| it.dropped <= most));
    assert!(conntrack::dropped(text).is_none_or(|it| it <= most));
    let uptime = idle::parse_uptime(text.as_bytes());
    assert!(uptime.is_none_or(|it| it % IdleCounter::STEP_NS == 0));
    // Ten digits of a number take a byte each.
    let idle_us = idle::parse(text.as_bytes());
    assert!(idle_us.is_none_or(|it| it.to_string().len() <= text.len()));
    assert!(named_in(text).is_none_or(|it| it.len() < text.len()));
    let share = user_share(text);
    assert!((0.0..=1.0).contains(&share), "{share}");
    // Each takes more than one byte of the text, and is bounded.
    assert!(listed(text).len() <= 8_192 * text.len().max(1));
    assert!(waiting_in(text, 80, false).len() <= lines);
    let began = state_in(text).map(|(_, began)| began);
    assert!(began.is_none_or(|it| text.contains(&it)));
    // Of both files that it takes: who is in a group, and where groups are mounted.
    let group = cgroup::of(text, text);
    assert!(group.is_none_or(|it| it.as_os_str().len() <= 2 * text.len()));
    assert!(!is_guest(text) || text.contains("hypervisor"));
}
