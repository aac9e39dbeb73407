//! What a session reports.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use plumbline_experiment::{Limit, Pairing, Sought};
use plumbline_harness::Progress;
use plumbline_record::{Maximum, SearchTrial};
use plumbline_report::progress as words;

/// Something that happened before the first trial.
#[derive(Clone, Copy, Debug)]
pub enum News<'a> {
    /// Paths are about to be made, and one of them has so many services.
    Services(u32),
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

impl Display for News<'_> {
    /// The line that is said of it.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&match *self {
            News::Services(most) => words::services(most),
            News::Searching(sought) => words::searching(sought),
            News::Tried { limit, trial } => words::tried(limit, trial),
            News::Found { sought, maximum } => words::found(sought, maximum.rate),
            News::Pairs {
                pairing,
                at_once,
                blocks,
                estimate,
            } => words::pairs(pairing, at_once, blocks, estimate),
        })
    }
}

/// Follows a session.
pub trait Watch: Progress {
    /// Something happened before the first trial.
    fn hears(&mut self, news: &News<'_>);
}
