//! The highest load that holds a goal, by MLRsearch.
//!
//! A binary search believes every trial, so one burst of noise sends it to the
//! wrong half for good. MLRsearch measures a load until the trials there agree
//! on what it is, within a stated share of dissent: a *lower bound*, which
//! holds the goal, or an *upper bound*, which does not. The answer is a pair
//! of bounds that lie close enough together, and a throughput at the lower one.
//! Source: draft-ietf-bmwg-mlrsearch-15; its terms are used here.
//!
//! [`LoadSearch`] does no I/O. The caller asks [`LoadSearch::next`] what to measure,
//! measures it, and passes the [`LoadTrial`] to [`LoadSearch::observe`]:
//!
//! 1. The path: the lowest load must hold, or the path is broken.
//! 2. The ramp: the load doubles until a trial misses.
//! 3. The floor: a twentieth of the lowest load that missed must be flawless
//!    for 10 s, or the path is unfit for a search.
//! 4. The search: first with wide bounds from few trials, then with narrower
//!    ones from more, up to the goal's own.

mod classify;
mod goal;
mod target;
#[cfg(test)]
mod tests;

pub use classify::{Class, Evidence, conditional_throughput};
pub use goal::{Bounds, Goal, LoadTrial, SearchError, loss_ratio};
use target::SearchTarget;

/// Least length of the floor test, seconds.
pub const FLOOR_SECONDS: f64 = 10.0;
/// Load of the floor test as a share of the lowest load that missed (Q-6: 1 to 10 %).
const FLOOR_SHARE: f64 = 0.05;
/// Trials of the least load, and of the floor, before it is called bad: a
/// single one may have met a burst of noise.
const PATH_TRIALS: usize = 5;
const FLOOR_TRIALS: usize = 2;
/// Growth of the load while nothing has missed.
const RAMP: f64 = 2.0;

/// Why a trial is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Does the least load hold?
    Path,
    /// Raising the load until it misses.
    Ramp,
    /// Is a low load flawless?
    Floor,
    /// Narrowing the bounds.
    Search,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NextStep {
    /// Run a trial.
    Measure {
        /// Intended load, per second.
        load: f64,
        /// Length, seconds.
        duration: f64,
        /// Why.
        purpose: Purpose,
    },
    /// Nothing is left to measure.
    Done(Outcome),
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// With bounds.
    Found(SearchResult),
    /// The lowest load missed in most of its trials: the path is broken, or the
    /// goal out of reach.
    BrokenPath,
    /// A low load was not flawless: on such a path the search would measure
    /// noise.
    Unfit {
        /// The load of the floor test, per second.
        load: f64,
    },
    /// The time was up before the bounds were close enough.
    OutOfTime,
}

/// The bounds of the highest load that holds the goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchResult {
    /// The relevant lower bound, per second: the highest load that holds.
    pub lower: f64,
    /// The relevant upper bound, per second: the lowest load that does not.
    /// `None` when even the highest load held.
    pub upper: Option<f64>,
    /// What got through at the lower bound, per second. This is the
    /// answer; the offered load is not.
    pub conditional_throughput: f64,
    /// Whether at least half of the misses at the upper bound are the
    /// generator's: then the answer is about it and not about the network.
    pub generator_limited: bool,
}

/// A search under way.
#[derive(Clone, Debug)]
pub struct LoadSearch {
    goal: Goal,
    bounds: Bounds,
    /// From coarse to the goal itself.
    targets: Vec<SearchTarget>,
    trials: Vec<(Purpose, LoadTrial)>,
}

impl LoadSearch {
    /// A search that has not measured anything yet.
    ///
    /// # Errors
    ///
    /// The goal or the bounds contradict themselves.
    pub fn new(goal: Goal, bounds: Bounds) -> Result<Self, SearchError> {
        goal.check()?;
        let Bounds { least, most, .. } = bounds;
        if !(least > 0.0 && least < most && most.is_finite()) {
            return Err(SearchError::Range { least, most });
        }
        Ok(Self {
            goal,
            bounds,
            targets: target::towards(&goal),
            trials: Vec::new(),
        })
    }

    /// All trials so far, in the order in which they were observed.
    pub fn trials(&self) -> &[(Purpose, LoadTrial)] {
        &self.trials
    }

    /// Takes what was measured. It should be what [`next`](Self::next) asked
    /// for, but any trial counts for its load.
    pub fn observe(&mut self, purpose: Purpose, trial: LoadTrial) {
        self.trials.push((purpose, trial));
    }

