//! The load: arrival schedule, connections, workloads, the event loop, the
//! responder.
//!
//! [`run`] drives one [`LoadPlan`] and returns what the sender saw;
//! [`Responder`] is the other end. Neither knows about namespaces or clusters:
//! they use the sockets of their process.
//!
//! Inside, one event loop serves every workload. A `Driver` moves bytes (epoll
//! or io_uring), a `LoadClient` decides what to send and judges what comes back,
//! a `Schedule` says when requests are due, and a `Recorder` keeps the
//! accounts: every request is charged from the time that it was *intended* for,
//! whether or not it could be sent then.

mod bulk;
mod codec;
mod driver;
mod error;
mod event_loop;
mod exchange;
mod fates;
mod flights;
mod floor;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod gaps;
mod idle;
mod limits;
mod pattern;
mod plan;
mod progress;
mod recorder;
mod responder;
mod run;
mod schedule;
mod secret;
#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;
mod timeline;
#[cfg(test)]
#[path = "../tests/it/tries.rs"]
mod tries;
mod window;
mod worker;

#[cfg(test)]
mod omission_tests;

pub use codec::body_of as http_body;
pub use error::EngineError;
pub use floor::floor;
pub use plan::{LoadPlan, ServePlan, WindowObserver};
pub use progress::LoadProgress;
pub use responder::Responder;
pub use run::{Endured, endure, run};
pub use secret::{Secret, SecretLength};
