//! The normal distribution, and Student's t by way of it.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Probability that a standard normal variable exceeds `z`.
pub(crate) fn upper_tail(z: f64) -> f64 {
    if z < 0.0 {
        1.0 - upper_tail(-z)
    } else {
        complementary_error(z * FRAC_1_SQRT_2) / 2.0
    }
}

/// The point that a standard normal variable exceeds with probability `tail`,
/// for `tail` between 0 and 1, both excluded.
pub(crate) fn upper_quantile(tail: f64) -> f64 {
    if tail > 0.5 {
        return -upper_quantile(1.0 - tail);
    }
    // On the right half the tail is convex, so Newton's steps from 0 approach
    // the solution from one side and cannot overshoot. About z²/2 steps are
    // spent on the way out; the bound is there so that the loop provably ends.
    let mut z = 0.0;
    for _ in 0..1000 {
        let step = (upper_tail(z) - tail) / density(z);
        z += step;
        if step.abs() <= 1e-15 * (1.0 + z) {
            break;
        }
    }
    z
}

/// The point that Student's t with `freedom` degrees of freedom exceeds with
/// probability `tail`.
///
/// Expansion 26.7.5 in Abramowitz and Stegun's Handbook of Mathematical
/// Functions: within 0.5 % for 5 or more degrees and tails down to 0.01, which
/// is far less than what it is used for is uncertain by.
pub(crate) fn student_upper_quantile(tail: f64, freedom: f64) -> f64 {
    let z = upper_quantile(tail);
    let z2 = z * z;
    let terms = [
        (z2 + 1.0) / 4.0,
        ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0,
        (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0,
        ((((79.0 * z2 + 776.0) * z2 + 1482.0) * z2 - 1920.0) * z2 - 945.0) / 92160.0,
    ];
    let series = terms
        .iter()
        .rev()
        .fold(0.0, |sum, term| (sum + term) / freedom);
    z * (1.0 + series)
}

/// The density of a standard normal variable.
pub(crate) fn density(z: f64) -> f64 {
    (-z * z / 2.0).exp() / (2.0 * PI).sqrt()
}

/// erfc for `x` ≥ 0: the power series whose terms are all positive near zero
/// (Abramowitz and Stegun 7.1.6), the continued fraction further out (7.1.14).
fn complementary_error(x: f64) -> f64 {
    let scale = (-x * x).exp() / PI.sqrt();
    if x < 2.5 {
        let mut term = 2.0 * x;
        let mut sum = term;
        let mut k = 0.0;
        while term > sum * 1e-17 {
            k += 1.0;
            term *= 2.0 * x * x / (2.0 * k + 1.0);
            sum += term;
        }
        1.0 - scale * sum
    } else {
        let fraction = (1..=80)
            .rev()
            .fold(x, |below, k| x + f64::from(k) / 2.0 / below);
        scale / fraction
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn expected(section: &str) -> Vec<(f64, f64, f64)> {
        let all: Value =
            serde_json::from_str(include_str!("../tests/scipy/expected.json")).unwrap();
        let rows = all[section].as_array().unwrap();
        assert!(!rows.is_empty());
        let field = |row: &Value, name: &str| row[name].as_f64().unwrap_or(f64::NAN);
        rows.iter()
            .map(|row| {
                (
                    field(row, "tail"),
                    field(row, "freedom"),
                    field(row, "value"),
                )
            })
            .collect()
    }

    #[test]
    fn agrees_with_scipy_on_the_normal_distribution() {
        for (tail, _, z) in expected("normal") {
            let found = upper_quantile(tail);
            assert!(
                (found - z).abs() < 1e-9,
                "quantile of {tail}: {found}, SciPy {z}"
            );
            let found = upper_tail(z);
            assert!(
                (found / tail - 1.0).abs() < 1e-9,
                "tail of {z}: {found}, SciPy {tail}"
            );
        }
    }

    #[test]
    fn agrees_with_scipy_on_students_t_to_half_a_percent() {
        for (tail, freedom, t) in expected("student") {
            let found = student_upper_quantile(tail, freedom);
            assert!(
                (found / t - 1.0).abs() < 5e-3,
                "t({freedom}) of {tail}: {found}, SciPy {t}"
            );
        }
    }
}
