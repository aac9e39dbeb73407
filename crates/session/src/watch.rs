//! What a session reports.

use plumbline_experiment::{Limit, Pairing, Sought};
use plumbline_harness::Progress;
use plumbline_record::{Maximum, SearchTrial};
use std::time::Duration;

/// Something that happened before the first trial.
#[derive(Clone, Copy, Debug)]
pub enum News<'a> {
    /// The search for a maximum that loads are shares of begins.
    Searching(&'a Sought),
    /// One trial of it has ended.
    Tried {
        /// What the load has to hold.
        limit: Limit,
        /// What was seen.
        trial: &'a SearchTrial,
    },
    /// It has ended.
    Found {
        /// What was sought.
        sought: &'a Sought,
        /// What was found.
        maximum: &'a Maximum,
    },
    /// Trials between many nodes are about to begin.
    Pairs {
        /// The pairs.
        pairing: &'a Pairing,
        /// Whether several run at once.
        at_once: bool,
        /// Blocks of the plan.
        blocks: usize,
        /// How long all of it takes when nothing is repeated.
        estimate: Duration,
    },
}

/// Follows a session.
pub trait Watch: Progress {
    /// Something happened before the first trial.
    fn hears(&mut self, news: &News<'_>);
}
