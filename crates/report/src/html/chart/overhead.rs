//! Changes against the baseline as dots with their intervals.

use plumbline_experiment::metric::Role;
use plumbline_stats::verdict::{Direction, Verdict};

use super::{LABELS, ROW, WIDTH, colour, grid, name_row, row_label, rows};
use crate::analysis::{
    Comparison, Metric, Quantity, Section, Summary, TreatmentSummary, metrics_of,
};
use crate::html::axis::Axis;
use crate::html::svg::{Anchor, Svg};
use crate::{describe, number};

const TOP: f64 = 48.0;
/// Between two panels; the values stand there.
const GUTTER: f64 = 76.0;
/// Width of a character of a tick's text.
const TICK_CHARACTER: f64 = 6.8;
/// Least distance of the texts of two ticks.
const TICK_GAP: f64 = 8.0;
/// How far intervals are drawn beyond the dots, in lengths of what holds the dots. One
/// that is drawn to its far end may leave all the dots on one spot.
const BEYOND: f64 = 1.0;
/// Length of the two strokes of an arrow along each axis.
const ARROW: f64 = 4.0;

/// One panel of the chart: a metric over all treatments.
struct Panel<'a> {
    metric: &'static Metric,
    is_primary: bool,
    comparisons: Vec<Option<&'a Comparison>>,
}

impl Panel<'_> {
    /// Whether it shares its scale with others, so that they can be compared by
    /// eye. A tail may lie many times as far, throughput on the other side, and a loss
    /// is told in another unit.
    fn is_common(&self) -> bool {
        self.is_primary
            && self.metric.direction == Direction::LowerIsBetter
            && self.metric.quantity != Quantity::Loss
    }

    /// What its axis counts in hundredths.
    fn unit(&self) -> &'static str {
        let effects = self.comparisons.iter().flatten().filter_map(|it| it.effect);
        let mut units = effects.map(|effect| effect.unit());
        units.next().unwrap_or(number::PERCENT)
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

/// The least range that holds zero, the margin, every dot, and of the intervals what
/// lies near the dots.
fn extent<'a, 'b: 'a>(panels: impl IntoIterator<Item = &'a Panel<'b>>) -> (f64, f64) {
    let (mut dots, mut ends) = (Vec::new(), Vec::new());
    let comparisons = panels
        .into_iter()
        .flat_map(|panel| panel.comparisons.iter().flatten());
    for comparison in comparisons {
        dots.extend(margin(comparison));
        if let Some(effect) = comparison.effect {
            dots.push(effect.change());
            ends.extend(effect.ends());
        }
    }
    range(&dots, ends.as_flattened())
}

/// What [`extent`] makes of the dots with their margins, and the ends of all intervals.
fn range(dots: &[f64], ends: &[f64]) -> (f64, f64) {
    let (low, high) = hull(dots);
    let (least, most) = hull(ends);
    let beyond = (high - low) * BEYOND;
    let low = least.clamp(low - beyond, low);
    let high = most.clamp(high, high + beyond);
    let air = (high - low) * 0.04;
    (low - air, high + air)
}

/// The least range that holds some values and zero.
fn hull(values: &[f64]) -> (f64, f64) {
    let range = |(low, high): (f64, f64), &value: &f64| (low.min(value), high.max(value));
    values.iter().fold((0.0, 0.0), range)
}

/// Both ends of what does not matter.
fn margin(of: &Comparison) -> [f64; 2] {
    let told = |margin| of.effect.map_or(margin, |effect| effect.told(margin));
    [told(-of.margin), told(of.margin)]
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
        let [from, to] = margin(first).map(|end| axis.at(end));
        svg.rect("margin", (from, TOP), (to - from, bottom - TOP));
    }
    let unit = panel.unit();
    let tick = |at| number::tick_change(at, unit);
    grid(svg, axis, tick_count(axis, unit), (TOP, bottom), tick);
}

