//! What loads are shares of.

use plumbline_experiment::{Limit, Scene};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// In `run.json`: a maximum that loads of the plan are shares of. How it was
/// found is in `searches.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Maximum {
    /// Name of the workload, without the share.
    pub workload: String,
    /// The scene that was searched: the baseline's.
    #[serde(flatten)]
    pub scene: Scene,
    /// What the load had to hold.
    pub limit: Limit,
    /// What got through at the lower bound, per second: the loads are
    /// shares of this.
    pub rate: f64,
    /// The highest load that held, per second.
    pub lower_bound: f64,
    /// The lowest load that did not, per second; null when the most that was
    /// offered still held.
    pub upper_bound: Option<f64>,
    /// Whether it is the generator's and not the network's.
    pub generator_limited: bool,
    /// Trials of the search.
    pub trials: u32,
}
