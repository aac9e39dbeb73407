//! From numbers to judgements: effects, intervals, verdicts.
//!
//! Everything here is a pure function of the numbers that it is given: no
//! files, no clock, no Linux. The unit of every comparison is the *trial*, one
//! number from one execution with fresh endpoints, and never the request:
//! requests of one trial share its noise, so a million of them say no more
//! about the next trial than one does.
//!
//! # Brief overview
//!
//! * [`order`] bounds a percentile, or the median of some runs, from ranks
//!   alone, and says when there are too few samples to print one.
//! * [`family`] judges several comparisons together: for each an effect, an
//!   interval that holds together with all others, and the smallest effect that
//!   the data could have shown.
//! * [`verdict`] makes a [`Verdict`](verdict::Verdict) out of an interval.
//! * [`mod@line`] fits a cost that grows with a number, says what each further one
//!   costs, and whether the line bends.
//! * [`replicate`] makes one number of what shares a block's moment.
//! * [`precision`] tells how many more blocks make intervals narrow enough.
//! * [`looks`] tells how strict intervals have to be that are looked at again and
//!   again, to stop as soon as something is decided.
//! * [`kendall`] tells how far a measured order agrees with a published one.
//! * [`independence`] tells how many independent samples a series is worth,
//!   [`stationarity`] whether it changes its level, and [`arrivals`] whether
//!   requests went out as their schedule promised. [`exceedance`] tells how many
//!   independent samples stand behind one quantile.
//! * [`mlrsearch`] finds the highest load that holds a goal, over noise.
//! * [`outlier`] flags values far from the rest. Nothing is ever dropped.
//!   [`mesh`] names nodes and pairs that are unlike the others.
//!
//! No function assumes normal noise, except for smallest effects and for how strict
//! repeated looks are.

pub mod arrivals;
mod binomial;
mod error;
pub mod exceedance;
pub mod family;
pub mod independence;
pub mod kendall;
pub mod line;
pub mod looks;
pub mod mesh;
pub mod mlrsearch;
mod normal;
pub mod order;
pub mod outlier;
pub mod precision;
mod rank;
pub mod replicate;
pub mod stationarity;
pub mod verdict;

pub use crate::error::StatsError;

/// A confidence interval, both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end, in the unit of the estimate.
    pub low: f64,
    /// The upper end, in the unit of the estimate.
    pub high: f64,
    /// The coverage that is really achieved, between 0 and 1. Intervals made
    /// of ranks come in steps, so asking for 0.95 may give 0.9609.
    pub level: f64,
}

impl Interval {
    /// Whether `value` lies inside, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Whether the whole interval lies inside ±`margin`, ends included.
    pub fn is_within(&self, margin: f64) -> bool {
        -margin <= self.low && self.high <= margin
    }
}
