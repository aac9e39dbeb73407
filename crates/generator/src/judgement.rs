//! What to distrust in the result of a load.

use std::time::Duration;

use plumbline_engine::LoadPlan;
use plumbline_experiment::Arrival;
use plumbline_harness::{Thresholds, self_check, was_the_limit};
use plumbline_record::{Floor, LoadOutcome, LoadResult, LoadWarning};

/// What was known beside the result.
#[derive(Clone, Debug, Default)]
pub struct Circumstances {
    /// What the generator measures where there is no network (L-13).
    pub floor: Option<Floor>,
    /// Somebody ended the load before its time.
    pub interrupted: bool,
    /// What was noticed before the load.
    pub remarks: Vec<LoadWarning>,
}

/// A result, with every reason to distrust it.
pub fn judge(plan: &LoadPlan, result: LoadResult, seen: Circumstances) -> LoadOutcome {
    let limits = Thresholds::default();
    let verdict = was_the_limit(&plan.workload, &result, &limits);
    let limited_by_generator = verdict.is_some();
    let mut warnings = seen.remarks;
    warnings.extend(verdict.map(LoadWarning::OfTrials));
    warnings.extend(overrun(&result, seen.interrupted));
    warnings.extend(late_generator(&result, &limits));
    warnings.extend(saturated(plan, &result, &limits));
    let distrusted = self_check(&plan.workload, &result, &limits);
    warnings.extend(distrusted.into_iter().map(LoadWarning::OfTrials));
    warnings.extend(copied(&result));
    warnings.extend(ended_early(plan.measure, &result, seen.interrupted));
    LoadOutcome {
        workload: plan.workload.clone(),
        result,
        floor: seen.floor,
        interrupted: seen.interrupted,
        limited_by_generator,
        warnings,
    }
}

/// A rate so far out of reach that all of the window's requests were still
/// waiting for those of the warm-up when it ended.
fn overrun(result: &LoadResult, interrupted: bool) -> Option<LoadWarning> {
    let rate = result.arrival.rate()?;
    let is_overrun = result.completed == 0 && result.waited_for_connection > 0;
    (is_overrun && result.errors.total() == 0 && !interrupted)
        .then_some(LoadWarning::Overrun { rate })
}

/// D2, with the thresholds that void or mark a trial of a run.
fn late_generator(result: &LoadResult, limits: &Thresholds) -> Option<LoadWarning> {
    result.arrival.rate()?;
    // Datagrams get no answers: they have no latency for lag to spoil, and their
    // gaps are judged by themselves.
    if result.latency.is_empty() {
        return None;
    }
    [0.50, 0.99].into_iter().find_map(|quantile| {
        let lag_ns = result.generator_lag.value_at(quantile);
        let limit_ns = limits.lag_limit_ns(&result.latency, quantile);
        (lag_ns > limit_ns).then_some(LoadWarning::GeneratorLate {
            quantile,
            lag_ns,
            latency_ns: result.latency.value_at(quantile),
        })
    })
}

/// L-12 in a closed loop, whose rate is then what so many threads can do.
fn saturated(plan: &LoadPlan, result: &LoadResult, limits: &Thresholds) -> Option<LoadWarning> {
    let is_loop = result.arrival == Arrival::Closed && plan.workload.kind.is_answered();
    let busy_share = result.busiest_thread();
    (is_loop && busy_share > limits.saturated_share)
        .then_some(LoadWarning::Saturated { busy_share })
}

/// Sending without a copy that turned out to copy.
fn copied(result: &LoadResult) -> Option<LoadWarning> {
    let counts = result.zero_copy.filter(|counts| counts.copied > 0)?;
    Some(LoadWarning::Copied {
        copied: counts.copied,
        writes: counts.told,
    })
}

fn ended_early(planned: Duration, result: &LoadResult, interrupted: bool) -> Option<LoadWarning> {
    if interrupted {
        return Some(LoadWarning::CutOff {
            after_ns: result.window_ns,
            of_ns: planned.as_nanos() as u64,
        });
    }
    let requests = result.censored;
    (requests > 0).then_some(LoadWarning::Unanswered { requests })
}

#[cfg(test)]
mod tests;
