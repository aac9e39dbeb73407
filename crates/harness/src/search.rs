//! The highest load that holds a limit: one fresh load per trial, judged here,
//! steered by MLRsearch.

pub(crate) mod path;

use std::time::Duration;

use plumbline_experiment::{Arrival, Limit, Workload};
use plumbline_record::{
    GateFailure, LoadResult, SearchGoal, SearchOutcome, SearchPurpose, SearchTrial,
};
use plumbline_stats::mlrsearch::{
    Bounds, Goal, LoadSearch, LoadTrial, NextStep, Outcome, Purpose, SearchError, loss_ratio,
};

use crate::self_check;
use crate::thresholds::Thresholds;

/// How long after the window an answer still counts, beside twice the latency
/// of a path at rest. With a queue that never drops, as in TCP, only this
/// makes a backlog a loss: in a trial of 1 s it lets the answer be 1 % high.
const LEAST_DRAIN: Duration = Duration::from_millis(10);
/// The same while nothing is known about the path, and its ceiling.
const MOST_DRAIN: Duration = Duration::from_secs(1);
/// Requests that a trial needs beyond the limited quantile before its
/// percentile is more than its maximum.
const SAMPLES_BEYOND: f64 = 10.0;
/// The least load of a search for a loss, per second: a trial of a second can
/// then tell 1 % from nothing.
const LEAST_RATE: f64 = 100.0;

/// Disturbed trials that are repeated, as a share of those that decided, and
/// beside it. What is more counts all the same: a machine that is never left
/// alone gives what it has, and takes no longer for it.
const REPEATED_SHARE: f64 = 0.25;
const REPEATED_ANYWAY: f64 = 2.0;

/// What is searched for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchPlan {
    /// What the load has to hold.
    pub limit: Limit,
    /// How sure that has to be.
    pub goal: Goal,
    /// Where, and for how long.
    pub bounds: Bounds,
}

impl SearchPlan {
    /// A search up to `most` requests per second, by the goal of D5 (trials of
    /// 1 s, 21 s at each bound, 0.5 % apart). It starts at a load whose trials
    /// carry the limited percentile, and gives up after half an hour.
    pub fn new(limit: Limit, most: f64) -> Self {
        let loss_ratio = match limit {
            Limit::Latency { .. } => 0.0,
            Limit::Loss { ratio } => ratio,
        };
        let goal = Goal {
            loss_ratio,
            width: Goal::NDR.width.max(loss_ratio),
            ..Goal::NDR
        };
        let bounds = Bounds {
            least: 0.0,
            most,
            time_limit: 1_800.0,
        };
        Self {
            limit,
            goal,
            bounds,
        }
        .with_trials_of(goal.final_trial)
    }

    /// The same with full trials of `seconds`, as many at each bound as
    /// before, and a least load that fits.
    #[must_use]
    pub fn with_trials_of(mut self, seconds: f64) -> Self {
        let trials = self.goal.duration_sum / self.goal.final_trial;
        self.goal.final_trial = seconds;
        self.goal.duration_sum = trials * seconds;
        let samples = match self.limit {
            Limit::Latency { quantile, .. } => SAMPLES_BEYOND / (1.0 - quantile),
            Limit::Loss { .. } => LEAST_RATE,
        };
        // A search begins with trials of at most a second.
        self.bounds.least = samples / seconds.min(1.0);
        self
    }

    /// Checks what needs no trial to be known.
    ///
    /// # Errors
    ///
    /// Bounds and goals that contradict themselves or each other.
    pub fn check(&self) -> Result<(), SearchError> {
        LoadSearch::new(self.goal, self.bounds).map(drop)
    }

    /// The goal as records keep it.
    pub fn recorded_goal(&self) -> SearchGoal {
        SearchGoal {
            final_trial_ns: (self.goal.final_trial * 1e9) as u64,
            duration_sum_ns: (self.goal.duration_sum * 1e9) as u64,
            loss_ratio: self.goal.loss_ratio,
            exceed_ratio: self.goal.exceed_ratio,
            width: self.goal.width,
        }
    }
}

/// One trial to be run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchStep {
    /// Which, from 0.
    pub index: usize,
    /// Intended load, per second.
    pub rate: f64,
    /// The measured window.
    pub measure: Duration,
    /// Longest wait for answers after it.
    pub drain: Duration,
    /// Why.
    pub purpose: SearchPurpose,
}

/// What one trial gave.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchedLoad {
    /// What the sender saw.
    pub load: LoadResult,
    /// What disturbed it, as far as anybody looked.
    pub disturbed: Vec<GateFailure>,
}

/// What was found, and every trial on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Searched {
    /// How it ended.
    pub outcome: SearchOutcome,
    /// In the order in which they were run.
    pub trials: Vec<SearchTrial>,
}

/// Why a search could not go on.
#[derive(Debug, thiserror::Error)]
pub enum FindMaxError<E> {
    /// There is nothing to search.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// A trial could not be run.
    #[error("{error}")]
    Trial {
        /// Why not.
        error: E,
        /// What was measured until then (Q-3 keeps every trial).
        trials: Vec<SearchTrial>,
    },
}

