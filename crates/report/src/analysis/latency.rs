//! Latencies of one treatment.

use plumbline_record::{Histogram, Observation, Trial, Warning};
use plumbline_stats::order::{MedianOfRuns, median_of_runs, percentile_fractions};

use super::{LEVEL, Metric, TrialValue};
use crate::latency::{LatencySummary, QUANTILES, Support, share};

/// From this quantile on a late sender shows itself instead of the network.
const TAIL: f64 = 0.99;

/// Latencies of a treatment, pooled over its trials for the curve and taken
/// trial by trial for every statement about it (L-15).
///
/// A trial whose sender was late in the tail (L-2) stays out of the pool. Where
/// most trials are such, all are pooled and nothing is shown from p99 up.
#[derive(Clone, Debug)]
pub struct Latency {
    /// Received − intended, pooled.
    pub pooled: Histogram,
    /// What the pooled samples carry.
    pub support: Support,
    /// Percentiles of the pooled latencies.
    pub figures: LatencySummary,
    /// For each of the percentiles that are looked at, in their order, where
    /// it lies by these samples: (low, high) in nanoseconds at 95 % (L-14).
    /// Within the run: another run may differ by more. `None` where the
    /// percentile is withheld or the samples bound only one side.
    pub intervals: [Option<(u64, u64)>; QUANTILES.len()],
    /// Received − sent, pooled.
    pub service_time: LatencySummary,
    /// Sent − intended, pooled.
    pub send_lag: LatencySummary,
    /// Median over trials of each trial's median, nanoseconds.
    pub p50_over_trials: Option<MedianOfRuns>,
    /// Median over trials of each trial's 99th percentile, nanoseconds; over
    /// those without a late tail.
    pub p99_over_trials: Option<MedianOfRuns>,
    /// Whether each single trial has the samples for its own p99 (D4).
    pub every_trial_carries_p99: bool,
    /// Trials whose sender was late in the tail.
    pub late_tails: usize,
}

impl Latency {
    /// `None` without a single answer.
    pub(super) fn new(
        trials: &[(&Trial, &Observation)],
        values: &[(Metric, Vec<TrialValue>)],
    ) -> Option<Self> {
        let late_tails = trials.iter().filter(|(trial, _)| has_late_tail(trial));
        let late_tails = late_tails.count();
        let is_mostly_late = 2 * late_tails > trials.len();
        let pool = trials
            .iter()
            .filter(|(trial, _)| is_mostly_late || !has_late_tail(trial))
            .map(|&(_, observation)| observation);
        let mut pool = Pool::of(pool);
        if is_mostly_late {
            pool.support.end = TAIL;
        }
        let over_trials = |metric| {
            let (_, values) = values.iter().find(|(one, _)| *one == metric)?;
            let values: Vec<f64> = values.iter().map(|one| one.value).collect();
            median_of_runs(&values, LEVEL)
        };
        let whole = Support {
            end: 1.0,
            ..pool.support
        };
        (!pool.latency.is_empty()).then(|| Self {
            figures: LatencySummary::with_support(&pool.latency, pool.support),
            intervals: QUANTILES.map(|q| interval(&pool.latency, pool.support, q)),
            service_time: LatencySummary::with_support(&pool.service_time, whole),
            send_lag: LatencySummary::new(&pool.send_lag),
            p50_over_trials: over_trials(Metric::P50),
            p99_over_trials: over_trials(Metric::P99).filter(|_| !is_mostly_late),
            every_trial_carries_p99: pool.every_trial_carries_p99,
            late_tails,
            support: pool.support,
            pooled: pool.latency,
        })
    }
}

/// Whether the trial's upper percentiles are its sender's lateness.
pub(super) fn has_late_tail(trial: &Trial) -> bool {
    let is_late = |warning: &Warning| matches!(warning, Warning::TailLag { .. });
    trial.warnings.iter().any(is_late)
}

/// Histograms of several trials together.
struct Pool {
    latency: Histogram,
    service_time: Histogram,
    send_lag: Histogram,
    support: Support,
    every_trial_carries_p99: bool,
}

impl Pool {
    fn of<'a>(trials: impl Iterator<Item = &'a Observation>) -> Self {
        let mut latency = Histogram::new();
        let mut service_time = Histogram::new();
        let mut send_lag = Histogram::new();
        let (mut effective_samples, mut censored) = (0.0, 0u64);
        let mut every_trial_carries_p99 = true;
        for Observation { load, .. } in trials {
            latency.merge(&load.latency);
            service_time.merge(&load.service_time);
            send_lag.merge(&load.send_lag);
            let support = Support::of_load(load);
            effective_samples += support.effective_samples;
            every_trial_carries_p99 &= support.shows(0.99);
            censored = censored.saturating_add(load.censored);
        }
        Self {
            support: Support {
                effective_samples,
                censored_share: share(censored, latency.len()),
                end: 1.0,
            },
            latency,
            service_time,
            send_lag,
            every_trial_carries_p99,
        }
    }
}

/// The samples that bound a percentile that is shown (L-14).
fn interval(latency: &Histogram, support: Support, quantile: f64) -> Option<(u64, u64)> {
    if !support.shows(quantile) {
        return None;
    }
    let (low, high) = percentile_fractions(support.effective_samples, quantile, LEVEL);
    Some((latency.value_at(low?), latency.value_at(high?)))
}
