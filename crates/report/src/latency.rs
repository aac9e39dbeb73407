//! Percentiles of a histogram, as far as its samples carry them.
//!
//! `load` prints the same table and the same JSON object as a report does.

mod support;

pub use support::{Sample, Support};
pub(crate) use support::{late, share};

use plumbline_record::Histogram;
use plumbline_stats::order;
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::number;

/// The percentiles that are looked at, as quantiles.
pub const QUANTILES: [f64; 6] = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];

/// Percentiles, maximum and mean of a histogram in nanoseconds. `None`, and
/// null in JSON, is what the samples do not carry (D4).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LatencySummary {
    /// One for each of [`QUANTILES`].
    values: [Option<u64>; QUANTILES.len()],
    /// The exact maximum.
    pub max: Option<u64>,
    /// The mean, for display only (C-6).
    pub mean: Option<f64>,
}

impl LatencySummary {
    /// The figures of a histogram whose samples are taken for independent.
    pub fn new(histogram: &Histogram) -> Self {
        Self::with_support(histogram, Support::of(histogram))
    }

    /// The figures of a histogram that is worth `support`.
    pub fn with_support(histogram: &Histogram, support: Support) -> Self {
        let is_filled = !histogram.is_empty();
        Self {
            values: QUANTILES.map(|quantile| {
                let is_shown = support.shows(quantile);
                is_shown.then(|| support.value_at(histogram, quantile))
            }),
            // Where the tail is not the network's, neither is its end.
            max: (is_filled && support.end >= 1.0).then(|| histogram.max()),
            // A mean of bucket middles may lie above the exact maximum.
            mean: is_filled.then(|| histogram.mean().min(histogram.max() as f64)),
        }
    }

    /// The percentiles in rising order, each with its quantile.
    pub fn percentiles(&self) -> [(f64, Option<u64>); QUANTILES.len()] {
        std::array::from_fn(|at| (QUANTILES[at], self.values[at]))
    }

    /// One of the percentiles that are looked at.
    pub fn at(&self, quantile: f64) -> Option<u64> {
        let mut all = self.percentiles().into_iter();
        all.find(|(one, _)| *one == quantile)?.1
    }
}

/// By name, `p50` to `p99.999`, then `max` and `mean`.
impl Serialize for LatencySummary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (quantile, value) in self.percentiles() {
            map.serialize_entry(&number::percentile_name(quantile), &value)?;
        }
        map.serialize_entry("max", &self.max)?;
        map.serialize_entry("mean", &self.mean)?;
        map.end()
    }
}

/// The object that stands for a histogram in all our JSON: nanoseconds by
/// `p50`, `p90`, `p99`, `p99.9`, `p99.99`, `p99.999`, `max` and `mean`. Takes a
/// [`Sample`], or a histogram whose every sample counts.
pub fn latency_json<'a>(sample: impl Into<Sample<'a>>) -> serde_json::Value {
    let Sample { histogram, support } = sample.into();
    serde_json::to_value(LatencySummary::with_support(histogram, support))
        .expect("a struct of numbers is JSON")
}

/// A table of latencies for the terminal, one named [`Sample`] or histogram in
/// each column.
///
/// A row in which a column has no value says why, and the first without any is
/// the last.
pub fn latency_table<'a, S: Into<Sample<'a>> + Copy>(columns: &[(&str, S)]) -> String {
    let mut table = format!("{:<9}", "");
    for (name, _) in columns {
        table += &cell(name);
    }
    table.push('\n');
    let samples: Vec<Sample<'a>> = columns.iter().map(|&(_, one)| one.into()).collect();
    let summaries: Vec<LatencySummary> = samples
        .iter()
        .map(|one| LatencySummary::with_support(one.histogram, one.support))
        .collect();
    for (row, &quantile) in QUANTILES.iter().enumerate() {
        let values: Vec<Option<u64>> = summaries
            .iter()
            .map(|one| one.percentiles()[row].1)
            .collect();
        table += &format!("{:<9}", number::percentile_name(quantile));
        table.extend(
            values
                .iter()
                .map(|ns| duration_cell(ns.map(|ns| ns as f64))),
        );
        let without: Vec<Sample<'_>> = (samples.iter().zip(&values))
            .filter(|(_, value)| value.is_none())
            .map(|(&one, _)| one)
            .collect();
        if !without.is_empty() {
            table += &format!("   {}", why_withheld(&without, quantile));
        }
        table.push('\n');
        // What the next ones would need is more of the same.
        if without.len() == samples.len() {
            break;
        }
    }
    let maxima = summaries.iter().map(|one| one.max.map(|ns| ns as f64));
    table += &format!("{:<9}", "max");
    table.extend(maxima.map(duration_cell));
    table += &format!("\n{:<9}", "mean");
    table.extend(summaries.iter().map(|one| duration_cell(one.mean)));
    table.push('\n');
    table
}

