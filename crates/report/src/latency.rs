//! Percentiles of a histogram, as far as its samples carry them.
//!
//! `load` prints the same table and the same JSON object as a report does.

use plumbline_record::Histogram;
use plumbline_stats::order;
use serde::Serialize;

use crate::number;

/// The percentiles that are looked at, as quantiles.
pub const QUANTILES: [f64; 6] = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];

/// Share of the samples beyond a quantile that may be censored before the
/// quantile itself is in doubt (L-3).
const CENSORED_SHARE: f64 = 0.1;

/// What the samples of a histogram can carry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Support {
    /// Independent samples that the histogram is worth (L-8).
    pub effective_samples: f64,
    /// Samples that are only known to be at least so late, as a share of all (L-3).
    pub censored_share: f64,
}

impl Support {
    /// Takes every sample for independent and none for censored.
    pub fn of(histogram: &Histogram) -> Self {
        Self {
            effective_samples: histogram.len() as f64,
            censored_share: 0.0,
        }
    }

    /// Whether the quantile may be shown: enough samples beyond it (D4), and
    /// few enough of them censored (L-3).
    pub fn shows(&self, quantile: f64) -> bool {
        order::percentile_is_supported(self.effective_samples, quantile)
            && (self.censored_share == 0.0
                || self.censored_share < (1.0 - quantile) * CENSORED_SHARE)
    }
}

/// Percentiles, maximum and mean of a histogram in nanoseconds. `None`, and
/// null in JSON, is what the samples do not carry (D4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatencySummary {
    /// Median.
    pub p50: Option<u64>,
    /// 90th percentile.
    pub p90: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p99_9: Option<u64>,
    /// 99.99th percentile.
    #[serde(rename = "p99.99")]
    pub p99_99: Option<u64>,
    /// 99.999th percentile.
    #[serde(rename = "p99.999")]
    pub p99_999: Option<u64>,
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
        let at = |quantile| {
            support
                .shows(quantile)
                .then(|| histogram.value_at(quantile))
        };
        let [p50, p90, p99, p99_9, p99_99, p99_999] = QUANTILES.map(at);
        let is_filled = !histogram.is_empty();
        Self {
            p50,
            p90,
            p99,
            p99_9,
            p99_99,
            p99_999,
            max: is_filled.then(|| histogram.max()),
            mean: is_filled.then(|| histogram.mean()),
        }
    }

    /// The percentiles in rising order, each with its quantile.
    pub fn percentiles(&self) -> [(f64, Option<u64>); 6] {
        let values = [
            self.p50,
            self.p90,
            self.p99,
            self.p99_9,
            self.p99_99,
            self.p99_999,
        ];
        std::array::from_fn(|i| (QUANTILES[i], values[i]))
    }
}

/// The object that stands for a histogram in all our JSON: nanoseconds by
/// `p50`, `p90`, `p99`, `p99.9`, `p99.99`, `p99.999`, `max` and `mean`.
pub fn latency_json(histogram: &Histogram) -> serde_json::Value {
    serde_json::to_value(LatencySummary::new(histogram)).expect("a struct of numbers is JSON")
}

/// A table of latencies for the terminal, one named histogram per column.
///
/// A percentile that the samples do not carry says how many it would take.
pub fn latency_table(columns: &[(&str, &Histogram)]) -> String {
    const WIDTH: usize = 14;
    let cell = |text: String| format!("{text:>WIDTH$}");
    let mut table = format!("{:<9}", "");
    for (name, _) in columns {
        table += &cell((*name).to_owned());
    }
    table.push('\n');
    let summaries: Vec<_> = columns
        .iter()
        .map(|(_, histogram)| LatencySummary::new(histogram))
        .collect();
    for (row, &quantile) in QUANTILES.iter().enumerate() {
        table += &format!("{:<9}", number::percentile_name(quantile));
        for summary in &summaries {
            table += &cell(match summary.percentiles()[row].1 {
                Some(ns) => number::plain(&number::duration(ns as f64)),
                None => number::NONE.to_owned(),
            });
        }
        if summaries
            .iter()
            .all(|summary| summary.percentiles()[row].1.is_none())
        {
            let needed = number::count(order::samples_to_support(quantile) as f64);
            table += &format!("   needs {needed} samples");
        }
        table.push('\n');
    }
    for (name, value) in [
        ("max", |s: &LatencySummary| s.max.map(|ns| ns as f64)),
        ("mean", |s: &LatencySummary| s.mean),
    ] as [(&str, fn(&LatencySummary) -> Option<f64>); 2]
    {
        table += &format!("{name:<9}");
        for summary in &summaries {
            let shown = value(summary).map_or(number::NONE.to_owned(), number::duration);
            table += &cell(number::plain(&shown));
        }
        table.push('\n');
    }
    table
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
        assert!(summary.p99.is_some());
        assert_eq!(summary.p99_9, None);
        let fewer = LatencySummary::new(&uniform(9_999));
        assert_eq!((fewer.p90.is_some(), fewer.p99), (true, None));
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
    fn the_table_says_what_a_withheld_percentile_would_take() {
        let histogram = uniform(20_000);
        let table = latency_table(&[("latency", &histogram), ("send lag", &histogram)]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 1 + QUANTILES.len() + 2);
        assert_eq!(lines[1], "p50             1.00 ms       1.00 ms");
        assert_eq!(
            lines[4],
            "p99.9                 –             –   needs 100,000 samples"
        );
    }
}
