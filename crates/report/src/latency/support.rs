//! How far samples carry.

use plumbline_record::{Histogram, LoadResult};
use plumbline_stats::{independence, order};

/// Share of the samples beyond a quantile that may be censored before the
/// quantile itself is in doubt (L-3).
const CENSORED_SHARE: f64 = 0.1;

/// What the samples of a histogram can carry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Support {
    /// Independent samples that the histogram is worth (L-8).
    pub effective_samples: f64,
    /// Samples that are only known to be at least so late, as a share of all (L-3).
    pub censored_share: f64,
    /// Errors for each sample, which are later than all of them and not in the histogram
    /// (L-3).
    pub errors_per_sample: f64,
    /// The quantile from which on nothing is shown, since what lies there is
    /// not the network's; 1 when all may be shown.
    pub end: f64,
}

impl Support {
    /// Takes every sample for independent and none for censored.
    pub fn of(histogram: &Histogram) -> Self {
        Self {
            effective_samples: histogram.len() as f64,
            censored_share: 0.0,
            errors_per_sample: 0.0,
            end: 1.0,
        }
    }

    /// What the latencies of one load carry. Their independence is judged by
    /// the medians of successive slices of the window (L-8); the requests that
    /// were never answered are among them and censored (L-3), and errors are as late.
    pub fn of_load(load: &LoadResult) -> Self {
        let samples = load.latency.len() as f64;
        let slices: Vec<f64> = load.slice_p50_ns.iter().map(|&ns| ns as f64).collect();
        let independent_share = if slices.is_empty() {
            1.0
        } else {
            independence::effective_samples(&slices) / slices.len() as f64
        };
        Self {
            effective_samples: samples * independent_share,
            censored_share: share(
                late(load),
                load.latency.len().saturating_add(load.errors.total()),
            ),
            errors_per_sample: share(load.errors.total(), load.latency.len()),
            end: 1.0,
        }
    }

    /// The value at a quantile of `histogram` and the errors that belong to it; the
    /// largest where it lies among those.
    pub(crate) fn value_at(&self, histogram: &Histogram, quantile: f64) -> u64 {
        let among_samples = quantile * (1.0 + self.errors_per_sample);
        histogram.value_at(among_samples.min(1.0))
    }

    /// Whether the quantile may be shown: enough samples beyond it (D4), few
    /// enough of them censored (L-3), and below the end.
    pub fn shows(&self, quantile: f64) -> bool {
        self.has_samples(quantile) && !self.is_censored(quantile) && quantile < self.end
    }

    /// Whether enough samples lie beyond the quantile (D4).
    pub(super) fn has_samples(&self, quantile: f64) -> bool {
        order::percentile_is_supported(self.effective_samples, quantile)
    }

    /// Whether too many samples beyond the quantile are censored (L-3).
    pub(super) fn is_censored(&self, quantile: f64) -> bool {
        self.censored_share > 0.0 && self.censored_share >= (1.0 - quantile) * CENSORED_SHARE
    }
}

/// Requests of which no more is known than that they are late: those without an
/// answer, and errors.
pub(crate) fn late(load: &LoadResult) -> u64 {
    load.censored.saturating_add(load.errors.total())
}

/// `part` of `whole` as a fraction; 0 of nothing.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// A histogram together with what its samples carry.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// The samples.
    pub histogram: &'a Histogram,
    /// What they are worth.
    pub support: Support,
}

impl<'a> Sample<'a> {
    /// Latencies or service times of a load, with its unanswered requests in
    /// mind: `Sample::of_load(&load.latency, &load)`.
    pub fn of_load(histogram: &'a Histogram, load: &LoadResult) -> Self {
        Self {
            histogram,
            support: Support::of_load(load),
        }
    }
}

/// Every sample for itself, and none censored.
impl<'a> From<&'a Histogram> for Sample<'a> {
    fn from(histogram: &'a Histogram) -> Self {
        Self {
            histogram,
            support: Support::of(histogram),
        }
    }
}
