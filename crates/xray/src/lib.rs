//! Where the time of a request goes: `plumbline xray`.
//!
//! A place is where the kernel shows a packet: a namespace, a device and a
//! hook. A hop is the stretch between two of them, called as people call it by what the two
//! are, and by nothing that is believed of a network. Each hop has the mean of the time that
//! requests and answers took for it. Means add up, which medians do not: the sum of the hops
//! is held against the mean latency that the load measured while nobody looked, and what is
//! missing is told.
//!
//! [`survey`](fn@survey) does it for [`NamedScene`]s, networks of a lab, and [`survey_target`] for
//! paths of a cluster. What is seen comes from a tracer, programs at the kernel's tracepoints, which take
//! root; or from taps on the devices.

mod account;
mod around;
mod error;
mod eye;
mod flags;
mod ground;
mod hop;
mod load;
mod look;
mod merge;
mod order;
mod page;
mod place;
mod sampling;
mod show;
mod subject;
mod sum;
mod survey;
mod taps;
mod view;

pub use account::{HopTime, MeanTime, NetworkHops, Unfollowed, Xray};
pub use error::XrayError;
pub use flags::{BesideArgs, XrayArgs};
pub use hop::Trip;
pub use look::LookedAt;
pub use order::XrayOrder;
pub use subject::NamedScene;
pub use survey::{survey, survey_target};
