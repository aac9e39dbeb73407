//! One endpoint under command: the protocol over a byte stream, driving the
//! engine and the meters.
//!
//! Both ends of a trial are such a process. It reads [`ToAgent`] frames from
//! standard input, runs one [`load`](plumbline_engine::run) or one
//! [`Responder`](plumbline_engine::Responder), and writes [`FromAgent`] frames
//! to standard output. It has no port, so there is nothing to authenticate
//! (S-4); it sends only to the address that it is given (S-5), and it ends when
//! it hears nothing for [`LEASE`], or when its input closes.

mod build;
mod frame;
mod hold;
mod idle;
mod machine;
mod message;
mod meter;
mod nginx;
mod observe;
mod proxy;
mod serve;
mod sight;

pub use build::{SOURCES, build, sha256};
pub use frame::{FrameError, MAX_FRAME, read_frame, write_frame};
pub use hold::hold;
pub use idle::{IdleTime, MachineGains, WatchOrder, Watched};
pub use machine::{fingerprint, is_user_mode};
pub use message::{
    ClockReading, FromAgent, LoadOrder, PROTOCOL_VERSION, SenderMeasurement, ServeOrder, Served,
    ToAgent,
};
pub use meter::{MachineMeter, idle_sample, protocol_counters};
pub use nginx::check_server;
pub use observe::device_counters;
pub use plumbline_engine::{Secret, Turns, floor};
pub use serve::{AgentError, LEASE, run};
pub use sight::{LocalAddress, LookOrder, MissingServer, NamespaceCounters, Sight, Way};
