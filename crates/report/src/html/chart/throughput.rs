//! Throughput as bars from zero, with every trial as a dot.

use super::{LABELS, ROW, WIDTH, colour, grid, name_row, row_label, rows};
use crate::analysis::{Metric, Quantity, Section, Summary, TreatmentSummary, metrics_among};
use crate::html::axis::Axis;
use crate::html::svg::{Anchor, Svg};
use crate::{describe, number};

const TOP: f64 = 8.0;
const RIGHT: f64 = 760.0;

/// A bar for each treatment; `None` when the section does not compare throughput.
pub(in crate::html) fn throughput(summary: &Summary, section: &Section) -> Option<String> {
    let rows = rows(summary, section);
    let task = &summary.treatments[section.baseline].treatment.task;
    let (metric, _) = metrics_among(task, Quantity::Throughput).next()?;
    let highest = rows
        .iter()
        .flat_map(|one| one.values_of(metric.name()))
        .map(|one| one.value)
        .reduce(f64::max)?;
    let bottom = TOP + ROW * rows.len() as f64;
    let axis = Axis::linear((0.0, highest * 1.02), (LABELS, RIGHT));
    let mut svg = Svg::new(WIDTH, bottom + 30.0, "Throughput of each network");
    let text = |tick| number::tick(&describe::value(metric, tick));
    grid(&mut svg, &axis, 5, (TOP, bottom), text);
    for (row, treatment) in rows.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        bar(&mut svg, summary, (treatment, metric), &axis, y);
    }
    Some(svg.finish())
}

fn bar(
    svg: &mut Svg,
    summary: &Summary,
    (treatment, metric): (&TreatmentSummary, &Metric),
    axis: &Axis,
    y: f64,
) {
    let Some(runs) = treatment.over_trials(metric.name()) else {
        return;
    };
    let text = describe::value(metric, runs.median);
    let middle = y + ROW / 2.0;
    let title = format!("{}\n{text}, median of trials", row_label(treatment));
    svg.group(&colour(summary, treatment), &title, |svg| {
        name_row(svg, treatment, middle);
        let width = axis.at(runs.median) - axis.at(0.0);
        svg.rect("bar", (axis.at(0.0), y + 5.0), (width, ROW - 10.0));
        for one in treatment.values_of(metric.name()) {
            svg.circle("trial", (axis.at(one.value), middle), 2.5);
        }
        svg.text("value", (RIGHT + 12.0, middle + 4.5), Anchor::Start, &text);
    });
}
