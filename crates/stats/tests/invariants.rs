//! What has to hold for any numbers.

use plumbline_stats::family::{self, JointEffect};
use plumbline_stats::verdict::{Direction, Verdict};
use plumbline_stats::{independence, order, outlier};
use proptest::collection::vec;
use proptest::prelude::*;

const ALPHA: f64 = 0.05;

/// Log-ratios as an experiment gives them: a common level, a few percent apart,
/// so that every verdict occurs.
fn log_ratios() -> impl Strategy<Value = Vec<f64>> {
    (-0.1..0.1_f64, vec(-0.02..0.02_f64, 4..14))
        .prop_map(|(level, noise)| noise.into_iter().map(|one| level + one).collect())
}

fn compare(log_ratios: &[f64], alpha: f64) -> JointEffect {
    let column = log_ratios.iter().copied().map(Some).collect();
    family::compare(&[column], alpha, 1).unwrap()[0]
}

fn is_near(found: f64, wanted: f64) -> bool {
    found == wanted || (found - wanted).abs() <= 1e-9 * wanted.abs().max(1.0)
}

proptest! {
    // Failures are printed with their values; there is no file to keep them in.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn swapping_treatment_and_baseline_turns_the_effect_round(d in log_ratios()) {
        let swapped: Vec<f64> = d.iter().map(|one| -one).collect();
        let (there, back) = (compare(&d, ALPHA), compare(&swapped, ALPHA));
        prop_assert!(is_near(there.ratio_minus_one.ln_1p(), -back.ratio_minus_one.ln_1p()));
        prop_assert!(is_near(there.p_value, back.p_value));
        prop_assert!(is_near(there.joint.low.ln_1p(), -back.joint.high.ln_1p()));
        prop_assert!(is_near(there.joint.high.ln_1p(), -back.joint.low.ln_1p()));
    }

    #[test]
    fn multiplying_the_treatment_multiplies_effect_and_interval(
        d in log_ratios(), factor in 1.1..2.0_f64,
    ) {
        let dearer: Vec<f64> = d.iter().map(|one| one + factor.ln()).collect();
        let (before, after) = (compare(&d, ALPHA), compare(&dearer, ALPHA));
        let moved = before.ratio_minus_one.ln_1p() + factor.ln();
        prop_assert!(is_near(after.ratio_minus_one.ln_1p(), moved));
        prop_assert!(is_near(after.joint.high.ln_1p(), before.joint.high.ln_1p() + factor.ln()));
    }

    #[test]
    fn the_interval_holds_the_estimate_and_grows_with_its_level(d in vec(-1.0..1.0_f64, 8..14)) {
        let (wide, narrow) = (compare(&d, 0.01), compare(&d, 0.1));
        prop_assert!(narrow.joint.contains(narrow.ratio_minus_one));
        prop_assert!(wide.joint.low <= narrow.joint.low && narrow.joint.high <= wide.joint.high);
        let (wide, narrow) = (wide.joint.level, narrow.joint.level);
        prop_assert!(wide >= 0.99 && narrow >= 0.9 && wide > narrow);
    }

    #[test]
    fn p_values_are_probabilities_with_the_floor_of_their_number_of_blocks(
        d in vec((-5..=5_i8).prop_map(f64::from), 0..14),
    ) {
        let p = compare(&d, ALPHA).p_value;
        let floor = (2.0 / 2.0_f64.powi(d.len() as i32)).min(1.0);
        prop_assert!(floor <= p && p <= 1.0, "{} of {:?}", p, d);
    }

    #[test]
    fn a_verdict_never_survives_swapping_the_treatments(
        d in log_ratios(), margin in 0.0..0.1_f64,
    ) {
        let verdict =
            |d: &[f64]| Verdict::of(&compare(d, ALPHA).joint, margin, Direction::LowerIsBetter);
        let swapped: Vec<f64> = d.iter().map(|one| -one).collect();
        let (there, back) = (verdict(&d), verdict(&swapped));
        // ±margin is not symmetric for ratios, so "equivalent" may come or go.
        let agree = match there {
            Verdict::Better => matches!(back, Verdict::Worse | Verdict::Equivalent),
            Verdict::Worse => matches!(back, Verdict::Better | Verdict::Equivalent),
            Verdict::Equivalent => true,
            Verdict::Undecided => matches!(back, Verdict::Undecided | Verdict::Equivalent),
        };
        prop_assert!(agree, "{} and {}", there, back);
    }

    #[test]
    fn ranks_enclose_the_quantile_and_spread_with_the_level(
        n in 1..50_000_u64, q in 0.001..0.9999_f64,
    ) {
        let narrow = order::percentile_ranks(n, q, 0.9);
        let wide = order::percentile_ranks(n, q, 0.99);
        let place = n as f64 * q;
        prop_assert!(narrow.low.is_none_or(|low| low as f64 <= place + 1.0));
        prop_assert!(narrow.high.is_none_or(|high| high as f64 >= place));
        prop_assert!(wide.low.unwrap_or(0) <= narrow.low.unwrap_or(0));
        prop_assert!(wide.high.unwrap_or(u64::MAX) >= narrow.high.unwrap_or(u64::MAX));
        for rank in [wide.low, wide.high].into_iter().flatten() {
            prop_assert!((1..=n).contains(&rank));
        }
    }

    #[test]
    fn a_series_is_worth_between_one_sample_and_all_of_them(series in vec(-1e3..1e3_f64, 1..200)) {
        let n = independence::effective_samples(&series);
        prop_assert!((1.0..=series.len() as f64).contains(&n));
        let rho = independence::lag1_spearman(&series);
        prop_assert!((-1.0 - 1e-9..=1.0 + 1e-9).contains(&rho));
    }

    #[test]
    fn scores_do_not_depend_on_unit_or_origin(
        values in vec(1.0..2.0_f64, 3..30), unit in 0.1..10.0_f64, origin in -10.0..10.0_f64,
    ) {
        let moved: Vec<f64> = values.iter().map(|value| value * unit + origin).collect();
        let scores = outlier::modified_z_scores(&values);
        let after = outlier::modified_z_scores(&moved);
        assert_eq!(scores.len(), after.len());
        for (before, after) in scores.iter().zip(after) {
            prop_assert!((before - after).abs() <= 1e-3 * before.max(1.0), "{} {}", before, after);
        }
    }
}
