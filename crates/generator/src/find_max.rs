//! The highest rate that holds a limit, without experiment and agents.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumbline_engine::{EngineError, LoadPlan};
use plumbline_experiment::ceiling::MAX_RATE;
use plumbline_experiment::{Limit, WorkloadKind};
use plumbline_harness::{
    FindMaxError, SearchPlan, SearchStep, Searched, SearchedLoad, Thresholds, at_rate,
};
use plumbline_record::{SearchOutcome, SearchTrial};
use plumbline_sys::counters;

use crate::GeneratorError;

/// How long a trial of a search may be.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(600);

/// What to search for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchRequest {
    /// What the rate has to hold.
    pub limit: Limit,
    /// Length of a trial: 100 ms to 10 min.
    pub trial: Duration,
    /// Trials at each bound, most of which decide.
    pub trials: u32,
    /// How close the two bounds must be, as a share of the upper.
    pub width: f64,
    /// Highest rate that is ever offered, per second.
    pub up_to: f64,
}

/// A search, as far as it got. The trials before a server went away are as good as
/// any, so they are kept beside the error.
#[derive(Debug)]
pub struct BrokenOff {
    /// What there is to show.
    pub searched: Searched,
    /// What broke the search off; `None` when it came to its end.
    pub error: Option<EngineError>,
}

impl SearchRequest {
    /// The plan of the search. Touches nothing.
    ///
    /// # Errors
    ///
    /// Kinds without answers to count, and bounds that contradict each other.
    pub fn plan(&self, kind: WorkloadKind) -> Result<SearchPlan, GeneratorError> {
        let refused = |why: String| Err(GeneratorError::Search(why));
        if !kind.is_answered() {
            return refused(format!(
                "{} gets no answers, and the sender alone does not know what arrived; use --workload rr --udp",
                kind.as_str()
            ));
        }
        if !(SHORTEST..=LONGEST).contains(&self.trial) {
            return refused(format!(
                "--trial {:?}: a trial lasts from 100ms to 10min",
                self.trial
            ));
        }
        if self.up_to.is_nan() || self.up_to > MAX_RATE {
            return refused(format!(
                "--up-to {}: no more than {MAX_RATE} requests per second can be asked for",
                self.up_to
            ));
        }
        let seconds = self.trial.as_secs_f64();
        let mut search = SearchPlan::new(self.limit, self.up_to).with_trials_of(seconds);
        search.goal.duration_sum = seconds * f64::from(self.trials);
        search.goal.width = self.width.max(search.goal.loss_ratio);
        match search.check() {
            Ok(()) => Ok(search),
            Err(error) => refused(error.to_string()),
        }
    }
}

/// Searches with the load of `plan`, whose rate and window are replaced. `seen` gets
/// each trial that has ended.
///
/// # Errors
///
/// What kept the first trial from being run.
pub fn find_max(
    plan: &LoadPlan,
    search: &SearchPlan,
    interrupted: &AtomicBool,
    seen: &mut dyn FnMut(&SearchTrial),
) -> Result<BrokenOff, GeneratorError> {
    let searched = plumbline_harness::find_max::<EngineError>(
        search,
        &Thresholds::default(),
        &mut |step| measure(plan, step, interrupted),
        seen,
    );
    match searched {
        Ok(searched) => Ok(BrokenOff {
            searched,
            error: None,
        }),
        Err(FindMaxError::Trial { error, trials }) if trials.is_empty() => Err(error.into()),
        Err(FindMaxError::Trial { error, trials }) => Ok(BrokenOff {
            searched: Searched {
                outcome: SearchOutcome::Failed,
                trials,
            },
            error: Some(error),
        }),
        Err(FindMaxError::Search(error)) => Err(GeneratorError::Search(error.to_string())),
    }
}

/// One trial: fresh connections, a seed of its own. `None` when interrupted.
fn measure(
    plan: &LoadPlan,
    step: &SearchStep,
    interrupted: &AtomicBool,
) -> Result<Option<SearchedLoad>, EngineError> {
    let trial = LoadPlan {
        workload: at_rate(&plan.workload, step.rate),
        measure: step.measure,
        drain: step.drain,
        seed: plan.seed.wrapping_add(step.index as u64),
        ..plan.clone()
    };
    let before = counters::softnet();
    let mut load = plumbline_engine::run(&trial, interrupted, &mut ())?;
    // A packet that a full backlog of this machine dropped is a request that was not answered
    // in time.
    if let (Ok(before), Ok(after)) = (before, counters::softnet()) {
        let dropped = after.dropped.saturating_sub(before.dropped);
        load.completed = load.completed.saturating_sub(dropped);
    }
    // Nobody looks at steal and other programs here.
    let disturbed = Vec::new();
    let searched = SearchedLoad { load, disturbed };
    Ok((!interrupted.load(Ordering::SeqCst)).then_some(searched))
}
