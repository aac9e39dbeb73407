//! One endpoint under command: carries out what the protocol orders, driving the
//! engine and the meters.
//!
//! Both ends of a trial are such a process. It reads [`ToAgent`](plumbline_protocol::ToAgent)
//! frames from standard input, runs one [`load`](plumbline_engine::run) or one
//! [`Responder`](plumbline_engine::Responder), and writes
//! [`FromAgent`](plumbline_protocol::FromAgent) frames to standard output. It has no port,
//! so there is nothing to authenticate (S-4); it sends only to the address that it is given
//! (S-5), and it ends when it hears nothing for [`LEASE`], or when its input closes.

mod attempt;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod hold;
mod idle;
mod job;
mod launched;
mod lease;
mod load;
mod machine;
mod meter;
mod nginx;
mod observe;
mod peer;
mod probe;
mod proxy;
#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;
mod serve;
mod sounding;
mod toil;
mod tracing;

pub use hold::hold;
pub use lease::LEASE;
pub use machine::fingerprint;
pub use meter::{MachineMeter, idle_sample, protocol_counters};
pub use nginx::check_server;
pub use observe::device_counters;
pub use plumbline_engine::floor;
pub use serve::{AgentError, run};
pub use toil::try_toil;
