//! Runs that end as soon as every limit is decided.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most looks that a plan may have: each is half as many blocks again as the one before.
const MAX_LOOKS: usize = 32;

/// Blocks are added until every limit is decided, or the budget ends. When to look is set
/// before the run: intervals that are made stricter for it hold at all looks together, so
/// that verdicts may end a run and stay as sure as they say (C-22).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sequential {
    /// Numbers of blocks after which the limits are looked at, each larger than the one
    /// before.
    pub looks: Vec<usize>,
    /// Longest time that all blocks should take, nanoseconds; null for as many blocks as
    /// the plan has.
    #[serde(default)]
    pub budget_ns: Option<u64>,
}

impl Sequential {
    /// The next look after a number of blocks; `None` after the last.
    pub fn next_look(&self, blocks: usize) -> Option<usize> {
        self.looks.iter().copied().find(|look| *look > blocks)
    }

    /// Whether the plan looks at the limits after so many blocks.
    pub fn looks_after(&self, blocks: usize) -> bool {
        self.looks.contains(&blocks)
    }

    /// Whether it is as an experiment would have it.
    pub(crate) fn is_possible(&self) -> bool {
        (1..=MAX_LOOKS).contains(&self.looks.len())
            && self.looks.windows(2).all(|pair| pair[0] < pair[1])
    }
}