    /// What to do next. Asking twice gives the same answer.
    pub fn next(&self) -> NextStep {
        let spent: f64 = self.trials.iter().map(|(_, trial)| trial.duration).sum();
        let step = self
            .prove_path()
            .or_else(|| self.ramp())
            .or_else(|| self.prove_floor())
            .unwrap_or_else(|| self.narrow());
        match step {
            NextStep::Measure { .. } if spent >= self.bounds.time_limit => {
                NextStep::Done(Outcome::OutOfTime)
            }
            step => step,
        }
    }

    /// the least load first.
    fn prove_path(&self) -> Option<NextStep> {
        let held = self.outcomes(Purpose::Path);
        match majority(&held, PATH_TRIALS) {
            Some(true) => None,
            Some(false) => Some(NextStep::Done(Outcome::BrokenPath)),
            None => Some(NextStep::Measure {
                load: self.bounds.least,
                duration: self.targets[0].final_trial,
                purpose: Purpose::Path,
            }),
        }
    }

    /// Doubles the load from the least one until a trial misses.
    fn ramp(&self) -> Option<NextStep> {
        let ramp = self.trials.iter().rfind(|(p, _)| *p == Purpose::Ramp);
        let last = match ramp {
            Some((_, trial)) if !self.goal.holds(trial) => return None,
            Some((_, trial)) if trial.load >= self.bounds.most => return None,
            Some((_, trial)) => trial.load,
            None => self.bounds.least,
        };
        Some(NextStep::Measure {
            load: (last * RAMP).min(self.bounds.most),
            duration: self.targets[0].final_trial,
            purpose: Purpose::Ramp,
        })
    }

    /// at a low load nothing may be lost, whatever the goal allows.
    fn prove_floor(&self) -> Option<NextStep> {
        let flawless = |trial: &LoadTrial| !trial.missed && trial.loss_ratio == 0.0;
        let floor: Vec<bool> = self.of(Purpose::Floor).map(flawless).collect();
        let ramp = self.of(Purpose::Ramp).last()?.load;
        let load = (ramp * FLOOR_SHARE).max(self.bounds.least.min(ramp * 2.0 * FLOOR_SHARE));
        if floor.iter().any(|&flawless| flawless) {
            return None;
        }
        Some(if floor.len() >= FLOOR_TRIALS {
            NextStep::Done(Outcome::Unfit { load })
        } else {
            NextStep::Measure {
                load,
                duration: FLOOR_SECONDS,
                purpose: Purpose::Floor,
            }
        })
    }

    /// Meets one target after the other.
    fn narrow(&self) -> NextStep {
        let trials: Vec<LoadTrial> = self.trials.iter().map(|(_, trial)| *trial).collect();
        let mut hint = self
            .of(Purpose::Ramp)
            .last()
            .map_or(self.bounds.least, |t| t.load);
        for target in &self.targets {
            let range = target.bracket(&self.goal, &trials);
            if let Some((load, duration)) =
                target.wants(&self.goal, &self.bounds, &trials, range, hint)
            {
                return NextStep::Measure {
                    load,
                    duration,
                    purpose: Purpose::Search,
                };
            }
            hint = range.lower.unwrap_or(hint);
        }
        NextStep::Done(self.found(&trials))
    }

    /// Called when the last target, the goal itself, wants nothing more.
    fn found(&self, trials: &[LoadTrial]) -> Outcome {
        let last = self.targets.last().expect("the goal is a target");
        let range = last.bracket(&self.goal, trials);
        let Some(lower) = range.lower else {
            return Outcome::BrokenPath;
        };
        let misses: Vec<&LoadTrial> = trials
            .iter()
            .filter(|t| Some(t.load) == range.upper && !self.goal.holds(t))
            .collect();
        let generators = misses.iter().filter(|t| t.generator_limited).count();
        Outcome::Found(SearchResult {
            lower,
            upper: range.upper,
            conditional_throughput: conditional_throughput(&self.goal, lower, trials),
            generator_limited: !misses.is_empty() && generators * 2 >= misses.len(),
        })
    }

    fn of(&self, purpose: Purpose) -> impl Iterator<Item = &LoadTrial> {
        self.trials
            .iter()
            .filter(move |(p, _)| *p == purpose)
            .map(|(_, trial)| trial)
    }

    fn outcomes(&self, purpose: Purpose) -> Vec<bool> {
        self.of(purpose)
            .map(|trial| self.goal.holds(trial))
            .collect()
    }
}

/// What most of `of` trials said, as soon as that is certain. A first success
/// is enough, and is not repeated.
fn majority(held: &[bool], of: usize) -> Option<bool> {
    let misses = held.iter().filter(|&&held| !held).count();
    if held.first() == Some(&true) || held.len() - misses > of / 2 {
        Some(true)
    } else if misses > of / 2 {
        Some(false)
    } else {
        None
    }
}
