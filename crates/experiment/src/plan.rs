//! The expanded schedule: blocks of treatments in random order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Treatment, TreatmentId};

/// Lengths of the phases of a trial, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Timing {
    /// Load that is sent but not recorded (L-11).
    pub warm_up_ns: u64,
    /// The window whose requests are recorded.
    pub measure_ns: u64,
    /// Longest wait for outstanding answers after the window; what is still
    /// missing then is recorded as at least that late (L-3).
    pub drain_ns: u64,
}

/// Everything that a harness needs to run, fully resolved and reproducible
/// from its seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Name of the experiment.
    pub experiment: String,
    /// The question it answers, in a sentence.
    pub question: String,
    /// Seed of every random choice: block order and Poisson arrivals.
    pub seed: u64,
    /// All treatments; `treatments[i].id == i`.
    pub treatments: Vec<Treatment>,
    /// For each block, every treatment once, in random order (D7, C-1).
    pub blocks: Vec<Vec<TreatmentId>>,
    /// Phases of each trial.
    pub timing: Timing,
    /// How often a trial that fails a validity gate is repeated (C-14).
    pub retries: u32,
    /// Limits that `compare` enforces with exit code 1: metric name to the
    /// largest allowed overhead as a fraction, such as `{"p50": 0.10}`.
    pub limits: std::collections::BTreeMap<String, f64>,
}
