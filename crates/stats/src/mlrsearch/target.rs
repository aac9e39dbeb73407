//! The steps from a coarse answer to the goal, and what each still wants.

use super::classify::{Class, Evidence};
use super::{Bounds, Goal, LoadTrial};

/// Growth of the precision from one target to the next.
const REFINEMENT: f64 = 4.0;
/// The widest bounds that a target asks for.
const COARSEST: f64 = 0.25;
/// Length of the shortest trials, where the goal's are longer, seconds.
const SHORTEST_TRIAL: f64 = 1.0;

/// A goal on the way to the goal: the same limit, known less well.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SearchTarget {
    pub(super) final_trial: f64,
    duration_sum: f64,
    width: f64,
}

/// The relevant bounds as far as a target knows them, per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LoadBracket {
    pub(super) lower: Option<f64>,
    pub(super) upper: Option<f64>,
}

/// The targets towards a goal, which is the last of them. Widths shrink, and
/// lengths and sums grow, by equal factors.
pub(super) fn towards(goal: &Goal) -> Vec<SearchTarget> {
    let steps = (COARSEST / goal.width).log(REFINEMENT).ceil().max(0.0) as i32;
    let shortest = goal.final_trial.min(SHORTEST_TRIAL);
    (0..=steps)
        .map(|step| {
            let left = f64::from(steps - step) / f64::from(steps.max(1));
            let between = |first: f64, last: f64| last * (first / last).powf(left);
            SearchTarget {
                final_trial: between(shortest, goal.final_trial),
                duration_sum: between(shortest.min(goal.duration_sum), goal.duration_sum),
                width: goal.width * REFINEMENT.powi(steps - step),
            }
        })
        .collect()
}

impl SearchTarget {
    /// The relevant bounds: the lowest load that is an upper bound, and the
    /// highest load below it that is a lower bound.
    pub(super) fn bracket(&self, goal: &Goal, trials: &[LoadTrial]) -> LoadBracket {
        let mut loads: Vec<f64> = trials.iter().map(|trial| trial.load).collect();
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        let mut bracket = LoadBracket {
            lower: None,
            upper: None,
        };
        for load in loads {
            match self.class(goal, load, trials) {
                Class::Lower => bracket.lower = Some(load),
                Class::Upper => {
                    bracket.upper = Some(load);
                    break;
                }
                Class::Undecided => {}
            }
        }
        bracket
    }

    fn class(&self, goal: &Goal, load: f64, trials: &[LoadTrial]) -> Class {
        Evidence::at(load, self.final_trial, goal, trials)
            .class(self.duration_sum, goal.exceed_ratio)
    }

    /// The load and length of the trial that this target needs next; `None`
    /// when its bounds are close enough, or the range has an end.
    pub(super) fn wants(
        &self,
        goal: &Goal,
        bounds: &Bounds,
        trials: &[LoadTrial],
        range: LoadBracket,
        hint: f64,
    ) -> Option<(f64, f64)> {
        let load = match (range.lower, range.upper) {
            (Some(lower), Some(upper)) if upper - lower <= self.width * upper => return None,
            (Some(lower), None) if lower >= bounds.most => return None,
            (None, Some(upper)) if upper <= bounds.least => return None,
            // What a coarser target believes is tried first: most often it is
            // right, and the loads far from it need no second look.
            _ if self.is_open(goal, trials, range, hint) => hint,
            (Some(lower), Some(upper)) => self.between(goal, trials, lower, upper),
            (Some(lower), None) => self.above(goal, trials, lower, bounds.most),
            (None, Some(upper)) => self.below(goal, trials, upper, bounds.least),
            (None, None) => self.nearest_undecided(goal, trials, hint),
        };
        Some((load, self.final_trial))
    }

    /// Whether a load lies between what bounds there are, and is undecided.
    fn is_open(&self, goal: &Goal, trials: &[LoadTrial], range: LoadBracket, load: f64) -> bool {
        range.lower.is_none_or(|lower| lower < load)
            && range.upper.is_none_or(|upper| load < upper)
            && self.class(goal, load, trials) == Class::Undecided
    }

    /// A load that was begun and not decided, between bounds, or their middle.
    fn between(&self, goal: &Goal, trials: &[LoadTrial], lower: f64, upper: f64) -> f64 {
        // The middle of the ratio, as the width is one too.
        let middle = (lower * upper).sqrt();
        self.begun(goal, trials, lower, upper)
            .min_by(|a, b| (a / middle).ln().abs().total_cmp(&(b / middle).ln().abs()))
            .unwrap_or(middle)
    }

    /// Nothing missed yet: the next load that was begun, or one more step.
    fn above(&self, goal: &Goal, trials: &[LoadTrial], lower: f64, most: f64) -> f64 {
        self.begun(goal, trials, lower, f64::INFINITY)
            .min_by(f64::total_cmp)
            .unwrap_or_else(|| (lower * (1.0 + self.stride(goal, trials))).min(most))
    }

    /// Nothing held yet.
    fn below(&self, goal: &Goal, trials: &[LoadTrial], upper: f64, least: f64) -> f64 {
        self.begun(goal, trials, 0.0, upper)
            .max_by(f64::total_cmp)
            .unwrap_or_else(|| (upper / (1.0 + self.stride(goal, trials))).max(least))
    }

    /// How far to go beyond a bound without a partner, as a share of it: this
    /// target's width, doubled with each load that this target has decided.
    fn stride(&self, goal: &Goal, trials: &[LoadTrial]) -> f64 {
        let mut decided: Vec<f64> = trials
            .iter()
            .map(|trial| trial.load)
            .filter(|&load| self.class(goal, load, trials) != Class::Undecided)
            .collect();
        decided.sort_by(f64::total_cmp);
        decided.dedup();
        (self.width * 2.0_f64.powi(decided.len() as i32)).min(1.0)
    }

    fn begun<'a>(
        &'a self,
        goal: &'a Goal,
        trials: &'a [LoadTrial],
        above: f64,
        below: f64,
    ) -> impl Iterator<Item = f64> + 'a {
        trials
            .iter()
            .map(|trial| trial.load)
            .filter(move |&load| above < load && load < below)
            .filter(|&load| self.class(goal, load, trials) == Class::Undecided)
    }

    fn nearest_undecided(&self, goal: &Goal, trials: &[LoadTrial], hint: f64) -> f64 {
        self.begun(goal, trials, 0.0, f64::INFINITY)
            .min_by(|a, b| (a / hint).ln().abs().total_cmp(&(b / hint).ln().abs()))
            .unwrap_or(hint)
    }
}
