//! TCP, UDP and IP counters of a network namespace.

use std::collections::BTreeMap;
use std::io;

use super::read;

/// Protocol counters since the namespace was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProtocolTotals {
    /// `Tcp: RetransSegs`.
    pub tcp_retransmits: u64,
    /// `TcpExt: TCPTimeouts`.
    pub tcp_timeouts: u64,
    /// `InCsumErrors` of TCP and UDP, both IP versions.
    pub checksum_errors: u64,
    /// `RcvbufErrors` of UDP, both IP versions.
    pub udp_receive_buffer_errors: u64,
    /// `SndbufErrors` of UDP, both IP versions.
    pub udp_send_buffer_errors: u64,
    /// Fragments made and put together, both IP versions (N-4).
    pub ip_fragments: u64,
}

/// Reads the counters of the calling thread's network namespace.
pub fn protocol() -> io::Result<ProtocolTotals> {
    Ok(totals(&protocol_by_name()?))
}

/// Every counter of the calling thread's network namespace since that was made, by its name
/// in `/proc/net`: `Udp.InCsumErrors`, `TcpExt.IPReversePathFilter`, `Udp6InCsumErrors`.
pub fn protocol_by_name() -> io::Result<BTreeMap<String, u64>> {
    let mut counters = BTreeMap::new();
    let snmp = read("/proc/thread-self/net/snmp")?;
    let netstat = read("/proc/thread-self/net/netstat")?;
    parse_paired_lines(&snmp, &mut counters);
    parse_paired_lines(&netstat, &mut counters);
    // Without IPv6 there is no such file, and nothing to count.
    let snmp6 = read("/proc/thread-self/net/snmp6").unwrap_or_default();
    parse_columns(&snmp6, &mut counters);
    Ok(counters)
}

pub(super) fn totals(counters: &BTreeMap<String, u64>) -> ProtocolTotals {
    let sum = |names: &[&str]| {
        let values = names.iter().filter_map(|&name| counters.get(name));
        values.fold(0_u64, |sum, value| sum.saturating_add(*value))
    };
    ProtocolTotals {
        tcp_retransmits: sum(&["Tcp.RetransSegs"]),
        tcp_timeouts: sum(&["TcpExt.TCPTimeouts"]),
        checksum_errors: sum(&["Tcp.InCsumErrors", "Udp.InCsumErrors", "Udp6InCsumErrors"]),
        udp_receive_buffer_errors: sum(&["Udp.RcvbufErrors", "Udp6RcvbufErrors"]),
        udp_send_buffer_errors: sum(&["Udp.SndbufErrors", "Udp6SndbufErrors"]),
        ip_fragments: sum(&[
            "Ip.FragCreates",
            "Ip.ReasmReqds",
            "Ip6FragCreates",
            "Ip6ReasmReqds",
        ]),
    }
}

/// `Tcp: Name Name …` above `Tcp: 1 2 …`.
pub(super) fn parse_paired_lines(text: &str, into: &mut BTreeMap<String, u64>) {
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let (Some((family, names)), Some((_, values))) =
            (names.split_once(':'), values.split_once(':'))
        else {
            continue;
        };
        for (name, value) in names
            .split_ascii_whitespace()
            .zip(values.split_ascii_whitespace())
        {
            if let Ok(value) = value.parse() {
                into.insert(format!("{family}.{name}"), value);
            }
        }
    }
}

/// `Name value`, one a line.
pub(super) fn parse_columns(text: &str, into: &mut BTreeMap<String, u64>) {
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        if let (Some(name), Some(Ok(value))) = (words.next(), words.next().map(str::parse)) {
            into.insert(name.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ip_versions_are_added() {
        let mut counters = BTreeMap::new();
        parse_paired_lines(
            "Tcp: RetransSegs InErrs\nTcp: 3 1\nUdp: RcvbufErrors InCsumErrors\nUdp: 5 7\nTcp: MaxConn\nTcp: -1\n",
            &mut counters,
        );
        parse_columns(
            "Udp6RcvbufErrors   \t10\nIp6FragCreates 2\nodd\n",
            &mut counters,
        );
        let totals = totals(&counters);
        assert_eq!(totals.tcp_retransmits, 3);
        assert_eq!(totals.udp_receive_buffer_errors, 15);
        assert_eq!(totals.checksum_errors, 7);
        assert_eq!(totals.ip_fragments, 2);
    }

    #[test]
    fn what_no_counter_holds_is_the_most() {
        let mut counters = BTreeMap::new();
        parse_columns("Udp6RcvbufErrors 18446744073709551615\n", &mut counters);
        parse_paired_lines("Udp: RcvbufErrors\nUdp: 1\n", &mut counters);
        assert_eq!(totals(&counters).udp_receive_buffer_errors, u64::MAX);
    }

    #[test]
    fn this_namespace_can_be_read() {
        protocol().unwrap();
    }
}
