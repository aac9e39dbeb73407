//! Wilcoxon's signed-rank test, exact, and the interval that belongs to it.
//!
//! Under the null hypothesis every difference is as likely to be negative as
//! positive, so each rank is added to the sum T with probability one half,
//! and the distribution of T is built up one rank after another.
//!
//! *Ties* in |d| share their mean rank, and the distribution is that of the
//! ranks as they are, so the test stays exact. *Zeros* are treated as Pratt
//! does: they take part in the ranking and are left out of the sum. Latencies
//! come out of a histogram with three digits, so equal values of both
//! treatments are ordinary. Dropping them before ranking, as Wilcoxon did, has
//! a paradox that Pratt found: adding the same amount to all differences of a
//! significantly positive sample can make it insignificant. It also ranks
//! other values than the interval does, whose Walsh averages include the zeros.
//!
//! Many zeros are evidence against a difference, but neither rule counts them
//! as such, so the p-value of mostly equal pairs is too small. The interval
//! does count them, which is why a verdict requires both.
//!
//! Source: J. W. Pratt, "Remarks on Zeros and Ties in the Wilcoxon Signed Rank
//! Procedures", Journal of the American Statistical Association 54 (1959).

use crate::rank::doubled_mid_ranks;
use crate::{Interval, normal};

use super::walsh::sorted_walsh_averages;

/// More pairs than this take the normal approximation. The exact distribution
/// costs n³ steps, and at 200 the two agree to the third digit of p = 0.05.
const EXACT_PAIRS: usize = 200;

/// Two-sided p-value of the signed-rank test that the differences `d` are
/// symmetric around zero (D8). 1 when none differs from zero.
///
/// Exact for up to 200 differences, ties and zeros included; beyond, the
/// normal approximation with the variance of the actual ranks and continuity
/// correction.
pub fn signed_rank_p(d: &[f64]) -> f64 {
    let sizes: Vec<f64> = d.iter().map(|value| value.abs()).collect();
    let signed: Vec<(f64, usize)> = d
        .iter()
        .copied()
        .zip(doubled_mid_ranks(&sizes))
        .filter(|&(value, _)| value != 0.0)
        .collect();
    let ranks: Vec<usize> = signed.iter().map(|&(_, rank)| rank).collect();
    let total: usize = ranks.iter().sum();
    let positive: usize = signed
        .iter()
        .filter(|&&(value, _)| value > 0.0)
        .map(|&(_, rank)| rank)
        .sum();
    let smaller = positive.min(total - positive);

    let one_sided = if d.len() <= EXACT_PAIRS {
        null_distribution(&ranks).iter().take(smaller + 1).sum()
    } else {
        normal_p(&ranks, smaller)
    };
    (2.0_f64 * one_sided).min(1.0)
}

/// Confidence interval of the centre of `d`, in its unit: the set of shifts
/// that the signed-rank test at level `alpha` does not reject, bounded by two
/// order statistics of the Walsh averages (C-6, D8).
///
/// The level is the one achieved, at least 1 − `alpha`; exact for up to 200
/// untied differences, and with ties not below it. `None` when even all
/// averages together do not reach the level, such as five differences at 5 %
/// (C-7).
pub fn signed_rank_interval(d: &[f64], alpha: f64) -> Option<Interval> {
    let (outside, level) = critical_sum(d.len(), alpha)?;
    let averages = sorted_walsh_averages(d);
    let (low, high) = (averages[outside], averages[averages.len() - 1 - outside]);
    Some(Interval { low, high, level })
}

/// The confidence level that the test of `n` differences at level `alpha`
/// really has: at least 1 − `alpha`, `None` when it cannot be reached.
pub(super) fn attained_level(n: usize, alpha: f64) -> Option<f64> {
    critical_sum(n, alpha).map(|(_, level)| level)
}

/// The largest c with P(T ≤ c) ≤ `alpha`/2 for `n` untied differences, which
/// is as many Walsh averages as lie outside the interval on each side; and the
/// level 1 − 2·P(T ≤ c).
fn critical_sum(n: usize, alpha: f64) -> Option<(usize, f64)> {
    if n > EXACT_PAIRS {
        return critical_sum_of_many(n, alpha);
    }
    let untied: Vec<usize> = (1..=n).collect();
    let mut cumulative = 0.0;
    let mut critical = None;
    for (sum, probability) in null_distribution(&untied).into_iter().enumerate() {
        cumulative += probability;
        if cumulative > alpha / 2.0 {
            break;
        }
        critical = Some((sum, 1.0 - 2.0 * cumulative));
    }
    critical
}

