//! The result of a load that somebody ran by hand, and what to know about it.

use plumbline_experiment::Workload;

use crate::{Floor, LoadResult, Warning};

/// What `plumbline load` found.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOutcome {
    /// What was asked for.
    pub workload: Workload,
    /// What the sender saw.
    pub result: LoadResult,
    /// What the generator measures where there is no network (L-13).
    pub floor: Option<Floor>,
    /// Somebody ended it before its time.
    pub interrupted: bool,
    /// Whether the generator was the limit, and not the network.
    pub limited_by_generator: bool,
    /// Reasons to distrust the figures.
    pub warnings: Vec<LoadWarning>,
}

impl LoadOutcome {
    /// Whether nothing worked. A load that was stopped has done what was asked.
    pub fn failed(&self) -> bool {
        self.result.completed == 0 && !self.interrupted
    }
}

/// A reason to distrust the figures of a load.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadWarning {
    /// One that trials of a run have too.
    OfTrials(Warning),
    /// Fewer CPUs than workers.
    WorkersShareCpus {
        /// Threads of the sender.
        workers: usize,
        /// The CPUs that they may use.
        cpus: Vec<usize>,
    },
    /// The receiver finds no CPU that the sender does not use (N-12).
    EndsShareCpus {
        /// The CPUs of both.
        cpus: Vec<usize>,
    },
    /// A rate so far out of reach that no request of the window was answered.
    Overrun {
        /// Requests per second that were asked for.
        rate: f64,
    },
    /// The generator sent late (D2).
    GeneratorLate {
        /// The percentile at which it did, as a quantile.
        quantile: f64,
        /// The generator's own lag there, nanoseconds.
        lag_ns: u64,
        /// The latency there, nanoseconds.
        latency_ns: u64,
    },
    /// A closed loop whose sender was busy (L-12).
    Saturated {
        /// Share of the window that its busiest thread worked, 0 to 1.
        busy_share: f64,
    },
    /// The kernel copied what was sent without a copy.
    Copied {
        /// Writes that it copied.
        copied: u64,
        /// Writes that it reported on.
        writes: u64,
    },
    /// Somebody ended the load.
    CutOff {
        /// When, nanoseconds into the window.
        after_ns: u64,
        /// Length of the window that was asked for, nanoseconds.
        of_ns: u64,
    },
    /// Requests that were still waiting when the load ended.
    Unanswered {
        /// How many.
        requests: u64,
    },
}
