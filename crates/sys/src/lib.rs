//! Linux, typed and safe from outside. The only crate with `unsafe`.

pub mod clock;
pub mod counters;
pub mod cpu;
pub mod namespace;
pub mod netlink;
pub mod poll;
pub mod process;
pub mod signal;
pub mod socket;
