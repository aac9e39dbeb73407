//! How many independent samples a series is worth (L-8).

use crate::rank::doubled_mid_ranks;

/// The number of independent samples that carry as much as this `series`, in
/// the order of time: n / (1 + 2 Σ ρₖ), between 1 and n (L-8).
///
/// The autocorrelations ρₖ are summed in pairs (ρ₂ₘ + ρ₂ₘ₊₁) up to the first
/// pair that is not positive; beyond it there is only noise, which would
/// otherwise add up. Source: C. J. Geyer, "Practical Markov Chain Monte
/// Carlo", Statistical Science 7 (1992), the initial positive sequence.
///
/// Negative correlation would make a mean, but not a percentile, more certain
/// than n independent samples do, so the result is never above n. A series
/// whose values are all equal shows no correlation and is worth n. The time
/// taken is n times the distance over which values are correlated: thin a
/// series of more than 100 000 values first.
pub fn effective_samples(series: &[f64]) -> f64 {
    let n = series.len() as f64;
    let mean = series.iter().sum::<f64>() / n;
    let centred: Vec<f64> = series.iter().map(|value| value - mean).collect();
    let variance = covariance_at(&centred, 0);
    if variance <= 0.0 {
        return n;
    }
    // ρ₀ = 1 belongs to the first pair, hence −1.
    let correlation_time = (0..centred.len())
        .step_by(2)
        .map(|lag| covariance_at(&centred, lag) + covariance_at(&centred, lag + 1))
        .take_while(|&pair| pair > 0.0)
        .fold(-1.0, |sum, pair| sum + 2.0 * pair / variance);
    if correlation_time > 1.0 {
        (n / correlation_time).max(1.0)
    } else {
        n
    }
}

/// Spearman's rank correlation of each value with the next one, from −1 to 1
/// (L-8). 0 when there is no order to correlate: fewer than three values, or
/// all equal.
pub fn lag1_spearman(series: &[f64]) -> f64 {
    if series.len() < 3 {
        return 0.0;
    }
    let earlier = doubled_mid_ranks(&series[..series.len() - 1]);
    let later = doubled_mid_ranks(&series[1..]);
    // Both hold the ranks 1 to n, doubled, whose mean is n + 1.
    let mean = series.len() as f64;
    let product = |a: &[usize], b: &[usize]| -> f64 {
        a.iter()
            .zip(b)
            .map(|(&x, &y)| (x as f64 - mean) * (y as f64 - mean))
            .sum()
    };
    let scale = (product(&earlier, &earlier) * product(&later, &later)).sqrt();
    if scale > 0.0 {
        product(&earlier, &later) / scale
    } else {
        0.0
    }
}

/// Sum of products `lag` apart. Divided by nothing: only ratios are used.
fn covariance_at(centred: &[f64], lag: usize) -> f64 {
    let later = centred.get(lag..).unwrap_or_default();
    centred.iter().zip(later).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_climb_is_worth_few_samples() {
        let climb: Vec<f64> = (0..1000).map(f64::from).collect();
        assert!(effective_samples(&climb) < 10.0);
        assert_eq!(lag1_spearman(&climb), 1.0);
    }

    #[test]
    fn alternation_is_not_worth_more_than_its_length() {
        let alternating: Vec<f64> = (0..1000).map(|i| f64::from(i % 2)).collect();
        assert_eq!(effective_samples(&alternating), 1000.0);
        assert!((lag1_spearman(&alternating) + 1.0).abs() < 1e-12);
    }

    #[test]
    fn where_there_is_no_order_there_is_no_correlation() {
        for series in [&[][..], &[1.0], &[1.0, 2.0], &[5.0; 20]] {
            assert_eq!(lag1_spearman(series), 0.0, "{series:?}");
        }
        assert_eq!(effective_samples(&[5.0; 20]), 20.0);
        assert_eq!(effective_samples(&[]), 0.0);
    }
}
