//! A search for the highest load that holds a limit, with every trial of it.

use plumbline_experiment::{Limit, Scene};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{GateFailure, LoadResult};

/// One line of `searches.jsonl`: how the maximum of a workload was found on
/// the baseline's path, before the first block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchRecord {
    /// Name of the workload whose loads are shares of this maximum.
    pub workload: String,
    /// The scene that was searched: the baseline's.
    #[serde(flatten)]
    pub scene: Scene,
    /// What the load had to hold.
    pub limit: Limit,
    /// How sure that had to be.
    pub goal: SearchGoal,
    /// What was found.
    pub outcome: SearchOutcome,
    /// Every trial in the order in which it was run.
    pub trials: Vec<SearchTrial>,
    /// Why trials ended without a result and were run again.
    pub failed: Vec<String>,
}

/// The goal in the terms of MLRsearch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchGoal {
    /// Length of a full trial, nanoseconds.
    pub final_trial_ns: u64,
    /// Length of the trials at one load that decide about it, nanoseconds.
    pub duration_sum_ns: u64,
    /// The largest share of requests that may be lost.
    pub loss_ratio: f64,
    /// The share of the duration sum that may miss at a lower bound.
    pub exceed_ratio: f64,
    /// How close the bounds had to be: (upper − lower) / upper.
    pub width: f64,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum SearchOutcome {
    /// With bounds.
    Found {
        /// The highest load that holds, per second.
        lower_bound: f64,
        /// The lowest load that does not, per second; null when the most that
        /// was offered still held.
        upper_bound: Option<f64>,
        /// What got through at the lower bound, per second.
        conditional_throughput: f64,
        /// The misses at the upper bound are the generator's: the answer is
        /// about it, not about the network.
        generator_limited: bool,
    },
    /// The least load did not hold.
    BrokenPath,
    /// A low load was not flawless for 10 s.
    Unfit {
        /// That load, per second.
        rate: f64,
    },
    /// The time was up before the bounds were close enough.
    OutOfTime,
    /// Somebody ended it before its time.
    Interrupted,
    /// A trial could not be run; why is the last of
    /// [`failed`](SearchRecord::failed).
    Failed,
}

/// Why a trial of a search was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SearchPurpose {
    /// Does the least load hold?
    Path,
    /// Raising the load until it misses.
    Ramp,
    /// Is a low load flawless?
    Floor,
    /// Narrowing the bounds.
    Search,
}

/// One trial of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchTrial {
    /// Why it was run.
    pub purpose: SearchPurpose,
    /// Intended load, per second.
    pub rate: f64,
    /// Length as intended, nanoseconds.
    pub duration_ns: u64,
    /// The share of the intended requests that was not answered in time.
    pub loss_ratio: f64,
    /// Whether it held the limit.
    pub held: bool,
    /// The generator's own checks that it failed.
    pub generator: Vec<GateFailure>,
    /// What disturbed it; then it was repeated and decided nothing, unless too
    /// many were (C-14).
    pub disturbed: Vec<GateFailure>,
    /// What the sender saw.
    pub load: LoadResult,
}
