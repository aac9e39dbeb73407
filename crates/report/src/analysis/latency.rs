//! Latencies of one treatment.

use plumbline_record::{Histogram, LoadObservation, Observation, Trial, Warning};
use plumbline_stats::order::percentile_fractions;

use super::LEVEL;
use crate::latency::{LatencySummary, QUANTILES, Support, late, share};

/// From this quantile on a late sender shows itself instead of the network.
pub(super) const TAIL: f64 = 0.99;

/// Latencies of a treatment, pooled over its trials: what the curve shows. Every
/// statement about it rests on single trials (L-15).
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
    /// Trials whose sender was late in the tail.
    pub late_tails: usize,
}

impl Latency {
    /// `None` without a single answer.
    pub(super) fn new(trials: &[(&Trial, &Observation)]) -> Option<Self> {
        let late_tails = trials.iter().filter(|(trial, _)| has_late_tail(trial));
        let late_tails = late_tails.count();
        let is_mostly_late = 2 * late_tails > trials.len();
        let pool = trials
            .iter()
            .filter(|(trial, _)| is_mostly_late || !has_late_tail(trial))
            .filter_map(|&(_, observation)| observation.load());
        let mut pool = Pool::of(pool);
        if is_mostly_late {
            pool.support.end = TAIL;
        }
        let whole = Support {
            end: 1.0,
            ..pool.support
        };
        (!pool.latency.is_empty()).then(|| Self {
            figures: LatencySummary::with_support(&pool.latency, pool.support),
            intervals: QUANTILES.map(|q| interval(&pool.latency, pool.support, q)),
            service_time: LatencySummary::with_support(&pool.service_time, whole),
            send_lag: LatencySummary::new(&pool.send_lag),
            late_tails,
            support: pool.support,
            pooled: pool.latency,
        })
    }
}

impl Latency {
    /// A percentile of the pooled latencies, nanoseconds, as far as their samples
    /// carry it (D4).
    pub fn pooled_at(&self, quantile: f64) -> Option<u64> {
        let is_shown = self.support.shows(quantile);
        is_shown.then(|| self.pooled.value_at(quantile))
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
}

impl Pool {
    fn of<'a>(loads: impl Iterator<Item = &'a LoadObservation>) -> Self {
        let mut latency = Histogram::new();
        let mut service_time = Histogram::new();
        let mut send_lag = Histogram::new();
        let (mut effective_samples, mut unknown, mut errors) = (0.0, 0u64, 0u64);
        for LoadObservation { load, .. } in loads {
            latency.merge(&load.latency);
            service_time.merge(&load.service_time);
            send_lag.merge(&load.send_lag);
            effective_samples += Support::of_load(load).effective_samples;
            unknown = unknown.saturating_add(late(load));
            errors = errors.saturating_add(load.errors.total());
        }
        Self {
            support: Support {
                effective_samples,
                censored_share: share(unknown, latency.len().saturating_add(errors)),
                end: 1.0,
            },
            latency,
            service_time,
            send_lag,
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
