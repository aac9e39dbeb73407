//! The rows that the methodology computed, recomputed by the crate.

use plumbline_stats::order;

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