/// Searches for the highest load that holds the plan's limit. `measure` runs
/// one trial with fresh connections and gives what the sender saw, or `None`
/// when it was interrupted. A disturbed trial is kept, but is repeated before it
/// decides anything, as long as not too many are (C-14). `seen` is told of each
/// trial that has ended.
///
/// # Errors
///
/// A plan that contradicts itself, and whatever `measure` fails with.
pub fn find_max<E>(
    plan: &SearchPlan,
    thresholds: &Thresholds,
    measure: &mut dyn FnMut(&SearchStep) -> Result<Option<SearchedLoad>, E>,
    seen: &mut dyn FnMut(&SearchTrial),
) -> Result<Searched, FindMaxError<E>> {
    let mut search = LoadSearch::new(plan.goal, plan.bounds)?;
    let mut trials: Vec<SearchTrial> = Vec::new();
    let mut repeated = 0_u32;
    loop {
        let (load, duration, purpose) = match search.next() {
            NextStep::Measure {
                load,
                duration,
                purpose,
            } => (load, duration, purpose),
            NextStep::Done(outcome) => {
                let outcome = recorded_outcome(outcome);
                return Ok(Searched { outcome, trials });
            }
        };
        let step = SearchStep {
            index: trials.len(),
            rate: load,
            measure: Duration::from_secs_f64(duration),
            drain: drain(plan.limit, &trials),
            purpose: recorded_purpose(purpose),
        };
        let result = match measure(&step) {
            Ok(Some(result)) => result,
            Ok(None) => {
                let outcome = SearchOutcome::Interrupted;
                return Ok(Searched { outcome, trials });
            }
            Err(error) => return Err(FindMaxError::Trial { error, trials }),
        };
        let trial = judged(plan, &step, result, thresholds);
        let allowed = REPEATED_ANYWAY + REPEATED_SHARE * search.trials().len() as f64;
        if trial.disturbed.is_empty() || f64::from(repeated) >= allowed {
            search.observe(purpose, as_evidence(&trial));
        } else {
            repeated += 1;
        }
        seen(&trial);
        trials.push(trial);
    }
}

/// `workload` at `rate`: with its own gaps, or Poisson ones if it was a closed loop.
pub fn at_rate(workload: &Workload, rate: f64) -> Workload {
    let arrival = match workload.arrival {
        Arrival::Constant { .. } => Arrival::Constant { rate },
        Arrival::Poisson { .. } | Arrival::Closed => Arrival::Poisson { rate },
    };
    Workload {
        arrival,
        ..workload.clone()
    }
}

/// What the path takes at rest is known from its quietest trial so far.
fn drain(limit: Limit, trials: &[SearchTrial]) -> Duration {
    let at_rest = trials
        .iter()
        .filter(|trial| trial.load.completed > 0)
        .map(|trial| trial.load.latency.value_at(0.99))
        .min();
    let Some(at_rest) = at_rest else {
        return MOST_DRAIN;
    };
    let limit = match limit {
        Limit::Latency { below_ns, .. } => below_ns,
        Limit::Loss { .. } => 0,
    };
    (LEAST_DRAIN + Duration::from_nanos(limit.max(2 * at_rest))).min(MOST_DRAIN)
}

fn judged(
    plan: &SearchPlan,
    step: &SearchStep,
    searched: SearchedLoad,
    thresholds: &Thresholds,
) -> SearchTrial {
    let SearchedLoad { load, disturbed } = searched;
    let loss = loss_ratio(step.rate, load.planned, load.sent, load.completed);
    let missed = breaks(plan.limit, &load);
    SearchTrial {
        purpose: step.purpose,
        rate: step.rate,
        duration_ns: step.measure.as_nanos() as u64,
        loss_ratio: loss,
        held: !missed && loss <= plan.goal.loss_ratio,
        generator: self_check::generator(plan.limit, &load, thresholds),
        disturbed,
        load,
    }
}

/// The other half of that rule, no errors, is the loss ratio of 0.
fn breaks(limit: Limit, load: &LoadResult) -> bool {
    match limit {
        Limit::Latency { quantile, below_ns } => load.latency.value_at(quantile) >= below_ns,
        Limit::Loss { .. } => false,
    }
}

fn as_evidence(trial: &SearchTrial) -> LoadTrial {
    let seconds = trial.duration_ns as f64 / 1e9;
    LoadTrial {
        load: trial.rate,
        duration: seconds,
        loss_ratio: trial.loss_ratio,
        missed: !trial.held,
        forwarding_rate: trial.load.completed as f64 / seconds,
        generator_limited: !trial.generator.is_empty(),
    }
}

fn recorded_purpose(purpose: Purpose) -> SearchPurpose {
    match purpose {
        Purpose::Path => SearchPurpose::Path,
        Purpose::Ramp => SearchPurpose::Ramp,
        Purpose::Floor => SearchPurpose::Floor,
        Purpose::Search => SearchPurpose::Search,
    }
}

fn recorded_outcome(outcome: Outcome) -> SearchOutcome {
    match outcome {
        Outcome::Found(found) => SearchOutcome::Found {
            lower_bound: found.lower,
            upper_bound: found.upper,
            conditional_throughput: found.conditional_throughput,
            generator_limited: found.generator_limited,
        },
        Outcome::BrokenPath => SearchOutcome::BrokenPath,
        Outcome::Unfit { load } => SearchOutcome::Unfit { rate: load },
        Outcome::OutOfTime => SearchOutcome::OutOfTime,
    }
}

#[cfg(test)]
mod tests;
