//! Receive queues of the CPUs, from `/proc/net/softnet_stat`.

use std::io;

use super::{malformed, read};

const PATH: &str = "/proc/net/softnet_stat";

/// Receive queue counters of all CPUs since boot. The file shows the whole
/// machine, whatever the namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SoftnetTotals {
    /// Packets processed.
    pub processed: u64,
    /// Packets dropped because a backlog was full.
    pub dropped: u64,
    /// Polls that ran out of budget or time with work left.
    pub squeezed: u64,
}

/// Reads the receive queue counters, summed over CPUs. Each is 32 bits wide in
/// the kernel: differences must be taken per CPU modulo 2³² by callers that
/// run for days; a trial is too short to wrap twice.
pub fn softnet() -> io::Result<SoftnetTotals> {
    parse(&read(PATH)?)
        .ok_or_else(|| malformed(PATH, "a line has fewer than three hexadecimal words"))
}

pub(super) fn parse(text: &str) -> Option<SoftnetTotals> {
    let mut totals = SoftnetTotals::default();
    for line in text.lines() {
        let mut words = line
            .split_ascii_whitespace()
            .map(|word| u32::from_str_radix(word, 16).map(u64::from));
        totals.processed += words.next()?.ok()?;
        totals.dropped += words.next()?.ok()?;
        totals.squeezed += words.next()?.ok()?;
    }
    Some(totals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_over_cpus() {
        let text = "00000010 00000001 00000002 0\n000000ff 00000000 00000001 0\n";
        let expected = SoftnetTotals {
            processed: 0x10f,
            dropped: 1,
            squeezed: 3,
        };
        assert_eq!(parse(text), Some(expected));
        assert_eq!(parse("10 zz 0\n"), None);
        // More than the kernel counts with, the sum of which 64 bits would not hold.
        assert_eq!(parse(&"ffffffffffffffff 0 0\n".repeat(2)), None);
    }
}
