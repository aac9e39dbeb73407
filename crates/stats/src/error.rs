use thiserror::Error;

/// Why an effect cannot be computed.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum StatsError {
    /// There is nothing to compare.
    #[error(
        "cannot compare: no block holds a value of both treatments, \
         probably because their trials failed; look at the trials' warnings, or run more blocks"
    )]
    NoPairs,
    /// A logarithm of a ratio needs two positive, finite values.
    #[error(
        "cannot compare pair {index} ({a} against {b}): a ratio needs two positive, finite values; \
         a zero usually means that nothing was measured in that trial, so leave the pair out and say so"
    )]
    NotPositive {
        /// Position in the slice of pairs, from 0.
        index: usize,
        /// The treatment's value.
        a: f64,
        /// The baseline's value.
        b: f64,
    },
    /// One of two groups is empty.
    #[error(
        "cannot compare: a group has no value, probably because its trials failed; \
         look at the trials' warnings, or run it again"
    )]
    NoValues,
    /// A value of a group has no logarithm.
    #[error(
        "cannot compare the value {0}: a ratio needs positive, finite values; \
         a zero usually means that nothing was measured in that trial, so leave it out and say so"
    )]
    NoLogarithm(f64),
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
