//! Histograms for the terminal, with mean and deviation.

use super::style::{Style, Tint};
use super::table::{Cell, Column, Columns};
use crate::analysis::{Distribution, DistributionRow, Section, Summary};
use crate::{describe, number};

/// Columns of the longest bar.
const LONGEST: usize = 40;

/// The distributions of every section; nothing unless the experiment asks.
pub(super) fn render(summary: &Summary, style: Style) -> String {
    let mut out = String::new();
    for (section, distribution) in summary.sections.iter().zip(&summary.distributions) {
        if let Some(distribution) = distribution {
            out += &one(summary, section, distribution, style);
        }
    }
    out
}

fn one(summary: &Summary, section: &Section, distribution: &Distribution, style: Style) -> String {
    let label = |id: usize| describe::clean(&summary.treatments[id].treatment.label);
    let baseline = &summary.treatments[section.baseline].treatment;
    let title = format!(
        "{}: every latency; mean and deviation are for display, no verdict rests on them",
        describe::clean(baseline.task.name())
    );
    let mut out = style.lines(Tint::Heading, &title);
    let rows = &distribution.rows;
    let cells = |text: &dyn Fn(&DistributionRow) -> String| {
        vec![
            rows.iter()
                .map(|row| Cell::plain(number::plain(&text(row))))
                .collect(),
        ]
    };
    let labels = rows.iter().map(|row| Cell::plain(label(row.treatment)));
    let times = format!("times {}", label(section.baseline));
    out += &Columns::new(vec![
        Column::left("network", labels.collect()),
        Column::right(
            "measured",
            4,
            cells(&|row| number::count(row.samples as f64)),
        ),
        Column::right("mean", 3, cells(&|row| number::duration(row.mean_ns))),
        Column::right(
            "deviation",
            2,
            cells(&|row| number::duration(row.deviation_ns)),
        ),
        Column::right(
            &times,
            1,
            cells(&|row| {
                row.of_baseline
                    .map_or_else(String::new, number::significant)
            }),
        ),
    ])
    .render(style);
    for row in rows {
        out += &format!("\n{}\n", label(row.treatment));
        out += &bars(row, &distribution.ends_ns);
    }
    out.push('\n');
    out
}

/// A line for each bin between the first and the last that is not empty.
fn bars(row: &DistributionRow, ends_ns: &[f64]) -> String {
    let filled = |count: &u64| *count > 0;
    let first = row.counts.iter().position(filled).unwrap_or(0);
    let last = row.counts.iter().rposition(filled).unwrap_or(0);
    let most = row.counts.iter().copied().max().unwrap_or(0).max(1);
    let mut out = String::new();
    let bins = row.counts.iter().zip(ends_ns);
    for (&count, &end_ns) in bins.take(last + 1).skip(first) {
        // What is there is seen, however little it is.
        let length = (count * LONGEST as u64).div_ceil(most) as usize;
        let end = number::plain(&number::duration(end_ns));
        let bar = "#".repeat(length);
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
    fn bars_stand_for_counts_and_the_least_is_seen() {
        let row = DistributionRow {
            treatment: 0,
            samples: 1001,
            mean_ns: 1.0,
            deviation_ns: 1.0,
            of_baseline: None,
            counts: vec![0, 1000, 0, 1, 0],
        };
        let bars = bars(&row, &[1e3, 2e3, 4e3, 8e3, 16e3]);
        let lengths: Vec<usize> = bars.lines().map(|line| line.matches('#').count()).collect();
        assert_eq!(lengths, [LONGEST, 0, 1], "{bars}");
        assert!(bars.contains("8.00") && !bars.contains("16.0"), "{bars}");
    }
}