fn cell(text: &str) -> String {
    const WIDTH: usize = 14;
    format!("{text:>WIDTH$}")
}

fn duration_cell(ns: Option<f64>) -> String {
    cell(&number::plain(
        &ns.map_or(number::NONE.to_owned(), number::duration),
    ))
}

fn why_withheld(samples: &[Sample<'_>], quantile: f64) -> String {
    let is_censored = |one: &Sample<'_>| one.support.is_censored(quantile);
    let has_samples = |one: &Sample<'_>| one.support.has_samples(quantile);
    if samples
        .iter()
        .any(|one| has_samples(one) && is_censored(one))
    {
        return "too many requests unanswered".to_owned();
    }
    let needed = number::count(order::samples_to_support(quantile) as f64);
    let is_dependent =
        |one: &Sample<'_>| order::percentile_is_supported(one.histogram.len() as f64, quantile);
    // It would puzzle to be asked for what is there.
    let kind = if samples.iter().any(is_dependent) {
        " independent"
    } else {
        ""
    };
    format!("needs {needed}{kind} samples")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uniform(samples: u64) -> Histogram {
        let mut histogram = Histogram::new();
        (1..=samples).for_each(|i| histogram.record(i * 100));
        histogram
    }

    #[test]
    fn a_percentile_without_a_hundred_samples_beyond_it_is_withheld() {
        let summary = LatencySummary::new(&uniform(10_000));
        assert!(summary.at(0.99).is_some());
        assert_eq!(summary.at(0.999), None);
        let fewer = LatencySummary::new(&uniform(9_999));
        assert_eq!((fewer.at(0.9).is_some(), fewer.at(0.99)), (true, None));
    }

    #[test]
    fn json_has_all_keys_and_null_for_what_is_withheld() {
        let json = latency_json(&uniform(1_000));
        let keys = [
            "p50", "p90", "p99", "p99.9", "p99.99", "p99.999", "max", "mean",
        ];
        for key in keys {
            assert!(json.get(key).is_some(), "{key} is missing");
        }
        assert_eq!(json.as_object().unwrap().len(), keys.len());
        assert!(json["p99"].is_null() && json["p90"].is_u64());
        assert_eq!(json["max"], 100_000);
        assert!(latency_json(&Histogram::new())["max"].is_null());
    }

    #[test]
    fn censored_samples_hide_the_percentiles_that_they_reach() {
        let histogram = uniform(1_000_000);
        let support = Support {
            censored_share: 0.0002,
            ..Support::of(&histogram)
        };
        assert!(support.shows(0.99), "2 of 100 beyond p99 are censored");
        assert!(!support.shows(0.999), "a fifth beyond p99.9 is censored");
    }

    #[test]
    fn a_mean_is_never_above_the_maximum() {
        for ns in [1_234_567, 987_654_321, 4_097, 2_049] {
            let mut histogram = Histogram::new();
            histogram.record(ns);
            let mean = LatencySummary::new(&histogram).mean.unwrap();
            assert!(mean <= ns as f64, "{mean} of {ns}");
            assert!((mean / ns as f64 - 1.0).abs() < 1e-3);
        }
    }

    #[test]
    fn unanswered_requests_of_a_load_hide_its_upper_percentiles() {
        let histogram = uniform(1_000_000);
        let sample = Sample {
            histogram: &histogram,
            support: Support {
                censored_share: 0.0002,
                ..Support::of(&histogram)
            },
        };
        let json = latency_json(sample);
        assert!(json["p99"].is_u64() && json["p99.9"].is_null(), "{json}");
        let table = latency_table(&[("latency", sample)]);
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[3].starts_with("p99 ") && !lines[3].contains('–'));
        assert!(
            lines[4].ends_with("too many requests unanswered"),
            "{table}"
        );
        assert!(lines[5].starts_with("max"), "{table}");
    }

    #[test]
    fn dependent_samples_are_told_from_missing_ones() {
        let histogram = uniform(20_000);
        let support = Support {
            effective_samples: 500.0,
            ..Support::of(&histogram)
        };
        let sample = Sample {
            histogram: &histogram,
            support,
        };
        let table = latency_table(&[("latency", sample), ("send lag", Sample::from(&histogram))]);
        let p99 = table.lines().nth(3).unwrap();
        assert_eq!(
            p99,
            "p99                   –       1.98 ms   needs 10,000 independent samples"
        );
    }

    #[test]
    fn the_table_says_what_a_withheld_percentile_would_take() {
        let histogram = uniform(20_000);
        let table = latency_table(&[("latency", &histogram), ("send lag", &histogram)]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 1 + 4 + 2);
        assert_eq!(lines[1], "p50             1.00 ms       1.00 ms");
        assert_eq!(
            lines[4],
            "p99.9                 –             –   needs 100,000 samples"
        );
    }
}
