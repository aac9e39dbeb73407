//! CPU cost by context as stacked bars.

use super::{LABELS, ROW, WIDTH, colour, grid, name_row, row_label, rows};
use crate::analysis::{Cost, CostByContext, Section, Summary, TreatmentSummary};
use crate::html::axis::Axis;
use crate::html::svg::{Anchor, Svg};
use crate::{describe, number};

const TOP: f64 = 34.0;
const RIGHT: f64 = 760.0;

/// A bar for each treatment, in contexts where the ticks tell them; `None` when
/// no cost was measured.
pub(in crate::html) fn context(summary: &Summary, section: &Section) -> Option<String> {
    let rows: Vec<(&TreatmentSummary, &Cost)> = rows(summary, section)
        .into_iter()
        .filter_map(|one| Some((one, one.cost.as_ref()?)))
        .collect();
    let highest = rows
        .iter()
        .map(|(_, cost)| cost.total.median)
        .reduce(f64::max)?;
    let bottom = TOP + ROW * rows.len() as f64;
    let axis = Axis::linear((0.0, highest.max(0.0) * 1.02), (LABELS, RIGHT));
    let mut svg = Svg::new(WIDTH, bottom + 30.0, "CPU cost by context for each network");
    legend(&mut svg);
    let text = |tick| number::tick(&cost_text(rows[0].1, tick));
    grid(&mut svg, &axis, 5, (TOP, bottom), text);
    for (row, &(treatment, cost)) in rows.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        let class = colour(summary, treatment);
        svg.group(&class, &title(treatment, cost), |svg| {
            let middle = y + ROW / 2.0;
            name_row(svg, treatment, middle);
            stack(svg, cost, &axis, y);
            let total = cost_text(cost, cost.total.median);
            svg.text("value", (RIGHT + 12.0, middle + 4.5), Anchor::Start, &total);
        });
    }
    Some(svg.finish())
}

/// Contexts in the order in which they are stacked.
fn contexts(split: &CostByContext) -> [(&'static str, &'static str, f64); 4] {
    [
        ("user", "k1", split.user),
        ("system", "k2", split.system),
        ("softirq", "k3", split.softirq),
        ("irq", "k4", split.irq),
    ]
}

fn stack(svg: &mut Svg, cost: &Cost, axis: &Axis, y: f64) {
    let (y, height) = (y + 5.0, ROW - 10.0);
    let Some(split) = cost.by_context else {
        let width = axis.at(cost.total.median) - axis.at(0.0);
        svg.rect("bar", (axis.at(0.0), y), (width, height));
        return;
    };
    let mut left = 0.0;
    for (_, class, part) in contexts(&split) {
        let part = part.max(0.0);
        let width = axis.at(left + part) - axis.at(left);
        svg.rect(class, (axis.at(left), y), (width, height));
        left += part;
    }
}

fn legend(svg: &mut Svg) {
    let none = CostByContext {
        user: 0.0,
        system: 0.0,
        softirq: 0.0,
        irq: 0.0,
    };
    let mut x = LABELS;
    for (name, class, _) in contexts(&none) {
        svg.rect(class, (x, 6.0), (11.0, 11.0));
        svg.text("tick", (x + 17.0, 16.0), Anchor::Start, name);
        x += 40.0 + 7.5 * name.len() as f64;
    }
}

fn title(treatment: &TreatmentSummary, cost: &Cost) -> String {
    let mut title = format!(
        "{}\n{} in all",
        row_label(treatment),
        cost_text(cost, cost.total.median)
    );
    for (name, _, part) in cost.by_context.iter().flat_map(contexts) {
        title += &format!("\n{name} {}", cost_text(cost, part));
    }
    title
}

/// A cost with its unit; of bytes, for a gigabyte.
fn cost_text(cost: &Cost, value: f64) -> String {
    describe::in_unit(cost.unit, value)
}
