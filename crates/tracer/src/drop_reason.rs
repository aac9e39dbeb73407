//! Why packets are dropped, as far as a kernel tells.

use crate::btf;

const REASONS: &str = "skb_drop_reason";

/// The program for packets that are dropped, with its tracepoint, which has told the reason since
/// Linux 5.17.
pub(crate) fn program() -> (&'static str, &'static str) {
    let program = match btf::enumerators(REASONS) {
        Some(_) => "on_dropped",
        None => "on_dropped_for_no_reason",
    };
    (program, "kfree_skb")
}

/// The kernel's name for a reason.
pub(crate) fn name(reason: u32) -> String {
    let known = btf::enumerators(REASONS);
    let mut names = known.iter().flatten();
    match names.find(|(number, _)| *number == reason) {
        Some((_, name)) => name.clone(),
        None if known.is_none() => "reason unknown".to_owned(),
        None => format!("reason {reason}"),
    }
}
