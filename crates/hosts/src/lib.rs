//! A Target of machines that are reached by the system's `ssh`.
//!
//! The network under test is whatever the machines have: [`Between`] names them
//! and the [`Wire`]s between them. `ssh` is started as the user would
//! start it, so its configuration, agent and jump hosts are the user's. One
//! connection to each machine carries everything; it copies this program into
//! a private temporary directory there, and a shell that waits for the
//! program's end removes the directory, also when the connection is cut.

mod asked;
mod choice;
mod connection;
mod error;
mod flags;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod hosts;
mod machines;
mod options;
mod path;
mod program;
mod script;
#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;
mod ssh;

pub use asked::which_hosts;
pub use choice::Selector;
pub use error::HostsError;
pub use flags::HostsArgs;
pub use hosts::Hosts;
pub use options::{Between, DEFAULT_NETWORK, HostsOptions, Pair, Wire};
pub use program::Program;
