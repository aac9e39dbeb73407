//! Changes against the baseline as dots with their intervals.

use plumbline_experiment::metric::Role;
use plumbline_stats::verdict::{Direction, Verdict};

use super::{LABELS, ROW, WIDTH, colour, grid, name_row, row_label, rows};
use crate::analysis::{Comparison, Metric, Section, Summary, TreatmentSummary, metrics_of};
use crate::html::axis::Axis;
use crate::html::svg::{Anchor, Svg};
use crate::number;

const TOP: f64 = 48.0;
/// Between two panels; the values stand there.
const GUTTER: f64 = 76.0;
/// Width of a tick's text with air around it.
const TICK: f64 = 52.0;

/// One panel of the chart: a metric over all treatments.
struct Panel<'a> {
    metric: &'static Metric,
    is_primary: bool,
    comparisons: Vec<Option<&'a Comparison>>,
}

impl Panel<'_> {
    /// Whether it shares its scale with others, so that they can be compared by
    /// eye. A tail may lie many times as far, and throughput on the other side.
    fn is_common(&self) -> bool {
        self.is_primary && self.metric.direction == Direction::LowerIsBetter
    }
}

/// A row for each treatment, a panel for each metric; `None` when nothing is
/// compared.
pub(in crate::html) fn overhead(summary: &Summary, section: &Section) -> Option<String> {
    let rows: Vec<_> = rows(summary, section)
        .into_iter()
        .filter(|one| one.treatment.baseline.is_some())
        .collect();
    let panels = panels(summary, section, &rows);
    if panels.is_empty() || rows.is_empty() {
        return None;
    }
    let bottom = TOP + ROW * rows.len() as f64;
    let mut svg = Svg::new(
        WIDTH,
        bottom + 30.0,
        "Change against the baseline, with 95 % interval",
    );
    for (row, treatment) in rows.iter().enumerate() {
        let class = colour(summary, treatment);
        svg.group(&class, &row_label(treatment), |svg| {
            name_row(svg, treatment, row_middle(row));
        });
    }
    let width = (WIDTH - LABELS) / panels.len() as f64;
    let common = extent(panels.iter().filter(|panel| panel.is_common()));
    for (place, panel) in panels.iter().enumerate() {
        let left = LABELS + width * place as f64;
        let range = if panel.is_common() {
            common
        } else {
            extent([panel])
        };
        let axis = Axis::linear(range, (left, left + width - GUTTER));
        frame(&mut svg, panel, &axis, left, bottom);
        for (row, (comparison, treatment)) in panel.comparisons.iter().zip(&rows).enumerate() {
            if let Some(comparison) = comparison {
                let class = colour(summary, treatment);
                let right = left + width - GUTTER;
                dot(
                    &mut svg,
                    &class,
                    treatment,
                    comparison,
                    &axis,
                    (right, row_middle(row)),
                );
            }
        }
    }
    Some(svg.finish())
}

fn panels<'a>(
    summary: &'a Summary,
    section: &Section,
    rows: &[&TreatmentSummary],
) -> Vec<Panel<'a>> {
    let task = &summary.treatments[section.baseline].treatment.task;
    let panel = |(metric, role): (&'static Metric, Role)| Panel {
        metric,
        is_primary: role == Role::Primary,
        comparisons: rows
            .iter()
            .map(|row| {
                summary
                    .comparison(row.id(), metric.name())
                    .filter(|one| one.effect.is_some())
            })
            .collect(),
    };
    metrics_of(task)
        .map(panel)
        .filter(|panel| panel.comparisons.iter().any(Option::is_some))
        .collect()
}

/// The least range that holds zero, the margin, and every dot and interval.
fn extent<'a, 'b: 'a>(panels: impl IntoIterator<Item = &'a Panel<'b>>) -> (f64, f64) {
    let (mut low, mut high) = (0.0f64, 0.0f64);
    let comparisons = panels
        .into_iter()
        .flat_map(|panel| panel.comparisons.iter().flatten());
    for comparison in comparisons {
        low = low.min(-comparison.margin);
        high = high.max(comparison.margin);
        if let Some(effect) = comparison.effect {
            let ends = effect
                .interval
                .map_or([effect.ratio_minus_one; 2], |one| [one.low, one.high]);
            low = low.min(ends[0]);
            high = high.max(ends[1]);
        }
    }
    let air = (high - low) * 0.04;
    (low - air, high + air)
}

fn row_middle(row: usize) -> f64 {
    TOP + ROW * (row as f64 + 0.5)
}

fn frame(svg: &mut Svg, panel: &Panel<'_>, axis: &Axis, left: f64, bottom: f64) {
    svg.text("heading", (left, 16.0), Anchor::Start, panel.metric.title);
    if !panel.is_primary {
        svg.text("caption", (left, 32.0), Anchor::Start, "exploratory");
    }
    if let Some(first) = panel.comparisons.iter().flatten().next() {
        let (from, to) = (axis.at(-first.margin), axis.at(first.margin));
        svg.rect("margin", (from, TOP), (to - from, bottom - TOP));
    }
    let count = (axis.length() / TICK) as usize;
    grid(svg, axis, count, (TOP, bottom), number::tick_percent);
}

fn dot(
    svg: &mut Svg,
    class: &str,
    treatment: &TreatmentSummary,
    comparison: &Comparison,
    axis: &Axis,
    (right, y): (f64, f64),
) {
    let Some(effect) = comparison.effect else {
        return;
    };
    let is_decided = effect.verdict.is_some_and(Verdict::is_different);
    svg.group(class, &title(treatment, comparison), |svg| {
        if let Some(interval) = effect.interval {
            svg.line(
                "whisker",
                (axis.at(interval.low), y),
                (axis.at(interval.high), y),
            );
        }
        let mark = if is_decided { "dot" } else { "ring" };
        svg.circle(mark, (axis.at(effect.ratio_minus_one), y), 5.0);
        let text = number::signed_percent(effect.ratio_minus_one);
        let class = if is_decided { "value" } else { "value faint" };
        svg.text(class, (right + 8.0, y + 4.5), Anchor::Start, &text);
    });
}

/// What hovering over a dot says.
fn title(treatment: &TreatmentSummary, comparison: &Comparison) -> String {
    let mut title = format!("{}, {}", row_label(treatment), comparison.metric.words);
    if let Some(effect) = comparison.effect {
        title += &format!("\n{}", number::signed_percent(effect.ratio_minus_one));
        if let Some(interval) = effect.interval {
            let interval = number::percent_interval(interval.low, interval.high);
            title += &format!(", 95 % interval {interval}");
        }
        title += &format!("\n{} blocks", effect.blocks);
        if let Some(verdict) = effect.verdict {
            title += &format!("\n{verdict}");
        }
        if let Some(smallest) = effect.smallest {
            title += &format!("\n{} would have been seen", number::percent(smallest));
        }
    }
    title
}
