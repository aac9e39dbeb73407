//! Why packets are dropped, as far as a kernel tells.

use crate::btf;

const REASONS: &str = "skb_drop_reason";

/// The program for packets that are dropped, with its tracepoint. Where that tells the reason, as
/// it has since Linux 5.17, the program may note it.
pub(crate) fn program(may_tell: bool) -> (&'static str, &'static str) {
    let program = match may_tell && btf::enumerators(REASONS).is_some() {
        true => "on_dropped",
        false => "on_dropped_for_no_reason",
    };
    (program, "kfree_skb")
}

/// The kernel's name for a reason. Zero is none: not specified in Linux 5.17, and not dropped later.
pub(crate) fn name(reason: u32) -> String {
    if reason == 0 {
        return "reason unknown".to_owned();
    }
    let known = btf::enumerators(REASONS);
    let named = known.and_then(|all| all.into_iter().find(|(number, _)| *number == reason));
    named.map_or_else(|| format!("reason {reason}"), |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_never_without_words() {
        assert_eq!(name(0), "reason unknown");
        assert_eq!(name(u32::MAX), format!("reason {}", u32::MAX));
    }
}
