//! The narrow waist: [`Target`], [`Path`] and [`Site`], and the one loop that
//! runs a plan on any target.
//!
//! A target (a lab of namespaces, a cluster, two hosts) knows how to make a
//! path between two sites; the harness knows blocks, trials, validity gates
//! and teardown. Neither knows the other's business.

mod agent;
mod conduct;
mod fleet;
mod gate;
mod observer;
#[cfg(test)]
mod planted;
mod receivers;
mod rounds;
mod search;
mod self_check;
mod target;
mod together;
mod trial;

pub use conduct::{Cause, HarnessError, Outcome, Progress, Settings, Step, conduct};
pub use fleet::Fleet;
pub use gate::{Thresholds, judge};
pub use observer::Observer;
pub use rounds::conduct_pairs;
pub use search::path::{SearchFailure, maximum, search_path};
pub use search::{FindMaxError, SearchPlan, SearchStep, Searched, SearchedLoad, at_rate, find_max};
pub use self_check::{warnings as self_check, was_the_limit};
pub use target::{AgentLink, AgentProcess, Cpus, Path, PathSnapshot, Site, Target, TargetError};
pub use trial::reach;
