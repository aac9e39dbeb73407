//! Percentiles and medians, bounded by ranks.
//!
//! An order statistic needs no model of the noise: how many of n independent
//! samples fall below the q-quantile is binomial, whatever their distribution.
//! Methodology section 1.4.

use crate::Interval;
use crate::binomial::Exceedances;
use crate::normal;

/// Effective samples that have to lie beyond a percentile before it is shown,
/// for ±20 % of tail mass at 95 % (D4).
const SAMPLES_BEYOND: f64 = 100.0;

/// The ranks, counted from 1 in ascending order, of the two samples that bound
/// a quantile. A side that the samples cannot bound is `None`, and is printed
/// as "≥" or "≤" (L-14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankInterval {
    /// Rank of the lower bound.
    pub low: Option<u64>,
    /// Rank of the upper bound.
    pub high: Option<u64>,
}

impl RankInterval {
    const UNBOUNDED: RankInterval = RankInterval {
        low: None,
        high: None,
    };
}

/// The median over runs, and what bounds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MedianOfRuns {
    /// The median, in the unit of the values.
    pub median: f64,
    /// Its interval from order statistics; `None` when there are too few runs
    /// for the level, such as five for 95 %.
    pub interval: Option<Interval>,
}

/// The ranks l < u with P(l ≤ Bin(n, q) ≤ u − 1) ≥ `level`, at most half of
/// the rest on each side, so that the l-th and the u-th smallest of `n`
/// samples bound the `q`-quantile (L-14).
///
/// Exact binomial sums while fewer than 100 samples are expected beyond the
/// quantile (on its rarer side), the normal form otherwise. Correlated samples
/// are worth fewer than they are: pass the effective number (L-8), and scale
/// the ranks back, or use [`percentile_fractions`], which does both.
///
/// With no samples, or with `q` or `level` not strictly between 0 and 1,
/// neither side is bounded.
pub fn percentile_ranks(n: u64, q: f64, level: f64) -> RankInterval {
    if n == 0 || !is_inside_unit(q) || !is_inside_unit(level) {
        return RankInterval::UNBOUNDED;
    }
    if q < 0.5 {
        // Counted from the other end, the q-quantile is the (1 − q)-quantile.
        let mirrored = percentile_ranks(n, 1.0 - q, level);
        return RankInterval {
            low: mirrored.high.map(|rank| n + 1 - rank),
            high: mirrored.low.map(|rank| n + 1 - rank),
        };
    }
    let beyond = Exceedances::new(n, 1.0 - q);
    let tail = (1.0 - level) / 2.0;
    if beyond.is_small() {
        exact_ranks(n, &beyond, tail)
    } else {
        normal_ranks(n, &beyond, tail)
    }
}

fn exact_ranks(n: u64, beyond: &Exceedances, tail: f64) -> RankInterval {
    // With K samples beyond the quantile, the u-th smallest is a false upper
    // bound when K ≤ n − u, the l-th a false lower bound when K ≥ n − l + 1.
    let extremes = beyond.extremes(tail);
    RankInterval {
        low: (n + 1)
            .checked_sub(extremes.too_many)
            .filter(|&rank| rank >= 1),
        high: extremes
            .too_few
            .map(|count| n - count)
            .filter(|&rank| rank >= 1),
    }
}

fn normal_ranks(n: u64, beyond: &Exceedances, tail: f64) -> RankInterval {
    let centre = n as f64 - beyond.mean();
    let reach = normal::upper_quantile(tail) * beyond.deviation();
    let (low, high) = ((centre - reach).floor(), (centre + reach).ceil() + 1.0);
    RankInterval {
        low: (low >= 1.0).then_some(low as u64),
        high: (high <= n as f64).then_some(high as u64),
    }
}

/// The bounds of the `q`-quantile as fractions of the samples, from 0 to 1,
/// to be looked up in a histogram; (low, high), `None` where unbounded.
///
/// Takes the number of *effective* samples (L-8), so a histogram of a million
/// correlated samples that are worth ten thousand gets the interval of ten
/// thousand.
pub fn percentile_fractions(
    effective_samples: f64,
    q: f64,
    level: f64,
) -> (Option<f64>, Option<f64>) {
    // The conversion saturates: not-a-number and negatives become 0.
    let n = effective_samples.floor() as u64;
    let ranks = percentile_ranks(n, q, level);
    let fraction = |rank: u64| rank as f64 / n as f64;
    (ranks.low.map(fraction), ranks.high.map(fraction))
}

