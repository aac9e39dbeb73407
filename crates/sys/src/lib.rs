//! Linux, typed and safe from outside; and of any Unix what a controller needs: the
//! clock, processes, signals.
//!
//! Each module wraps one facility of the kernel behind a safe interface; a
//! caller cannot break memory safety, whatever it passes.
#![allow(
    unsafe_code,
    reason = "the room where it is allowed; every block says why it is sound"
)]

#[cfg(target_os = "linux")]
pub mod awake;
#[cfg(target_os = "linux")]
pub mod bpf;
#[cfg(target_os = "linux")]
pub mod capture;
#[cfg(target_os = "linux")]
pub mod cgroup;
pub mod clock;
#[cfg(target_os = "linux")]
pub mod confined;
#[cfg(target_os = "linux")]
pub mod counters;
#[cfg(target_os = "linux")]
pub mod cpu;
#[cfg(target_os = "linux")]
pub mod ethtool;
#[cfg(target_os = "linux")]
pub mod foreground;
#[cfg(target_os = "linux")]
pub mod forwarder;
#[cfg(target_os = "linux")]
pub mod fragment;
pub mod identity;
#[cfg(target_os = "linux")]
pub mod namespace;
#[cfg(target_os = "linux")]
pub mod netlink;
#[cfg(target_os = "linux")]
mod packet;
#[cfg(target_os = "linux")]
pub mod poll;
pub mod process;
#[cfg(target_os = "linux")]
pub mod ring;
#[cfg(target_os = "linux")]
pub mod sampled;
#[cfg(target_os = "linux")]
pub mod scratch;
#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;
pub mod signal;
#[cfg(target_os = "linux")]
pub mod socket;
#[cfg(target_os = "linux")]
mod sockopt;
#[cfg(target_os = "linux")]
pub mod sysctl;
#[cfg(target_os = "linux")]
pub mod tap;
pub mod temporary;
#[cfg(target_os = "linux")]
pub mod terminal;
#[cfg(target_os = "linux")]
pub mod tun;
pub mod user_mode;
#[cfg(target_os = "linux")]
pub mod waiting;
