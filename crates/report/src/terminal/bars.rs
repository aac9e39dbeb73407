//! Bars for the terminal, and histograms of them.

use crate::analysis::{Distribution, DistributionRow, Summary};
use crate::{describe, number};

/// Columns of the longest bar.
const LONGEST: usize = 40;

/// A column of a bar.
pub(super) const FULL: &str = "█";

/// A bar of so much of the longest one, to an eighth of a column. What is there is seen, however
/// little it is.
pub(super) fn bar(share: f64, longest: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * (8 * longest) as f64).round() as usize;
    let eighths = eighths.max(usize::from(share > 0.0));
    FULL.repeat(eighths / 8) + PARTS[eighths % 8]
}

/// The histogram of each treatment below its name.
pub(super) fn bars(summary: &Summary, of: &Distribution) -> String {
    let row = |row: &DistributionRow| {
        let label = describe::clean(&summary.treatments[row.treatment].treatment.label);
        format!("\n{label}\n{}", lines(row, &of.ends_ns))
    };
    of.rows.iter().map(row).collect()
}

/// A line for each bin between the first and the last that is not empty.
fn lines(row: &DistributionRow, ends_ns: &[f64]) -> String {
    let filled = |count: &u64| *count > 0;
    let first = row.counts.iter().position(filled).unwrap_or(0);
    let last = row.counts.iter().rposition(filled).unwrap_or(0);
    let most = row.counts.iter().copied().max().unwrap_or(0).max(1);
    let mut out = String::new();
    let bins = row.counts.iter().zip(ends_ns);
    for (&count, &end_ns) in bins.take(last + 1).skip(first) {
        let end = number::plain(&number::duration(end_ns));
        let bar = bar(count as f64 / most as f64, LONGEST);
        let line = format!("  to {end:>9}  {bar:<LONGEST$}  {count}");
        out += line.trim_end();
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        let bars = [0.0, 0.001, 0.25, 0.55, 1.0, 7.0].map(|share| bar(share, 5));
        assert_eq!(bars, ["", "▏", "█▎", "██▊", "█████", "█████"]);
    }

    #[test]
    fn bars_stand_for_counts_and_the_least_is_seen() {
        let row = DistributionRow {
            treatment: 0,
            samples: 1001,
            mean_ns: 1.0,
            deviation_ns: 1.0,
            of_baseline: None,
            counts: vec![0, 1000, 0, 1, 0],
        };
        let bars = lines(&row, &[1e3, 2e3, 4e3, 8e3, 16e3]);
        let full: Vec<usize> = bars.lines().map(|line| line.matches('█').count()).collect();
        assert_eq!(full, [LONGEST, 0, 0], "{bars}");
        assert_eq!(bars.matches('▏').count(), 1, "{bars}");
        assert!(bars.contains("8.00") && !bars.contains("16.0"), "{bars}");
    }
}
