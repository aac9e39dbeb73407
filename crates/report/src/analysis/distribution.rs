//! The latencies of several treatments as histograms over the same bins, with
//! mean and deviation: what a study of means is put beside.

use plumbline_experiment::TreatmentId;
use plumbline_record::Histogram;

use super::{Section, TreatmentSummary};

/// Bins between the least and the greatest latency of a section.
const BINS: usize = 16;

/// The latencies of a section's treatments, over bins that all share.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Upper ends of the bins in nanoseconds, in equal ratios; a bin reaches
    /// down to the end before it.
    pub ends_ns: Vec<f64>,
    /// The treatments in the order of the section.
    pub rows: Vec<DistributionRow>,
}

/// The latencies of one treatment, its valid trials together.
#[derive(Clone, Debug, PartialEq)]
pub struct DistributionRow {
    /// Which.
    pub treatment: TreatmentId,
    /// How many there are.
    pub samples: u64,
    /// Their mean, nanoseconds. For display only (C-6).
    pub mean_ns: f64,
    /// Their standard deviation, nanoseconds.
    pub deviation_ns: f64,
    /// The mean as a multiple of the baseline's.
    pub of_baseline: Option<f64>,
    /// How many are in each bin.
    pub counts: Vec<u64>,
}

impl Distribution {
    /// `None` when no treatment has a latency.
    pub(super) fn new(section: &Section, treatments: &[TreatmentSummary]) -> Option<Self> {
        let members = section.treatments.iter();
        let filled: Vec<(TreatmentId, &Histogram)> = members
            .filter_map(|&id| Some((id, &treatments[id].latency.as_ref()?.pooled)))
            .filter(|(_, histogram)| !histogram.is_empty())
            .collect();
        let ends_ns = ends(&filled)?;
        let base = filled.iter().find(|(id, _)| *id == section.baseline);
        let base_ns = base.map(|(_, histogram)| histogram.mean());
        let rows = filled.iter().map(|&(treatment, histogram)| {
            let mean_ns = histogram.mean();
            DistributionRow {
                treatment,
                samples: histogram.len(),
                mean_ns,
                deviation_ns: deviation(histogram, mean_ns),
                of_baseline: base_ns.map(|base| mean_ns / base),
                counts: counts(histogram, &ends_ns),
            }
        });
        Some(Self {
            rows: rows.collect(),
            ends_ns,
        })
    }
}

/// Equal ratios from the least latency to the greatest, each bin at least as
/// wide as the histogram tells values apart.
fn ends(filled: &[(TreatmentId, &Histogram)]) -> Option<Vec<f64>> {
    let least = filled.iter().filter_map(|(_, one)| one.buckets().next());
    let least = least.map(|(value, _)| value).min()? as f64;
    let greatest = filled.iter().map(|(_, one)| one.max()).max()? as f64;
    let ratio = (greatest / least).powf(1.0 / BINS as f64).max(1.01);
    Some(
        (1..=BINS)
            .map(|bin| least * ratio.powi(bin as i32))
            .collect(),
    )
}

/// What is above the last end belongs to the last bin: it is its maximum,
/// rounded.
fn counts(histogram: &Histogram, ends_ns: &[f64]) -> Vec<u64> {
    let mut counts = vec![0; ends_ns.len()];
    for (value, count) in histogram.buckets() {
        let bin = ends_ns.partition_point(|&end| end < value as f64);
        counts[bin.min(ends_ns.len() - 1)] += count;
    }
    counts
}

/// Of the sample, with n − 1; 0 for one value.
fn deviation(histogram: &Histogram, mean_ns: f64) -> f64 {
    let squares: f64 = histogram
        .buckets()
        .map(|(value, count)| (value as f64 - mean_ns).powi(2) * count as f64)
        .sum();
    (squares / (histogram.len() as f64 - 1.0).max(1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: &[(u64, u64)]) -> Histogram {
        let mut histogram = Histogram::new();
        for &(value, count) in values {
            histogram.record_n(value, count);
        }
        histogram
    }

    #[test]
    fn the_deviation_is_that_of_the_sample() {
        // 2, 4, 4, 4, 5, 5, 7, 9 in hundreds: mean 5, sum of squares 32.
        let known = histogram(&[(200, 1), (400, 3), (500, 2), (700, 1), (900, 1)]);
        let mean = known.mean();
        assert!((mean - 500.0).abs() < 1.0, "{mean}");
        let expected = (32.0_f64 / 7.0).sqrt() * 100.0;
        let found = deviation(&known, mean);
        assert!((found - expected).abs() < 1.0, "{found}, not {expected}");
        assert_eq!(deviation(&histogram(&[(70, 1)]), 70.0), 0.0);
    }

    #[test]
    fn every_latency_is_in_one_bin() {
        let (fast, slow) = (
            histogram(&[(40_000, 600), (55_000, 400)]),
            histogram(&[(120_000, 900), (9_000_000, 100)]),
        );
        let ends = ends(&[(0, &fast), (1, &slow)]).unwrap();
        assert_eq!(ends.len(), BINS);
        assert!(
            ends[0] > 40_000.0 && ends[BINS - 1] >= 8_999_000.0,
            "{ends:?}"
        );
        for one in [&fast, &slow] {
            assert_eq!(counts(one, &ends).iter().sum::<u64>(), 1000);
        }
        assert_eq!(counts(&slow, &ends)[BINS - 1], 100);
        assert!(counts(&fast, &ends)[0] >= 600);
    }
}