/// The most ticks whose texts do not touch.
fn tick_count(axis: &Axis, unit: &str) -> usize {
    let fits = |count: &usize| {
        let ticks = axis.ticks(*count);
        let texts = ticks.iter().map(|&tick| number::tick_change(tick, unit));
        let longest = texts.map(|text| text.chars().count()).max();
        let needed = longest.unwrap_or_default() as f64 * TICK_CHARACTER + TICK_GAP;
        ticks
            .windows(2)
            .all(|pair| axis.at(pair[1]) - axis.at(pair[0]) >= needed)
    };
    (1..=8).rev().find(fits).unwrap_or(1)
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
        if let Some([low, high]) = effect.ends() {
            whisker(svg, (low, high), axis, y);
        }
        let mark = if is_decided { "dot" } else { "ring" };
        svg.circle(mark, (axis.at(effect.change()), y), 5.0);
        let text = describe::change(&effect);
        let class = if is_decided { "value" } else { "value faint" };
        svg.text(class, (right + 8.0, y + 4.5), Anchor::Start, &text);
    });
}

/// An interval, with an arrow where it goes on beyond the picture.
fn whisker(svg: &mut Svg, (low, high): (f64, f64), axis: &Axis, y: f64) {
    let (least, most) = axis.ends();
    let (from, to) = (axis.at(low.max(least)), axis.at(high.min(most)));
    svg.line("whisker", (from, y), (to, y));
    for (is_cut, tip, back) in [(low < least, from, ARROW), (high > most, to, -ARROW)] {
        if is_cut {
            let stroke = |up| (tip + back, y + up);
            svg.polyline("whisker", &[stroke(-ARROW), (tip, y), stroke(ARROW)]);
        }
    }
}

/// What hovering over a dot says.
fn title(treatment: &TreatmentSummary, comparison: &Comparison) -> String {
    let mut title = format!("{}, {}", row_label(treatment), comparison.metric.words);
    if let Some(effect) = comparison.effect {
        title += &format!("\n{}", describe::change(&effect));
        if let Some(interval) = describe::interval(&effect) {
            title += &format!(", 95 % interval {interval}");
        }
        title += &format!("\n{}", number::counted(effect.blocks as u64, "block"));
        if let Some(verdict) = effect.verdict {
            title += &format!("\n{verdict}");
        }
        if let Some(smallest) = effect.smallest {
            let smallest = describe::margin(&effect, smallest);
            title += &format!("\n{smallest} would have been seen");
        }
    }
    title
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_lie_apart_however_far_an_interval_goes() {
        // The tails of a short run: of one network an interval is known, to +900,000 %.
        let dots = [-0.03, 0.03, -0.51, -0.38, -0.12];
        let range = range(&dots, &[-0.8, 9_000.0]);
        let axis = Axis::linear(range, (0.0, 100.0));
        assert!(axis.at(0.0) - axis.at(-0.51) > 20.0, "{range:?}");
        let mut svg = Svg::new(100.0, 10.0, "");
        whisker(&mut svg, (-0.8, 9_000.0), &axis, 5.0);
        let picture = svg.finish();
        assert_eq!(picture.matches("<polyline").count(), 1, "{picture}");
        assert!(picture.contains(r#"x2="100.0""#), "{picture}");
    }

    #[test]
    fn an_interval_near_the_dots_is_drawn_whole() {
        let (low, high) = range(&[-0.03, 0.03, 0.31], &[0.25, 0.37]);
        assert!(low < -0.03 && high > 0.37);
        let axis = Axis::linear((low, high), (0.0, 97.0));
        assert!(
            axis.ticks(tick_count(&axis, "%")).len() >= 2,
            "a scale needs two"
        );
        let mut svg = Svg::new(100.0, 10.0, "");
        whisker(&mut svg, (0.25, 0.37), &axis, 5.0);
        assert!(!svg.finish().contains("<polyline"));
    }
}
