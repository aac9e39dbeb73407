//! Connections that a network namespace tracks.

use std::io;
use std::path::Path;

use super::{malformed, read};

const COUNT: &str = "/proc/sys/net/netfilter/nf_conntrack_count";
const MAX: &str = "/proc/sys/net/netfilter/nf_conntrack_max";
const STATISTICS: &str = "/proc/thread-self/net/stat/nf_conntrack";

/// The table of tracked connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConntrackTotals {
    /// Connections in it now.
    pub entries: u64,
    /// How many it may hold.
    pub max: u64,
    /// Connections that were dropped, new or old, because it was full, since the namespace
    /// was made.
    pub dropped: u64,
}

/// Reads the table of the calling thread's network namespace; nothing where the kernel does
/// not track connections.
///
/// # Errors
///
/// A kernel that does not show them.
pub fn conntrack() -> io::Result<ConntrackTotals> {
    if !Path::new(COUNT).exists() {
        return Ok(ConntrackTotals::default());
    }
    let number = |path: &str| {
        let text = read(path)?;
        let number = text.trim().parse();
        number.map_err(|_| malformed(path, "no number"))
    };
    let dropped = dropped(&read(STATISTICS)?)
        .ok_or_else(|| malformed(STATISTICS, "no column `drop`, or no numbers below"))?;
    Ok(ConntrackTotals {
        entries: number(COUNT)?,
        max: number(MAX)?,
        dropped,
    })
}

/// Names of columns, then a line of hexadecimal numbers for each CPU.
pub(super) fn dropped(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next()?.split_whitespace().collect();
    let column = |name: &str| names.iter().position(|it| *it == name);
    let wanted = [column("drop")?, column("early_drop")?];
    let of_cpu = |line: &str| -> Option<u64> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: &usize| u32::from_str_radix(words.get(*at)?, 16).ok();
        wanted.iter().map(|at| number(at).map(u64::from)).sum()
    };
    lines.map(of_cpu).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_cpus_dropped_is_added_up() {
        let text = "entries  clashres found new drop early_drop icmp_error\n\
                    00000010 00000000 00000001 00000000 0000000a 00000001 00000000\n\
                    00000010 00000000 00000001 00000000 00000010 00000000 00000000\n";
        assert_eq!(dropped(text), Some(27));
        assert_eq!(dropped("entries found\n00000001 00000000\n"), None);
        assert_eq!(dropped("drop early_drop\nx y\n"), None);
        let most = "drop early_drop\nffffffffffffffff 1\n";
        assert_eq!(dropped(most), None, "the kernel counts with 32 bits");
    }
}
