//! The rows that the methodology computed, recomputed by the crate.

use plumbline_stats::{order, paired};

#[test]
fn fewest_samples_for_any_upper_bound() {
    // L-14, the table's second column.
    for (q, n) in [
        (0.99, 299),
        (0.999, 2_995),
        (0.9999, 29_956),
        (0.99999, 299_572),
    ] {
        assert_eq!(order::samples_for_upper_bound(q, 0.95), n, "{q}");
        assert!(
            1.0 - q.powi(n as i32) >= 0.95 && 1.0 - q.powi(n as i32 - 1) < 0.95,
            "{q}"
        );
    }
}

#[test]
fn samples_for_a_tail_mass_error() {
    // L-14, the other columns: n for ±30, ±20 and ±10 %, rounded as there.
    for (q, columns) in [
        (0.99, [4.2e3, 9.6e3, 38.4e3]),
        (0.999, [42.7e3, 96e3, 384e3]),
        (0.9999, [427e3, 0.96e6, 3.84e6]),
        (0.99999, [4.27e6, 9.6e6, 38.4e6]),
    ] {
        for (error, n) in [0.3, 0.2, 0.1].into_iter().zip(columns) {
            let found = order::tail_mass_error(n, q, 0.95);
            assert!(
                (found / error - 1.0).abs() < 0.01,
                "{n} samples of {q}: {found}"
            );
        }
    }
}

#[test]
fn a_percentile_needs_a_hundred_effective_samples_beyond_it() {
    // D4, where 1 − q is not exact in binary.
    for (q, n) in [
        (0.5, 200),
        (0.99, 10_000),
        (0.999, 100_000),
        (0.9999, 1_000_000),
    ] {
        assert!(order::percentile_is_supported(n as f64, q), "{n} of {q}");
        assert!(
            !order::percentile_is_supported(n as f64 - 1.0, q),
            "{n} − 1 of {q}"
        );
        assert_eq!(order::samples_to_support(q), n, "{q}");
    }
    assert!(!order::percentile_is_supported(f64::NAN, 0.5));
}

#[test]
fn p99_99_of_a_hundred_thousand_is_unusable_and_of_a_million_is_not() {
    // L-14: 17 to 3 samples beyond, from 100 k.
    let few = order::percentile_ranks(100_000, 0.9999, 0.95);
    assert_eq!((few.low, few.high), (Some(100_000 - 17), Some(100_000 - 3)));

    let (low, high) = order::percentile_fractions(1e6, 0.9999, 0.95);
    let thousandths_of_a_percent = |fraction: Option<f64>| (fraction.unwrap() * 1e5).round();
    assert_eq!(
        (
            thousandths_of_a_percent(low),
            thousandths_of_a_percent(high)
        ),
        (99_988.0, 99_992.0)
    );
}

#[test]
fn six_runs_bound_their_median_at_95_percent_and_five_do_not() {
    // L-15.
    let five = [3.0, 1.0, 5.0, 2.0, 4.0];
    let found = order::median_of_runs(&five, 0.95).unwrap();
    assert_eq!((found.median, found.interval), (3.0, None));
    let interval = order::median_of_runs(&five, 0.9).unwrap().interval.unwrap();
    assert!((interval.level - 0.9375).abs() < 1e-12, "{interval:?}");

    let six = [3.0, 1.0, 5.0, 2.0, 4.0, 6.0];
    let interval = order::median_of_runs(&six, 0.95).unwrap().interval.unwrap();
    assert_eq!((interval.low, interval.high), (1.0, 6.0));
    assert!((interval.level - 0.96875).abs() < 1e-12, "{interval:?}");
}

#[test]
fn pairs_below_which_nothing_can_be_significant() {
    // C-7: p = 0.0625 from five pairs, 0.031 from six.
    assert_eq!(paired::signed_rank_p(&[1.0, 2.0, 3.0, 4.0, 5.0]), 0.0625);
    assert_eq!(
        paired::signed_rank_p(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        0.03125
    );
    for (comparisons, pairs) in [(1, 6), (8, 9), (20, 10), (50, 11)] {
        assert_eq!(
            paired::minimum_pairs(comparisons, 0.05),
            pairs,
            "{comparisons}"
        );
    }
}

/// Differences with standard deviation `s`, half of them above their mean.
fn spread(n: usize, s: f64) -> Vec<f64> {
    let centred = (0..n).map(|i| i as f64 - (n as f64 - 1.0) / 2.0);
    let variance = (n * (n + 1)) as f64 / 12.0;
    centred.map(|value| value * s / variance.sqrt()).collect()
}

#[test]
fn the_smallest_effect_follows_the_power_table() {
    // C-8: s = 3.5 % takes 25 pairs for 2 % and 97 for 1 %. The small-sample
    // form asks a little more, and less and less so with more pairs.
    for (n, effect, surplus) in [(25, 0.02, 1.10), (97, 0.01, 1.06)] {
        let found = paired::smallest_effect(&spread(n, 0.035), 0.05).unwrap();
        let ratio = found.ln_1p() / effect;
        assert!(1.0 < ratio && ratio < surplus, "{n} pairs: {found}");
    }
}
