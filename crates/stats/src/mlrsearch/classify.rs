//! What the trials at one load say about it, and what got through.

use super::{Goal, LoadTrial};

/// What a load is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It holds the goal, and no trial to come within the duration sum could
    /// change that.
    Lower,
    /// It does not hold the goal, likewise.
    Upper,
    /// More trials are needed.
    Undecided,
}

/// Lengths of the trials at one load, in seconds, by what they were: L, H, l
/// and h of the draft. A trial is short when it is shorter than the final
/// trial duration, and bad when it misses the goal.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evidence {
    /// L: full-length, good.
    pub full_good: f64,
    /// H: full-length, bad.
    pub full_bad: f64,
    /// l: short, good.
    pub short_good: f64,
    /// h: short, bad.
    pub short_bad: f64,
}

impl Evidence {
    /// Sums up the trials at `load`, where a trial is full from
    /// `final_trial` seconds on.
    pub(super) fn at(load: f64, final_trial: f64, goal: &Goal, trials: &[LoadTrial]) -> Self {
        let mut sums = Self::default();
        for trial in trials.iter().filter(|trial| trial.load == load) {
            *match (trial.duration >= final_trial, goal.holds(trial)) {
                (true, true) => &mut sums.full_good,
                (true, false) => &mut sums.full_bad,
                (false, true) => &mut sums.short_good,
                (false, false) => &mut sums.short_bad,
            } += trial.duration;
        }
        sums
    }

    /// The class of a load with this evidence, for a duration sum of
    /// `duration_sum` seconds and an exceed ratio of `exceed_ratio`.
    ///
    /// With L, H, l, h as in the fields, S the sum and e the ratio:
    /// H' = H + max(0, h − l·e/(1−e)) and W = max(L + H', S). A lower bound
    /// when W − L ≤ e·W: even if all that is still to be measured went wrong.
    /// An upper bound when H' > e·W: even if all of it went well.
    pub fn class(&self, duration_sum: f64, exceed_ratio: f64) -> Class {
        let balance = self.short_good * exceed_ratio / (1.0 - exceed_ratio);
        let bad = self.full_bad + (self.short_bad - balance).max(0.0);
        let whole = (self.full_good + bad).max(duration_sum);
        if whole - self.full_good <= exceed_ratio * whole + ROUNDING * whole {
            Class::Lower
        } else if bad > exceed_ratio * whole {
            Class::Upper
        } else {
            Class::Undecided
        }
    }
}

/// Sums of lengths such as 0.1 s are not exact, and W − L may miss e·W by that.
const ROUNDING: f64 = 1e-12;

/// The forwarding rate of the (1 − e)-quantile trial at `load`, per second
/// over the full-length trials there, the best first and weighted by
/// their length. What is missing to the duration sum counts as lost.
pub fn conditional_throughput(goal: &Goal, load: f64, trials: &[LoadTrial]) -> f64 {
    let mut full: Vec<(f64, f64)> = trials
        .iter()
        .filter(|trial| trial.load == load && trial.duration >= goal.final_trial)
        .map(|trial| (trial.forwarding_rate.min(trial.load), trial.duration))
        .collect();
    full.sort_by(|a, b| b.0.total_cmp(&a.0));
    let sum: f64 = full.iter().map(|(_, duration)| duration).sum();
    let mut remaining = sum.max(goal.duration_sum) * (1.0 - goal.exceed_ratio);
    for (rate, duration) in full {
        remaining -= duration;
        if remaining <= ROUNDING * sum {
            return rate;
        }
    }
    0.0
}
