use thiserror::Error;

/// Why an effect cannot be computed.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum StatsError {
    /// The significance level makes no sense.
    #[error("the significance level is {0}, but has to lie between 0 and 1, such as 0.05")]
    Alpha(f64),
    /// A log-ratio is infinite or not a number.
    #[error(
        "cannot compare: comparison {comparison} holds the log-ratio {value}; \
         leave out blocks without two positive, finite values, and say so"
    )]
    NotFinite {
        /// Position of the comparison, from 0.
        comparison: usize,
        /// The log-ratio.
        value: f64,
    },
    /// Comparisons that are judged together have different numbers of blocks.
    #[error(
        "cannot compare: comparison {comparison} has {blocks} blocks and the first has {expected}; \
         give every comparison all blocks, empty where it was not measured"
    )]
    UnequalBlocks {
        /// Position of the comparison, from 0.
        comparison: usize,
        /// Its number of blocks.
        blocks: usize,
        /// That of the first comparison.
        expected: usize,
    },
}
