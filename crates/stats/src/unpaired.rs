//! The effect of a treatment against its baseline when nothing pairs their
//! trials: two runs, say, of two days (C-6, the unpaired fallback).
//!
//! Any other difference between the two groups is attributed to the treatment,
//! since no block holds it constant. That is why runs are compared only in the
//! same environment (C-13), and why inside one run [`paired`](crate::paired) is
//! used.
//!
//! The test is Mann and Whitney's on the logarithms, exact for ordinary
//! numbers of trials, ties included; the estimate is that of Hodges and
//! Lehmann, the median of all differences between the groups.

use crate::order::median_of_sorted;
use crate::paired::{Effect, POWER};
use crate::rank::doubled_mid_ranks;
use crate::{Interval, StatsError, normal};

/// More values than this in both groups together take the normal
/// approximation; the exact distribution costs the fourth power of it.
const EXACT_VALUES: usize = 60;

/// Effect of group `a` against group `b`, positive values in one unit, at
/// significance level `alpha`. The effect's `pairs` is the size of the smaller
/// group.
///
/// # Errors
///
/// When a group is empty, when a value is not positive and finite, and when
/// `alpha` does not lie between 0 and 1.
pub fn effect(a: &[f64], b: &[f64], alpha: f64) -> Result<Effect, StatsError> {
    if !(0.0 < alpha && alpha < 1.0) {
        return Err(StatsError::Alpha(alpha));
    }
    let (a, b) = (logarithms(a)?, logarithms(b)?);
    Ok(Effect {
        ratio_minus_one: shift(&a, &b).exp_m1(),
        interval: shift_interval(&a, &b, alpha).map(|interval| interval.map(f64::exp_m1)),
        p_value: rank_sum_p(&a, &b),
        pairs: a.len().min(b.len()),
        smallest_effect: smallest_effect(&a, &b, alpha),
    })
}

fn logarithms(values: &[f64]) -> Result<Vec<f64>, StatsError> {
    if values.is_empty() {
        return Err(StatsError::NoValues);
    }
    let logarithm = |&value: &f64| {
        let is_positive = value > 0.0 && value.is_finite();
        is_positive
            .then(|| value.ln())
            .ok_or(StatsError::NoLogarithm(value))
    };
    values.iter().map(logarithm).collect()
}

/// The Hodges–Lehmann estimate of how far `a` lies above `b`: the median of
/// all differences aᵢ − bⱼ (C-6). Not a number when a group is empty.
pub fn shift(a: &[f64], b: &[f64]) -> f64 {
    median_of_sorted(&sorted_differences(a, b))
}

fn sorted_differences(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut differences: Vec<f64> = a
        .iter()
        .flat_map(|a| b.iter().map(move |b| a - b))
        .collect();
    differences.sort_unstable_by(f64::total_cmp);
    differences
}

/// Two-sided p-value of the Mann–Whitney test that both groups have one
/// distribution: twice the smaller tail, at most 1.
///
/// Exact for up to 60 values in both groups, with mean ranks for ties; beyond,
/// the normal approximation with tie and continuity correction.
pub fn rank_sum_p(a: &[f64], b: &[f64]) -> f64 {
    let together: Vec<f64> = a.iter().chain(b).copied().collect();
    let ranks = doubled_mid_ranks(&together);
    let sum: usize = ranks[..a.len()].iter().sum();
    if together.len() > EXACT_VALUES {
        return normal_p(&ranks, a.len(), sum);
    }
    let null = null_distribution(&ranks, a.len());
    let below: f64 = null[..=sum].iter().sum();
    let above: f64 = null[sum..].iter().sum();
    (2.0 * below.min(above)).min(1.0)
}

/// Confidence interval of the shift of `a` above `b`, in their unit: the
/// shifts that the test at level `alpha` does not reject. The level is the one
/// achieved; with ties, at least that. `None` when the groups are too small for
/// the level, such as three values each at 5 % (C-7).
pub fn shift_interval(a: &[f64], b: &[f64], alpha: f64) -> Option<Interval> {
    let (outside, level) = critical_count(a.len(), b.len(), alpha)?;
    let differences = sorted_differences(a, b);
    Some(Interval {
        low: differences[outside],
        high: differences[differences.len() - 1 - outside],
        level,
    })
}

/// The effect, as a ratio less one, that logarithms as noisy as these would
/// show with 80 % probability at level `alpha` (C-8, with one variance for
/// both groups): δ = s·(t₁₋ₐ/₂ + t₀.₈)·√(1/n + 1/m)/√(3/π), with the level that
/// the exact test really has; see
/// [`paired::smallest_effect`](crate::paired::smallest_effect).
///
/// `None` when the level cannot be reached, and when nothing spreads.
pub fn smallest_effect(a: &[f64], b: &[f64], alpha: f64) -> Option<f64> {
    let (_, level) = critical_count(a.len(), b.len(), alpha)?;
    let freedom = (a.len() + b.len() - 2) as f64;
    let spread = ((squares(a) + squares(b)) / freedom).sqrt();
    if spread.is_nan() || spread <= 0.0 {
        return None;
    }
    let reach = normal::student_upper_quantile((1.0 - level) / 2.0, freedom)
        + normal::student_upper_quantile(1.0 - POWER, freedom);
    let sizes = 1.0 / a.len() as f64 + 1.0 / b.len() as f64;
    let efficiency = 3.0 / std::f64::consts::PI;
    Some((spread * reach * (sizes / efficiency).sqrt()).exp_m1())
}

