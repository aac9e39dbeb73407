//! Linux, typed and safe from outside.
//!
//! Each module wraps one facility of the kernel behind a safe interface; a
//! caller cannot break memory safety, whatever it passes.
#![allow(
    unsafe_code,
    reason = "the room where it is allowed; every block says why it is sound"
)]

pub mod bpf;
pub mod capture;
pub mod clock;
pub mod confined;
pub mod counters;
pub mod cpu;
pub mod ethtool;
pub mod forwarder;
pub mod fragment;
pub mod namespace;
pub mod netlink;
mod packet;
pub mod poll;
pub mod process;
pub mod ring;
pub mod scratch;
pub mod signal;
pub mod socket;
mod sockopt;
pub mod sysctl;
pub mod tap;
pub mod terminal;
pub mod tun;
pub mod waiting;
