//! Counters of the kernel as running totals: CPU, receive queues, protocols.
//!
//! Each source is a text file of `/proc` or `/sys`; parsing is separate from reading, so
//! that it can be tested with text; it never panics on unknown input.

mod conntrack;
mod cpu;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod idle;
mod protocol;
mod softnet;

pub use conntrack::{ConntrackTotals, conntrack};
pub use cpu::{CpuTotals, OneCpu, cpu};
pub use idle::{IdleClock, IdleCounter};
pub use protocol::{ProtocolTotals, protocol, protocol_by_name};
pub use softnet::{SoftnetTotals, softnet};

use std::fs;
use std::io;

/// Reads a text file of `/proc`, with its path in the error.
fn read(path: &str) -> io::Result<String> {
    fs::read_to_string(path).map_err(|e| io::Error::new(e.kind(), format!("{path}: {e}")))
}

fn malformed(path: &str, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{path}: {what}"))
}
