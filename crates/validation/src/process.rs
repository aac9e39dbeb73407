//! What `/proc` says of a program that runs.

/// The table in `/proc/PID/net` that a listening server appears in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Udp,
}

/// Whether a socket of the namespace of `pid` waits on a port. A connection
/// attempt would tell too, but a server for one client would take it for that.
pub(crate) fn is_listening(pid: u32, port: u16, transport: Transport) -> bool {
    let (tables, state) = match transport {
        Transport::Tcp => (["tcp", "tcp6"], Some("0A")),
        Transport::Udp => (["udp", "udp6"], None),
    };
    tables.iter().any(|table| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        has_socket(&text, port, state)
    })
}

/// Looks for a local port, and a state, in a table of `/proc/net`.
fn has_socket(table: &str, port: u16, state: Option<&str>) -> bool {
    let suffix = format!(":{port:04X}");
    table.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let is_local = fields.next().is_some_and(|local| local.ends_with(&suffix));
        is_local && state.is_none_or(|state| fields.nth(1) == Some(state))
    })
}

/// Memory of a process that is in RAM; `None` when it has ended.
pub(crate) fn resident_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listening_socket_is_told_from_a_connection() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n   \
            0: 0100007F:4E20 00000000:0000 0A 00000000:00000000\n   \
            1: 0100007F:4E21 0100007F:9999 01 00000000:00000000\n";
        assert!(has_socket(table, 0x4e20, Some("0A")));
        assert!(!has_socket(table, 0x4e21, Some("0A")));
        assert!(has_socket(table, 0x4e21, None));
        assert!(!has_socket(table, 0x9999, None));
    }

    #[test]
    fn this_process_uses_memory() {
        assert!(resident_bytes(std::process::id()).unwrap() > 100_000);
    }
}
