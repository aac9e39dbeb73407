//! Whether gaps between arrivals are those that a schedule promised (L-7).

/// The shortest gap that a nanosecond clock can distinguish from none,
/// nanoseconds.
const LEAST_GAP: f64 = 0.5;

/// The value of [`Fit::anderson_darling`] that 1 % of true samples exceed, for
/// a law that is known beforehand. Source: M. A. Stephens, "EDF Statistics for
/// Goodness of Fit and Some Comparisons", JASA 69 (1974), table 1.
pub const ANDERSON_DARLING_1_PERCENT: f64 = 3.857;

/// How far a sample is from a law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// A², the statistic of Anderson and Darling: weighs the ends, and grows
    /// with the sample when the law is another.
    pub anderson_darling: f64,
    /// D, the distance of Kolmogorov and Smirnov, from 0 to 1: the largest
    /// error of the share of gaps below any length. It does not grow with the
    /// sample, so it tells how much a difference matters.
    pub distance: f64,
}

/// Compares `gaps` in nanoseconds with the exponential law with this `mean`,
/// that of Poisson arrivals; `None` without gaps or mean (L-7).
///
/// A² = −n − (1/n) Σ (2i−1) [ln F(xᵢ) + ln(1 − F(xₙ₊₁₋ᵢ))] over the sorted
/// gaps, with F(x) = 1 − exp(−x / mean).
pub fn exponential_fit(gaps: &[f64], mean: f64) -> Option<Fit> {
    if gaps.is_empty() || !(mean > 0.0 && mean.is_finite()) {
        return None;
    }
    let mut sorted: Vec<f64> = gaps.iter().map(|gap| gap.max(LEAST_GAP) / mean).collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let mut sum = 0.0;
    let mut distance: f64 = 0.0;
    for (index, (&gap, &mirrored)) in sorted.iter().zip(sorted.iter().rev()).enumerate() {
        let below = -(-gap).exp_m1();
        // ln(1 − F) of an exponential law is −x.
        sum += (2 * index + 1) as f64 * (below.ln() - mirrored);
        let (before, after) = (index as f64 / n, (index + 1) as f64 / n);
        distance = distance.max(below - before).max(after - below);
    }
    Some(Fit {
        anderson_darling: -n - sum / n,
        distance,
    })
}

#[cfg(test)]
mod tests {
    use rand::{RngExt as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    const MEAN: f64 = 100_000.0;

    fn exponential(seed: u64, n: usize) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..n)
            .map(|_| -MEAN * (1.0 - rng.random::<f64>()).ln())
            .collect()
    }

    #[test]
    fn true_samples_exceed_the_critical_value_as_often_as_it_says() {
        let repetitions = 2_000;
        let exceeding = (0..repetitions)
            .filter(|&seed| {
                let fit = exponential_fit(&exponential(seed, 200), MEAN).unwrap();
                fit.anderson_darling > ANDERSON_DARLING_1_PERCENT
            })
            .count();
        // 1 % of 2,000, and three standard deviations of it.
        assert!((7..=34).contains(&exceeding), "{exceeding}");
    }

    #[test]
    fn the_distance_of_a_true_sample_is_small() {
        let fit = exponential_fit(&exponential(1, 5_000), MEAN).unwrap();
        // 1.63/√n is exceeded by one sample in a hundred.
        assert!(fit.distance < 1.63 / 5_000_f64.sqrt(), "{fit:?}");
    }

    #[test]
    fn equal_gaps_and_bursts_are_no_poisson_arrivals() {
        let equal = exponential_fit(&[MEAN; 500], MEAN).unwrap();
        // All mass at the mean, where F is 1 − 1/e.
        assert!((equal.distance - (1.0 - (-1_f64).exp())).abs() < 1e-12);
        assert!(equal.anderson_darling > 100.0);

        // What a sender does that wakes late: ten at once, then a long gap.
        let mut bursts = exponential(2, 5_000);
        for burst in bursts.chunks_mut(10) {
            let sum: f64 = burst.iter().sum();
            burst.fill(1_000.0);
            burst[0] = sum - 9_000.0;
        }
        let fit = exponential_fit(&bursts, MEAN).unwrap();
        assert!(
            fit.distance > 0.5 && fit.anderson_darling > 100.0,
            "{fit:?}"
        );
    }

    #[test]
    fn another_rate_than_promised_is_seen() {
        let fit = exponential_fit(&exponential(3, 5_000), MEAN * 1.1).unwrap();
        assert!(fit.distance > 0.03, "{fit:?}");
        assert!(fit.anderson_darling > 10.0, "{fit:?}");
    }

    #[test]
    fn gaps_of_nothing_give_finite_numbers() {
        let fit = exponential_fit(&[0.0; 100], MEAN).unwrap();
        assert!(fit.anderson_darling.is_finite() && fit.distance > 0.99);
        assert_eq!(exponential_fit(&[], MEAN), None);
        assert_eq!(exponential_fit(&[1.0], 0.0), None);
    }
}