/// Sum of squared distances from the mean.
fn squares(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// The largest c with P(U ≤ c) ≤ `alpha`/2 for untied groups of `n` and `m`,
/// and the level 1 − 2·P(U ≤ c).
fn critical_count(n: usize, m: usize, alpha: f64) -> Option<(usize, f64)> {
    if n == 0 || m == 0 {
        return None;
    }
    if n + m > EXACT_VALUES {
        return critical_count_of_many(n as f64, m as f64, alpha);
    }
    let untied: Vec<usize> = (1..=n + m).collect();
    // The smallest rank sum is U = 0.
    let smallest = n * (n + 1) / 2;
    let mut cumulative = 0.0;
    let mut critical = None;
    for (count, probability) in null_distribution(&untied, n)[smallest..].iter().enumerate() {
        cumulative += probability;
        if cumulative > alpha / 2.0 {
            break;
        }
        critical = Some((count, 1.0 - 2.0 * cumulative));
    }
    critical
}

fn critical_count_of_many(n: f64, m: f64, alpha: f64) -> Option<(usize, f64)> {
    let mean = n * m / 2.0;
    let deviation = (n * m * (n + m + 1.0) / 12.0).sqrt();
    let critical = (mean - 0.5 - normal::upper_quantile(alpha / 2.0) * deviation).floor();
    let outside = 2.0 * normal::upper_tail((mean - critical - 0.5) / deviation);
    (critical >= 0.0).then_some((critical as usize, 1.0 - outside))
}

/// P(W = 0), P(W = 1), … where W is the sum of `n` of `ranks`, each choice
/// equally likely.
fn null_distribution(ranks: &[usize], n: usize) -> Vec<f64> {
    let total: usize = ranks.iter().sum();
    // ways[k][s]: in how many ways k ranks have the sum s. Up to 60 values
    // there are at most 10¹⁷, which a double holds closely enough.
    let mut ways = vec![vec![0.0; total + 1]; n + 1];
    ways[0][0] = 1.0;
    let mut reached = 0;
    for &rank in ranks {
        reached += rank;
        // Downwards, so that no rank is chosen twice.
        for chosen in (1..=n).rev() {
            let (fewer, more) = ways.split_at_mut(chosen);
            for sum in rank..=reached {
                more[0][sum] += fewer[chosen - 1][sum - rank];
            }
        }
    }
    let all: f64 = ways[n].iter().sum();
    ways[n].iter().map(|ways| ways / all).collect()
}

/// Two-sided p-value for doubled `ranks`, of which the first `n` add up to `sum`.
fn normal_p(ranks: &[usize], n: usize, sum: usize) -> f64 {
    let (size, n) = (ranks.len() as f64, n as f64);
    let mean_rank = ranks.iter().sum::<usize>() as f64 / size;
    let spread: f64 = ranks
        .iter()
        .map(|&rank| (rank as f64 - mean_rank).powi(2))
        .sum();
    // Drawing without replacement; the ranks as they are correct for ties.
    let variance = n * (size - n) / (size * (size - 1.0)) * spread;
    if variance <= 0.0 {
        return 1.0;
    }
    // Half a step of the undoubled sum is 1 here.
    let distance = ((sum as f64 - n * mean_rank).abs() - 1.0).max(0.0);
    (2.0 * normal::upper_tail(distance / variance.sqrt())).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_null_distribution_counts_every_choice() {
        // Of 1, 2, 3, 4 two are chosen: sums 3, 4, 5, 5, 6, 7.
        let found = null_distribution(&[1, 2, 3, 4], 2);
        let sixths: Vec<f64> = found.iter().map(|p| (p * 6.0).round()).collect();
        assert_eq!(
            sixths,
            [0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 1.0, 1.0, 0.0, 0.0, 0.0]
        );
    }

    #[test]
    fn three_values_each_never_reach_five_percent() {
        let found = effect(&[2.0, 2.1, 2.2], &[1.0, 1.1, 1.2], 0.05).unwrap();
        assert_eq!((found.interval, found.smallest_effect), (None, None));
        assert!((found.p_value - 0.1).abs() < 1e-12, "C-7's own figure");
        let found = effect(&[2.0, 2.1, 2.2, 2.3], &[1.0, 1.1, 1.2, 1.3], 0.05).unwrap();
        assert!(
            (found.p_value - 2.0 / 70.0).abs() < 1e-12,
            "C-7's own figure"
        );
        assert!(found.interval.unwrap().low > 0.0);
    }

    #[test]
    fn exact_and_approximate_agree_where_they_meet() {
        let a: Vec<f64> = (0..30).map(|i| f64::from(i * 7 % 30)).collect();
        let b: Vec<f64> = (0..30).map(|i| f64::from(i * 11 % 30) + 5.3).collect();
        let exact = rank_sum_p(&a, &b);
        let together: Vec<f64> = a.iter().chain(&b).copied().collect();
        let ranks = doubled_mid_ranks(&together);
        let approximate = normal_p(&ranks, 30, ranks[..30].iter().sum());
        assert!(
            (exact / approximate - 1.0).abs() < 0.05,
            "{exact} {approximate}"
        );
    }

    #[test]
    fn groups_that_are_equal_throughout_do_not_differ() {
        let found = effect(&[5.0; 8], &[5.0; 8], 0.05).unwrap();
        assert_eq!((found.ratio_minus_one, found.p_value), (0.0, 1.0));
        let many = rank_sum_p(&[5.0; 40], &[5.0; 40]);
        assert_eq!(many, 1.0);
    }

    #[test]
    fn what_has_no_logarithm_is_refused() {
        assert_eq!(effect(&[], &[1.0], 0.05), Err(StatsError::NoValues));
        assert_eq!(
            effect(&[0.0], &[1.0], 0.05),
            Err(StatsError::NoLogarithm(0.0))
        );
        assert_eq!(effect(&[1.0], &[1.0], 1.5), Err(StatsError::Alpha(1.5)));
    }
}
