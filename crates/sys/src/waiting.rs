//! Sockets that wait on a port, as `/proc` shows them.

use std::fmt::Display;
use std::fs;

/// Inodes of the sockets that wait on a port: those that listen, or are not connected
/// for UDP. They are those of the network namespace of a process, by its number or
/// `self`. A connection attempt would tell too, but a server for one client would take
/// it for that.
pub fn waiting_on(process: impl Display, port: u16, udp: bool) -> Vec<u64> {
    let tables = if udp {
        ["udp", "udp6"]
    } else {
        ["tcp", "tcp6"]
    };
    let tables = tables.map(|table| fs::read_to_string(format!("/proc/{process}/net/{table}")));
    let texts = tables.into_iter().flatten();
    texts
        .flat_map(|text| waiting_in(&text, port, udp))
        .collect()
}

pub(crate) fn waiting_in(table: &str, port: u16, udp: bool) -> Vec<u64> {
    let port = format!(":{port:04X}");
    let state = if udp { "07" } else { "0A" };
    let inode = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let waits = fields.get(1)?.ends_with(&port) && *fields.get(3)? == state;
        waits.then(|| fields.get(9)?.parse().ok()).flatten()
    };
    table.lines().filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_waits_is_told_from_a_connection() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:4E20 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0\n   \
            1: 0100007F:4E20 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0\n   \
            2: 0100007F:4E21 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4713 1 0\n";
        assert_eq!(waiting_in(table, 0x4e20, false), [4711]);
        assert_eq!(waiting_in(table, 0x4e20, true), [] as [u64; 0]);
        assert_eq!(waiting_in(table, 0x4e21, true), [4713]);
        assert_eq!(waiting_in(table, 0x9999, false), [] as [u64; 0]);
    }

    #[test]
    fn a_listener_of_this_process_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(waiting_on("self", port, false).len(), 1);
        assert_eq!(waiting_on(std::process::id(), port, true), [] as [u64; 0]);
    }
}