fn critical_sum_of_many(n: usize, alpha: f64) -> Option<(usize, f64)> {
    let n = n as f64;
    let mean = n * (n + 1.0) / 4.0;
    let deviation = (mean * (2.0 * n + 1.0) / 6.0).sqrt();
    let critical = (mean - 0.5 - normal::upper_quantile(alpha / 2.0) * deviation).floor();
    let outside = 2.0 * normal::upper_tail((mean - critical - 0.5) / deviation);
    (critical >= 0.0).then_some((critical as usize, 1.0 - outside))
}

/// P(T = 0), P(T = 1), … where T adds each of `ranks` with probability ½.
fn null_distribution(ranks: &[usize]) -> Vec<f64> {
    let total: usize = ranks.iter().sum();
    let mut probabilities = vec![0.0; total + 1];
    probabilities[0] = 1.0;
    let mut reached = 0;
    for &rank in ranks {
        reached += rank;
        // Downwards, so that what is read was not yet touched by this rank.
        for sum in (0..=reached).rev() {
            let with_rank = if sum >= rank {
                probabilities[sum - rank]
            } else {
                0.0
            };
            probabilities[sum] = (probabilities[sum] + with_rank) / 2.0;
        }
    }
    probabilities
}

/// P(T ≤ `smaller`) for doubled `ranks`, by the normal approximation.
fn normal_p(ranks: &[usize], smaller: usize) -> f64 {
    let squares: f64 = ranks.iter().map(|&rank| (rank as f64).powi(2)).sum();
    if squares == 0.0 {
        return 1.0;
    }
    let mean = ranks.iter().sum::<usize>() as f64 / 2.0;
    // Half a step of the undoubled sum is 1 here. It must not cross the mean.
    let distance = (mean - smaller as f64 - 1.0).max(0.0);
    normal::upper_tail(distance / (squares / 4.0).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_null_distribution_of_three_ranks_is_the_one_counted_by_hand() {
        let eighths: Vec<f64> = null_distribution(&[1, 2, 3])
            .iter()
            .map(|p| p * 8.0)
            .collect();
        assert_eq!(eighths, [1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn zeros_are_ranked_and_left_out_of_the_sum() {
        // Ranks 4 to 10 after three zeros, of which 6 is negative: 4 of the
        // 128 sets of ranks sum up to no more.
        let d = [1.0, 2.0, -3.0, 4.0, 5.0, 6.0, 7.0, 0.0, 0.0, 0.0];
        assert_eq!(signed_rank_p(&d), 2.0 * 4.0 / 128.0);
    }

    #[test]
    fn without_a_difference_there_is_no_evidence() {
        assert_eq!(signed_rank_p(&[0.0; 12]), 1.0);
        assert_eq!(signed_rank_p(&[0.0; 300]), 1.0);
        assert_eq!(signed_rank_p(&[]), 1.0);
    }

    #[test]
    fn where_most_pairs_are_equal_the_interval_holds_back_what_p_would_claim() {
        let mut d = vec![0.0; 10];
        d.extend((1..=8).map(|i| f64::from(i) / 100.0));
        assert!(signed_rank_p(&d) < 0.01);
        assert!(signed_rank_interval(&d, 0.05).unwrap().contains(0.0));
    }

    #[test]
    fn exact_and_normal_forms_meet_where_one_takes_over() {
        let slightly_shifted = |n: usize| -> Vec<f64> {
            (1..=n)
                .map(|i| i as f64 * if i % 9 < 5 { 1.0 } else { -1.0 })
                .collect()
        };
        let exact = signed_rank_p(&slightly_shifted(EXACT_PAIRS));
        let ranks: Vec<usize> = (1..=EXACT_PAIRS).map(|rank| 2 * rank).collect();
        let positive: usize = ranks.iter().filter(|&&rank| rank / 2 % 9 < 5).sum();
        let total: usize = ranks.iter().sum();
        let normal = 2.0 * normal_p(&ranks, positive.min(total - positive));
        assert!((exact - normal).abs() < 2e-3, "{exact} {normal}");

        let (sum, level) = critical_sum(EXACT_PAIRS, 0.05).unwrap();
        let (sum_of_many, level_of_many) = critical_sum_of_many(EXACT_PAIRS, 0.05).unwrap();
        assert!(sum.abs_diff(sum_of_many) <= 5, "{sum} {sum_of_many}");
        assert!(
            (level - level_of_many).abs() < 1e-3,
            "{level} {level_of_many}"
        );
    }
}