/// Whether there are enough effective samples to show the `q`-quantile: at
/// least 100 beyond it (D4).
pub fn percentile_is_supported(effective_samples: f64, q: f64) -> bool {
    // 1 − 0.9999 is a little less than 0.0001, so a plain comparison would
    // refuse the very number of samples that the rule asks for.
    effective_samples * (1.0 - q) >= SAMPLES_BEYOND * (1.0 - 1e-9)
}

/// How many effective samples it takes to show the `q`-quantile (D4), to be
/// named where one is withheld.
pub fn samples_to_support(q: f64) -> u64 {
    (SAMPLES_BEYOND / (1.0 - q) * (1.0 - 1e-9)).ceil() as u64
}

/// Relative error of the tail mass beyond the `q`-quantile at `level`:
/// z / √(n (1 − q)) (L-14). 0.2 means that what is called p99 lies between
/// p98.8 and p99.2.
pub fn tail_mass_error(effective_samples: f64, q: f64, level: f64) -> f64 {
    normal::upper_quantile((1.0 - level) / 2.0) / (effective_samples * (1.0 - q)).sqrt()
}

/// The fewest samples whose maximum is an upper bound of the `q`-quantile with
/// confidence `level`, one-sided: the smallest n with 1 − qⁿ ≥ `level` (L-14).
/// The two-sided [`percentile_ranks`] needs more, as it spends half of the
/// error on the other side.
pub fn samples_for_upper_bound(q: f64, level: f64) -> u64 {
    ((1.0 - level).ln() / q.ln()).ceil() as u64
}

/// The median over runs of one number for each run, with its order-statistic
/// interval (L-15): for percentiles, which are never averaged.
///
/// `None` without a value, or when one is not a number. A run whose percentile
/// lies beyond the timeout may be given as infinity; it sorts last.
pub fn median_of_runs(values: &[f64], level: f64) -> Option<MedianOfRuns> {
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);

    let n = sorted.len() as u64;
    let ranks = percentile_ranks(n, 0.5, level);
    let interval = ranks.low.zip(ranks.high).map(|(low, high)| {
        let beyond = Exceedances::new(n, 0.5);
        Interval {
            low: sorted[low as usize - 1],
            high: sorted[high as usize - 1],
            level: 1.0 - beyond.at_most(n - high) - beyond.at_most(low - 1),
        }
    });
    Some(MedianOfRuns {
        median: median_of_sorted(&sorted),
        interval,
    })
}

/// Median of values in ascending order; not a number when there are none.
pub(crate) fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted {
        [] => f64::NAN,
        _ if sorted.len() % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

fn is_inside_unit(value: f64) -> bool {
    0.0 < value && value < 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_samples_or_with_an_impossible_quantile_nothing_is_bounded() {
        for (n, q, level) in [
            (0, 0.5, 0.95),
            (10, 1.0, 0.95),
            (10, f64::NAN, 0.95),
            (10, 0.5, 1.0),
        ] {
            assert_eq!(
                percentile_ranks(n, q, level),
                RankInterval::UNBOUNDED,
                "{n} {q} {level}"
            );
        }
    }

    #[test]
    fn an_extreme_percentile_of_few_samples_is_bounded_from_below_only() {
        let ranks = percentile_ranks(100, 0.99, 0.95);
        assert!(ranks.low.is_some() && ranks.high.is_none(), "{ranks:?}");
    }

    #[test]
    fn correlated_samples_widen_the_fractions() {
        let (low, high) = percentile_fractions(1e6, 0.99, 0.95);
        let (wider_low, wider_high) = percentile_fractions(1e4, 0.99, 0.95);
        assert!(wider_low < low && high < wider_high);
        assert_eq!(percentile_fractions(f64::NAN, 0.99, 0.95), (None, None));
    }

    #[test]
    fn a_run_that_is_not_a_number_is_not_ranked() {
        assert_eq!(median_of_runs(&[1.0, f64::NAN, 2.0], 0.95), None);
        assert_eq!(median_of_runs(&[], 0.95), None);
    }

    #[test]
    fn a_run_beyond_the_timeout_sorts_last() {
        let runs = [1.0, 2.0, 3.0, 4.0, 5.0, f64::INFINITY];
        let found = median_of_runs(&runs, 0.95).unwrap();
        assert_eq!(found.median, 3.5);
        assert_eq!(found.interval.unwrap().high, f64::INFINITY);
    }
}
