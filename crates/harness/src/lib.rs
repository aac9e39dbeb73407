//! The narrow waist: [`Target`], [`Path`] and [`Site`], and the one loop that
//! runs a plan on any target.
//!
//! A target (a lab of namespaces, a cluster, two hosts) knows how to make a
//! path between two sites; the harness knows blocks, trials, validity gates
//! and teardown. Neither knows the other's business.

mod agent;
mod conduct;
mod gate;
mod observer;
#[cfg(test)]
mod planted;
mod receivers;
mod search;
mod self_check;
mod target;
mod trial;

pub use conduct::{Cause, HarnessError, Outcome, Progress, Settings, Step, conduct};
pub use gate::{Thresholds, judge};
pub use observer::Observer;
pub use search::path::{SearchFailure, maximum, search_path};
pub use search::{FindMaxError, SearchPlan, SearchStep, Searched, SearchedLoad, at_rate, find_max};
pub use self_check::{warnings as self_check, was_the_limit};
pub use target::{AgentLink, AgentProcess, Path, PathSnapshot, Site, Target, TargetError};
pub use trial::reach;
