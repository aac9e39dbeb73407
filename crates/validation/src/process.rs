//! What `/proc` says about a running program.

use plumbline_experiment::Protocol;
use plumbline_sys::waiting::waiting_on;

/// Whether a socket in the namespace of `pid` waits on a port. A trial connection
/// would show it too, but a server for one client would take that for its client.
pub(crate) fn is_listening(pid: u32, port: u16, protocol: Protocol) -> bool {
    !waiting_on(pid, port, protocol == Protocol::Udp).is_empty()
}

/// Memory of a process that is in RAM; `None` when it has ended.
pub(crate) fn resident_bytes(pid: u32) -> Option<u64> {
    resident_in(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

/// The same, as its `status` in `/proc` says it.
pub(crate) fn resident_in(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory() {
        assert!(resident_bytes(std::process::id()).unwrap() > 100_000);
    }
}
