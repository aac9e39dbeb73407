//! What has to hold for any numbers.

use plumbline_stats::verdict::{Direction, Verdict, judge};
use plumbline_stats::{Interval, holm, independence, order, outlier, paired};
use proptest::collection::vec;
use proptest::prelude::*;

const ALPHA: f64 = 0.05;

fn pairs() -> impl Strategy<Value = Vec<(f64, f64)>> {
    vec((1e-3..1e9_f64, 1e-3..1e9_f64), 1..25)
}

/// Pairs as an experiment gives them: a common level, a few percent apart, so
/// that every verdict occurs.
fn similar_pairs() -> impl Strategy<Value = Vec<(f64, f64)>> {
    (0.9..1.1_f64, vec((99.0..101.0_f64, 99.0..101.0_f64), 4..20))
        .prop_map(|(ratio, values)| values.into_iter().map(|(a, b)| (a * ratio, b)).collect())
}

fn swapped(pairs: &[(f64, f64)]) -> Vec<(f64, f64)> {
    pairs.iter().map(|&(a, b)| (b, a)).collect()
}

fn is_near(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() <= 1e-9 * wanted.abs().max(1.0)
}

/// On the logarithmic scale, where effects add up.
fn in_logarithms(interval: Interval) -> (f64, f64) {
    (interval.low.ln_1p(), interval.high.ln_1p())
}

proptest! {
    // Failures are printed with their values; there is no file to keep them in.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn swapping_treatment_and_baseline_turns_the_effect_round(pairs in pairs()) {
        let there = paired::effect(&pairs, ALPHA).unwrap();
        let back = paired::effect(&swapped(&pairs), ALPHA).unwrap();
        prop_assert!(is_near(there.ratio_minus_one.ln_1p(), -back.ratio_minus_one.ln_1p()));
        prop_assert!(is_near(there.p_value, back.p_value));
        prop_assert_eq!(there.interval.is_some(), back.interval.is_some());
        if let Some((there, back)) = there.interval.zip(back.interval) {
            let ((low, high), (back_low, back_high)) = (in_logarithms(there), in_logarithms(back));
            prop_assert!(is_near(low, -back_high) && is_near(high, -back_low));
        }
    }

    #[test]
    fn the_unit_of_a_metric_does_not_matter(pairs in pairs(), unit in 1e-6..1e6_f64) {
        let scaled: Vec<_> = pairs.iter().map(|&(a, b)| (a * unit, b * unit)).collect();
        let (before, after) =
            (paired::effect(&pairs, ALPHA).unwrap(), paired::effect(&scaled, ALPHA).unwrap());
        prop_assert!(is_near(after.ratio_minus_one, before.ratio_minus_one));
        prop_assert!(is_near(after.p_value, before.p_value));
        prop_assert_eq!(after.interval.is_some(), before.interval.is_some());
    }

    #[test]
    fn multiplying_the_treatment_multiplies_the_effect(pairs in pairs(), factor in 0.5..2.0_f64) {
        let dearer: Vec<_> = pairs.iter().map(|&(a, b)| (a * factor, b)).collect();
        let before = paired::effect(&pairs, ALPHA).unwrap().ratio_minus_one + 1.0;
        let after = paired::effect(&dearer, ALPHA).unwrap().ratio_minus_one + 1.0;
        prop_assert!(is_near(after.ln(), before.ln() + factor.ln()));
    }

    #[test]
    fn the_interval_holds_the_estimate_and_grows_with_its_level(d in vec(-1.0..1.0_f64, 8..40)) {
        let estimate = paired::hodges_lehmann(&d);
        let wide = paired::signed_rank_interval(&d, 0.01).unwrap();
        let narrow = paired::signed_rank_interval(&d, 0.1).unwrap();
        prop_assert!(narrow.contains(estimate));
        prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high);
        prop_assert!(wide.level >= 0.99 && narrow.level >= 0.9 && wide.level > narrow.level);
    }

    #[test]
    fn the_interval_excludes_zero_exactly_when_the_test_rejects(
        d in vec(-0.5..1.0_f64, 6..30),
    ) {
        let interval = paired::signed_rank_interval(&d, ALPHA).unwrap();
        prop_assert_eq!(!interval.contains(0.0), paired::signed_rank_p(&d) < ALPHA);
    }

    #[test]
    fn p_values_are_probabilities_with_the_floor_of_their_number_of_pairs(
        d in vec((-5..=5_i8).prop_map(f64::from), 0..60),
    ) {
        let p = paired::signed_rank_p(&d);
        let floor = (2.0 / 2.0_f64.powi(d.len() as i32)).min(1.0);
        prop_assert!(floor <= p && p <= 1.0, "{} of {:?}", p, d);
    }

    #[test]
    fn holm_only_raises_and_keeps_the_order(p in vec(0.0..=1.0_f64, 0..12)) {
        let adjusted = holm(&p);
        for (i, &raw) in p.iter().enumerate() {
            prop_assert!(raw <= adjusted[i] && adjusted[i] <= 1.0);
            prop_assert!(adjusted[i] <= raw * p.len() as f64, "never beyond Bonferroni");
            for (j, &other) in p.iter().enumerate() {
                prop_assert!(raw > other || adjusted[i] <= adjusted[j]);
            }
        }
    }

    #[test]
    fn a_verdict_never_survives_swapping_the_treatments(
        pairs in similar_pairs(), margin in 0.0..0.1_f64,
    ) {
        let verdict = |pairs: &[(f64, f64)]| {
            let effect = paired::effect(pairs, ALPHA).unwrap();
            judge(&effect, effect.p_value, ALPHA, margin, Direction::LowerIsBetter)
        };
        let (there, back) = (verdict(&pairs), verdict(&swapped(&pairs)));
        // ±margin is not symmetric for ratios, so "equivalent" may come or go.
        let agree = match there {
            Verdict::Better => matches!(back, Verdict::Worse | Verdict::Equivalent),
            Verdict::Worse => matches!(back, Verdict::Better | Verdict::Equivalent),
            Verdict::Equivalent => true,
            Verdict::Inconclusive => matches!(back, Verdict::Inconclusive | Verdict::Equivalent),
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
        for (before, after) in scores.iter().zip(outlier::modified_z_scores(&moved)) {
            prop_assert!((before - after).abs() <= 1e-3 * before.max(1.0), "{} {}", before, after);
        }
    }
}
