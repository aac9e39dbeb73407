//! Every latency of a section as histograms, one above the other on one scale.

use super::{LABELS, WIDTH, colour, row_label};
use crate::analysis::{Distribution, DistributionRow, Summary};
use crate::html::axis::Axis;
use crate::html::svg::{Anchor, Svg};
use crate::number;

const TOP: f64 = 8.0;
const RIGHT: f64 = 840.0;
/// Height of the tallest bar, and of a row with the space between two.
const TALL: f64 = 72.0;
const STEP: f64 = 88.0;

/// A histogram for each treatment. Heights are shares of each treatment's own
/// latencies, so that one of which more were measured is not taller.
pub(in crate::html) fn histogram(summary: &Summary, of: &Distribution) -> Option<String> {
    let (first, last) = (of.ends_ns.first()?, of.ends_ns.last()?);
    let ratio = of.ends_ns.get(1).map_or(2.0, |second| second / first);
    let axis = Axis::logarithmic((first / ratio, *last), (LABELS, RIGHT));
    let bottom = TOP + STEP * of.rows.len() as f64;
    let mut svg = Svg::new(WIDTH, bottom + 30.0, "Histograms of the latencies");
    for tick in axis.ticks(6) {
        let x = axis.at(tick);
        svg.line("grid", (x, TOP), (x, bottom));
        let text = number::tick(&number::duration(tick));
        svg.text("tick", (x, bottom + 18.0), Anchor::Middle, &text);
    }
    let share = |row: &DistributionRow, count: u64| count as f64 / row.samples.max(1) as f64;
    let shares = of.rows.iter().flat_map(|row| {
        let counts = row.counts.iter();
        counts.map(move |&count| share(row, count))
    });
    let most = shares.fold(f64::MIN_POSITIVE, f64::max);
    for (number, row) in of.rows.iter().enumerate() {
        let floor = TOP + STEP * (number + 1) as f64;
        let treatment = &summary.treatments[row.treatment];
        let label = row_label(treatment);
        let about = format!(
            "{label}\nmean {}, deviation {}",
            number::duration(row.mean_ns),
            number::duration(row.deviation_ns)
        );
        svg.group(&colour(summary, treatment), &about, |svg| {
            let middle = floor - TALL / 2.0;
            svg.text("label", (LABELS - 14.0, middle), Anchor::End, &label);
            svg.line("axis", (LABELS, floor), (RIGHT, floor));
            for (&count, &end) in row.counts.iter().zip(&of.ends_ns) {
                if count == 0 {
                    continue;
                }
                // What is there is seen, however little it is.
                let height = (TALL * share(row, count) / most).max(1.5);
                let (from, to) = (axis.at(end / ratio), axis.at(end));
                svg.rect("bar", (from, floor - height), (to - from - 1.0, height));
            }
            let mean = axis.at(row.mean_ns);
            svg.line("whisker", (mean, floor - TALL), (mean, floor));
        });
    }
    Some(svg.finish())
}
