//! Holds the crate against numbers from SciPy; `scipy/make_expected.py` makes
//! them.

use plumbline_stats::{Interval, independence, kendall, order, outlier};
use serde::Deserialize;

#[derive(Deserialize)]
struct Expected {
    percentile_ranks: Vec<RanksCase>,
    medians: Vec<MedianCase>,
    series: Vec<SeriesCase>,
    outliers: Vec<OutlierCase>,
    kendall: Vec<KendallCase>,
}

#[derive(Deserialize)]
struct RanksCase {
    n: u64,
    q: f64,
    level: f64,
    low: Option<u64>,
    high: Option<u64>,
}

#[derive(Deserialize)]
struct MedianCase {
    values: Vec<f64>,
    median: f64,
    interval: Option<Bounds>,
}

#[derive(Deserialize)]
struct Bounds {
    low: f64,
    high: f64,
    level: f64,
}

#[derive(Deserialize)]
struct SeriesCase {
    values: Vec<f64>,
    effective_samples: f64,
    lag1_spearman: f64,
}

#[derive(Deserialize)]
struct OutlierCase {
    values: Vec<f64>,
    scores: Vec<f64>,
}

#[derive(Deserialize)]
struct KendallCase {
    first: Vec<f64>,
    second: Vec<f64>,
    tau: f64,
    share: Option<f64>,
}

fn expected() -> Expected {
    serde_json::from_str(include_str!("scipy/expected.json")).expect("the file of the script")
}

/// A section that lost its cases would pass without checking anything.
fn cases<T>(section: Vec<T>) -> Vec<T> {
    assert!(!section.is_empty());
    section
}

#[track_caller]
fn assert_near(found: f64, scipy: f64, what: &str) {
    let error = (found - scipy).abs();
    assert!(
        error <= 1e-9 * scipy.abs().max(1e-3),
        "{what}: {found}, SciPy {scipy}"
    );
}

#[track_caller]
fn assert_same_interval(found: Option<Interval>, scipy: Option<&Bounds>, what: &str) {
    assert_eq!(found.is_some(), scipy.is_some(), "{what}: {found:?}");
    if let Some((found, scipy)) = found.zip(scipy) {
        assert_near(found.low, scipy.low, what);
        assert_near(found.high, scipy.high, what);
        assert_near(found.level, scipy.level, what);
    }
}

#[test]
fn percentile_ranks() {
    for RanksCase {
        n,
        q,
        level,
        low,
        high,
    } in cases(expected().percentile_ranks)
    {
        let found = order::percentile_ranks(n, q, level);
        assert_eq!(
            (found.low, found.high),
            (low, high),
            "n {n}, q {q}, level {level}"
        );
    }
}

#[test]
fn medians_of_runs() {
    for case in cases(expected().medians) {
        let what = format!("{} runs", case.values.len());
        let found = order::median_of_runs(&case.values, 0.95).unwrap();
        assert_near(found.median, case.median, &what);
        assert_same_interval(found.interval, case.interval.as_ref(), &what);
    }
}

#[test]
fn series() {
    for (index, case) in cases(expected().series).iter().enumerate() {
        let what = format!("series {index}");
        let found = independence::effective_samples(&case.values);
        assert_near(found, case.effective_samples, &what);
        assert_near(
            independence::lag1_spearman(&case.values),
            case.lag1_spearman,
            &what,
        );
    }
}

#[test]
fn outliers() {
    for case in cases(expected().outliers) {
        let scores = outlier::modified_z_scores(&case.values);
        assert_eq!(scores.len(), case.scores.len());
        for (found, score) in scores.iter().zip(&case.scores) {
            assert_near(*found, *score, &format!("{:?}", case.values));
        }
    }
}

#[test]
fn kendall_tau_b_and_its_chance() {
    for case in cases(expected().kendall) {
        let what = format!("{} objects", case.first.len());
        let pairs = kendall::PairCounts::count(&case.first, &case.second);
        assert_near(pairs.tau_b().unwrap(), case.tau, &what);
        let share = kendall::share_by_chance(&case.first, &case.second);
        assert_eq!(share.is_some(), case.share.is_some(), "{what}");
        if let Some((found, scipy)) = share.zip(case.share) {
            assert_near(found, scipy, &what);
        }
    }
}
