//! Requests that are slow in bursts of several slices.

use plumbline_stats::exceedance::{self, ExceedanceSlice};
use plumbline_stats::{independence, order};
use rand::RngExt;

use super::{Noise, Source};

pub(crate) const SLICES: usize = 100;

/// A window in which bursts begin by chance and last for some slices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bursty {
    /// Bursts in a window, on average.
    pub(crate) bursts: f64,
    /// Slices that a burst lasts, on average.
    pub(crate) length: f64,
    /// Share of the requests that are slow within a burst.
    pub(crate) share: f64,
    /// Requests in a slice.
    pub(crate) requests: usize,
}

impl Bursty {
    /// Latencies by slice. Slow ones are ten times as late.
    fn window(&self, seed: u64) -> Vec<Vec<f64>> {
        let mut source = Source::new(seed, Noise::Normal);
        let (begin, end) = (self.begin(), 1.0 / self.length);
        let mut is_slow = source.rng.random::<f64>() < self.time_in_bursts();
        let slice = |_| {
            let share = if is_slow { self.share } else { 0.0 };
            let requests = (0..self.requests).map(|_| {
                let is_late = source.rng.random::<f64>() < share;
                let latency = -(1.0 - source.rng.random::<f64>()).ln();
                if is_late { 10.0 * latency } else { latency }
            });
            let requests = requests.collect();
            let change = if is_slow { end } else { begin };
            is_slow ^= source.rng.random::<f64>() < change;
            requests
        };
        (0..SLICES).map(slice).collect()
    }

    fn begin(&self) -> f64 {
        self.bursts / SLICES as f64
    }

    fn time_in_bursts(&self) -> f64 {
        let end = 1.0 / self.length;
        self.begin() / (self.begin() + end)
    }

    /// The latency that a share of 1 − `q` exceeds in the long run.
    fn truth(&self, q: f64) -> f64 {
        let slow = self.time_in_bursts() * self.share;
        let beyond = |x: f64| (1.0 - slow) * (-x).exp() + slow * (-x / 10.0).exp();
        let (mut low, mut high) = (0.0, 1_000.0);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if beyond(middle) > 1.0 - q {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// In which share of `windows` the 95 % interval of the `q`-quantile holds
    /// the truth, when samples are counted by `count`.
    pub(crate) fn coverage(&self, q: f64, windows: u64, count: Count) -> f64 {
        let truth = self.truth(q);
        let holds = |&seed: &u64| {
            let slices = self.window(seed);
            let mut all: Vec<f64> = slices.concat();
            all.sort_by(f64::total_cmp);
            let at =
                |fraction: f64| all[((fraction * all.len() as f64).ceil() as usize).max(1) - 1];
            let samples = count(&slices, at(q));
            let (low, high) = order::percentile_fractions(samples, q, 0.95);
            low.is_none_or(|low| at(low) <= truth) && high.is_none_or(|high| truth <= at(high))
        };
        (0..windows).filter(holds).count() as f64 / windows as f64
    }
}

/// Effective samples of a window's latencies by slice, given the estimate of a
/// quantile.
pub(crate) type Count = fn(&[Vec<f64>], f64) -> f64;

/// By the exceedances of the quantile (L-21).
pub(crate) fn by_exceedances(slices: &[Vec<f64>], quantile: f64) -> f64 {
    let slice = |latencies: &Vec<f64>| ExceedanceSlice {
        beyond: latencies.iter().filter(|&&one| one > quantile).count() as u64,
        samples: latencies.len() as u64,
    };
    exceedance::effective_samples(&slices.iter().map(slice).collect::<Vec<_>>())
}

/// By the medians of the slices (L-8), as it was.
pub(crate) fn by_medians(slices: &[Vec<f64>], _: f64) -> f64 {
    let median = |latencies: &Vec<f64>| {
        let mut sorted = latencies.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    };
    let medians: Vec<f64> = slices.iter().map(median).collect();
    let samples: usize = slices.iter().map(Vec::len).sum();
    samples as f64 * independence::effective_samples(&medians) / medians.len() as f64
}
