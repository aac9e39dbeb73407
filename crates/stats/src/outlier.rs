//! Values far from the rest: flagged and shown, never dropped (C-12).

use crate::order::median_of_sorted;

/// A modified z-score above this marks an outlier: ten standard deviations of
/// normal noise, for which MAD = σ/1.4826 (C-12).
pub const THRESHOLD: f64 = 14.826;

/// Steps smaller than this share of the median are within the resolution of a
/// histogram with three significant digits (L-20, D12).
const RESOLUTION: f64 = 1e-3;

/// The distance |x − median| / MAD of each value from the rest, in the order
/// of `values`; MAD is the median of these absolute distances (C-12).
///
/// When more than half of the values are equal, as happens with coarsely
/// resolved metrics, MAD is 0 and one step of the resolution would be
/// infinitely far. 0.1 % of the median stands in for it, so that a score is
/// infinite only for a value among zeros.
pub fn modified_z_scores(values: &[f64]) -> Vec<f64> {
    let median = median_of(values);
    let distances: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
    let mad = median_of(&distances);
    let unit = if mad > 0.0 {
        mad
    } else {
        RESOLUTION * median.abs()
    };
    let score = |distance: f64| {
        if distance == 0.0 {
            0.0
        } else {
            distance / unit
        }
    };
    distances.into_iter().map(score).collect()
}

fn median_of(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wild_value_is_flagged_and_the_rest_is_not() {
        let scores = modified_z_scores(&[10.0, 10.1, 9.9, 10.2, 9.8, 30.0]);
        let flagged: Vec<bool> = scores.iter().map(|&score| score > THRESHOLD).collect();
        assert_eq!(flagged, [false, false, false, false, false, true]);
    }

    #[test]
    fn among_equal_values_a_step_of_the_resolution_is_near_and_a_wild_value_far() {
        let scores = modified_z_scores(&[5.0, 5.0, 5.0, 5.0, 5.005, 50.0]);
        assert_eq!(scores[..4], [0.0; 4]);
        assert!((scores[4] - 1.0).abs() < 1e-6, "{scores:?}");
        assert!(scores[5] > THRESHOLD && scores[5].is_finite(), "{scores:?}");
    }

    #[test]
    fn anything_among_zeros_is_infinitely_far() {
        assert_eq!(
            modified_z_scores(&[0.0, 0.0, 0.0, 2.0]),
            [0.0, 0.0, 0.0, f64::INFINITY]
        );
    }

    #[test]
    fn equal_values_and_no_values_have_no_outlier() {
        assert_eq!(modified_z_scores(&[3.0; 7]), [0.0; 7]);
        assert!(modified_z_scores(&[]).is_empty());
    }
}
