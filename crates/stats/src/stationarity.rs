//! Whether a series has one level or changes it (L-10).

use crate::order::median_of_sorted;
use crate::rank::doubled_mid_ranks;

/// Fewest values in which a change is looked for (L-10).
const FEWEST: usize = 10;
/// Parts that a longer series is cut into. Neighbours are alike, which would
/// make a rank test see changes everywhere; medians of parts are less so. With
/// fewer parts a change in the first or last fifth could not become
/// significant at 1 %, however large.
const PARTS: usize = 40;

/// The most likely moment of a change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// Where, as a share of the series, from 0 to 1.
    pub at: f64,
    /// Median of what lies before, in the unit of the series.
    pub before: f64,
    /// Median of what lies after.
    pub after: f64,
    /// How likely a series without change looks like this or worse.
    pub p_value: f64,
}

impl ChangePoint {
    /// How many times the smaller of the two levels the larger is, at least 1.
    pub fn factor(&self) -> f64 {
        let (low, high) = (self.before.min(self.after), self.before.max(self.after));
        if low > 0.0 { high / low } else { f64::INFINITY }
    }
}

/// The most likely change of level in a `series` in the order of time; `None`
/// with fewer than 10 values, or where all are equal.
///
/// Pettitt's test over the medians of 40 equal parts (of all values, when there
/// are fewer than 40): K = max |Uₜ| with Uₜ = 2 Σᵢ₌₁..ₜ rᵢ − t (n+1) over the
/// ranks r, and p ≈ 2 exp(−6 K² / (n³ + n²)). It knows no distribution, and a
/// single outlier cannot make a change; nor can what fills less than about a
/// fifth of the series at one of its ends. Source: A. N. Pettitt, "A
/// Non-Parametric Approach to the Change-Point Problem", Applied Statistics 28
/// (1979).
pub fn change_point(series: &[f64]) -> Option<ChangePoint> {
    if series.len() < FEWEST {
        return None;
    }
    let parts = medians(series, PARTS.min(series.len()));
    let n = parts.len();
    let mut sum = 0_i64;
    let (mut largest, mut at) = (0, 0);
    let ranks = doubled_mid_ranks(&parts);
    for (index, &rank) in ranks.iter().enumerate().take(n - 1) {
        sum += rank as i64 - (n as i64 + 1);
        if sum.abs() > largest {
            (largest, at) = (sum.abs(), index + 1);
        }
    }
    if largest == 0 {
        return None;
    }
    let (n, k) = (n as f64, largest as f64);
    Some(ChangePoint {
        at: at as f64 / n,
        before: median(&parts[..at]),
        after: median(&parts[at..]),
        p_value: (2.0 * (-6.0 * k * k / (n.powi(3) + n.powi(2))).exp()).min(1.0),
    })
}

/// The median of each of `parts` parts, as equal as they can be.
fn medians(series: &[f64], parts: usize) -> Vec<f64> {
    let bound = |part: usize| part * series.len() / parts;
    (0..parts)
        .map(|part| median(&series[bound(part)..bound(part + 1)]))
        .collect()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// A hundred slices around 1, spread by 5 % each way.
    fn noise(seed: u64) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..100)
            .map(|_| 1.0 + 0.1 * (rng.random::<f64>() - 0.5))
            .collect()
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        for (step, share) in [(20, 0.2), (50, 0.5), (75, 0.75)] {
            let mut series = noise(1);
            series[step..].iter_mut().for_each(|value| *value *= 1.5);
            let change = change_point(&series).unwrap();
            // A change near an end is placed a little towards the middle.
            assert!((change.at - share).abs() <= 0.1, "{step}: {change:?}");
            assert!(change.p_value < 0.01, "{step}: {change:?}");
            assert!((change.factor() - 1.5).abs() < 0.1, "{step}: {change:?}");
        }
    }

    #[test]
    fn a_climb_is_a_change() {
        let climb: Vec<f64> = (0..100).map(|i| 1.0 + f64::from(i) / 100.0).collect();
        let change = change_point(&climb).unwrap();
        assert!(change.p_value < 0.01 && change.factor() > 1.3, "{change:?}");
    }

    #[test]
    fn noise_is_seldom_taken_for_a_change() {
        let alarms = (0..2_000)
            .filter(|&seed| change_point(&noise(seed)).is_some_and(|c| c.p_value < 0.01))
            .count();
        // 1 % and three standard deviations; the formula errs towards none.
        assert!(alarms <= 34, "{alarms}");
    }

    #[test]
    fn a_spike_is_not_a_change() {
        let mut series = noise(3);
        series[40..45].iter_mut().for_each(|value| *value *= 100.0);
        let change = change_point(&series).unwrap();
        assert!(change.p_value > 0.05, "{change:?}");
    }

    #[test]
    fn too_few_or_equal_values_show_no_change() {
        assert_eq!(change_point(&[1.0; 9]), None);
        assert_eq!(change_point(&[1.0; 100]), None);
        assert_eq!(change_point(&[]), None);
    }
}
