//! Latencies of one treatment.

use plumbline_record::{Histogram, LoadObservation, Observation, Trial, Warning};
use plumbline_stats::exceedance::{self, ExceedanceSlice};
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
        let loads = || {
            let punctual = trials
                .iter()
                .filter(|(trial, _)| is_mostly_late || !has_late_tail(trial));
            punctual.filter_map(|&(_, observation)| observation.load())
        };
        let mut pool = Pool::of(loads());
        let single: Vec<&Histogram> = loads().map(|seen| &seen.load.latency).collect();
        if is_mostly_late {
            pool.support.end = TAIL;
        }
        let whole = Support {
            end: 1.0,
            ..pool.support
        };
        (!pool.latency.is_empty()).then(|| Self {
            figures: LatencySummary::with_support(&pool.latency, pool.support),
            intervals: QUANTILES.map(|q| interval(&single, &pool.latency, pool.support, q)),
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
        is_shown.then(|| self.support.value_at(&self.pooled, quantile))
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
                errors_per_sample: share(errors, latency.len()),
                end: 1.0,
            },
            latency,
            service_time,
            send_lag,
        }
    }
}

/// The samples that bound a percentile that is shown (L-14). How many of them are
/// independent is what single trials show of that percentile: slow requests come in
/// bursts, and some trials have more than others (L-21). `None` with fewer than ten trials.
fn interval(
    trials: &[&Histogram],
    latency: &Histogram,
    support: Support,
    quantile: f64,
) -> Option<(u64, u64)> {
    if !support.shows(quantile) {
        return None;
    }
    let at = support.value_at(latency, quantile);
    let slice = |of: &&Histogram| ExceedanceSlice {
        beyond: of.len() - of.count_at_or_below(at),
        samples: of.len(),
    };
    let slices: Vec<ExceedanceSlice> = trials.iter().map(slice).collect();
    let samples = exceedance::effective_samples(&slices).min(support.effective_samples);
    let (low, high) = percentile_fractions(samples, quantile, LEVEL);
    let value = |quantile| support.value_at(latency, quantile);
    Some((value(low?), value(high?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SplitMix64.
    struct Noise(u64);

    impl Noise {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    /// Requests of each trial.
    const REQUESTS: u64 = 2_000;

    /// A trial of bursts of 40 requests: in one of 25 all are slow, ten times as much.
    fn bursty(noise: &mut Noise) -> Histogram {
        let mut histogram = Histogram::new();
        for _ in 0..REQUESTS / 40 {
            let factor = if noise.uniform() < 0.04 { 10.0 } else { 1.0 };
            for _ in 0..40 {
                let latency = -20_000.0 * noise.uniform().max(1e-12).ln() * factor;
                histogram.record(latency as u64 + 1);
            }
        }
        histogram
    }

    /// Where 1 − q of such requests lie beyond.
    fn truth(quantile: f64) -> f64 {
        let beyond = |x: f64| 0.96 * (-x / 20_000.0).exp() + 0.04 * (-x / 200_000.0).exp();
        let (mut low, mut high) = (0.0, 1e9);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            let is_below = beyond(middle) > 1.0 - quantile;
            (low, high) = if is_below {
                (middle, high)
            } else {
                (low, middle)
            };
        }
        low
    }

    /// Whether the intervals of p50, p90 and p99 of so many trials hold the truth, and at last
    /// that of p99 as if every request were one of its own; `None` without an interval.
    fn hold_truth(seed: u64, trials: usize) -> [Option<bool>; 4] {
        let mut noise = Noise(seed);
        let trials: Vec<Histogram> = (0..trials).map(|_| bursty(&mut noise)).collect();
        let mut pooled = Histogram::new();
        trials.iter().for_each(|one| pooled.merge(one));
        let single: Vec<&Histogram> = trials.iter().collect();
        let support = Support::of(&pooled);
        let holds = |(low, high): (u64, u64), quantile: f64| {
            let truth = truth(quantile);
            low as f64 <= truth && truth <= high as f64
        };
        let of = |quantile| {
            let found = interval(&single, &pooled, support, quantile)?;
            Some(holds(found, quantile))
        };
        let (low, high) = percentile_fractions(pooled.len() as f64, 0.99, LEVEL);
        let naive = low.zip(high);
        let naive = naive.map(|(low, high)| (pooled.value_at(low), pooled.value_at(high)));
        [
            of(0.5),
            of(0.9),
            of(0.99),
            naive.map(|found| holds(found, 0.99)),
        ]
    }

    #[test]
    fn intervals_of_bursty_requests_hold_the_truth_as_often_as_they_say() {
        // Ten are the fewest that have one.
        for trials in [10, 14, 20] {
            let runs: Vec<_> = (0..200).map(|seed| hold_truth(seed, trials)).collect();
            let share = |at: usize| {
                let bounded: Vec<bool> = runs.iter().filter_map(|run| run[at]).collect();
                let count = bounded.len();
                assert!(count >= 150, "{trials}, {at}: only {count} bounded");
                bounded.iter().filter(|holds| **holds).count() as f64 / count as f64
            };
            for at in 0..3 {
                assert!(share(at) >= 0.92, "{trials}, {at}: {}", share(at));
            }
            assert!(share(3) < 0.7, "{trials}: {}", share(3));
        }
    }
}
