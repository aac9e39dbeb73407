//! The narrow waist: [`Target`], [`Path`] and [`Site`], the exercises
//! of a trial, and the one loop that runs a plan on any target.
//!
//! A target (a lab of namespaces, a cluster, hosts) knows how to make a path
//! between two sites; the harness knows blocks, rounds, trials, validity gates
//! and the proof that packets took the path. Neither knows the other's business.

mod agent;
mod clock;
mod conduct;
mod error;
mod event;
mod exercise;
mod gate;
mod harmless;
mod launched;
mod observer;
mod path;
#[cfg(test)]
mod planted;
mod prepare;
mod proof;
mod reach;
mod receivers;
mod search;
mod self_check;
mod set_up;
mod settings;
mod snapshot;
mod stage;
mod target;
mod thresholds;
mod together;
mod trial;

pub use clock::{AgentClock, ClockError};
pub use conduct::{Cause, Ending, HarnessError, Progress, Step, conduct, pending};
pub use error::TargetError;
pub use event::{EventCommand, quoted};
pub use gate::judge;
pub use harmless::is_harmless;
pub use launched::Launched;
pub use observer::Observer;
pub use path::{AgentLink, AgentProcess, Path, PodLauncher, Programmable, Site, StandingPolicy};
pub use prepare::{prepare, refuse};
pub use proof::{Least, Leg, Side};
pub use reach::{reach, unreached};
pub use search::path::{SearchFailure, maximum, search_path};
pub use search::{FindMaxError, SearchPlan, SearchStep, Searched, SearchedLoad, at_rate, find_max};
pub use self_check::{warnings as self_check, was_the_limit};
pub use settings::Settings;
pub use snapshot::PathSnapshot;
pub use target::{Cpus, Demand, Levels, Target};
pub use thresholds::Thresholds;
pub use trial::load_once;
