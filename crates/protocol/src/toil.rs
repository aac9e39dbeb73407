//! Work that a neighbour is to do which sends nothing, and what was done.

use plumbline_experiment::{Family, Slice};
use plumbline_record::ProcessCpu;
use serde::{Deserialize, Serialize};

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Toil {
    /// Compute, as much as one CPU can.
    Compute,
    /// Add the rules of a policy to this namespace, which concern nobody, and remove them,
    /// again and again.
    Rules(Family),
}

/// What to do, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToilOrder {
    /// What.
    pub toil: Toil,
    /// The slices to do it in. The agent says when it is ready, and waits for the start.
    pub turns: Vec<Slice>,
}

/// What was done in the recorded slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toiled {
    /// How long these were, nanoseconds.
    pub window_ns: u64,
    /// Rules added or removed; CPU time in nanoseconds where there was only computing.
    pub done: u64,
    /// CPU of this process meanwhile.
    pub cpu: ProcessCpu,
}
