//! How narrow intervals are to be.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Blocks are added until all primary intervals are as narrow, or the budget ends. The
/// rule looks at widths, never at verdicts: looking at those would make any two
/// networks differ sooner or later.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Precision {
    /// Half of the width that an interval may have, as a ratio less one: 0.03 for ±3 %.
    pub half_width: f64,
    /// Blocks before the first look.
    pub first_blocks: usize,
    /// Longest time that all blocks should take, nanoseconds; null for as many blocks as
    /// the plan has.
    #[serde(default)]
    pub budget_ns: Option<u64>,
}
