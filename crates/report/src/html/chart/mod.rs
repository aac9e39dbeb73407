//! The pictures of a section.

mod context;
mod histogram;
mod law;
mod outage;
mod overhead;
mod percentiles;
mod throughput;
mod waterfall;

pub(super) use context::context;
pub(super) use histogram::histogram;
pub(super) use law::law;
pub(super) use outage::outage;
pub(super) use overhead::overhead;
pub(super) use percentiles::percentiles;
pub(super) use throughput::throughput;
pub(super) use waterfall::waterfall;

use super::axis::Axis;
use super::svg::{Anchor, Svg};
use crate::analysis::{Section, Summary, TreatmentSummary};
use crate::describe;

/// Width of every picture in units of its view box; the page scales it.
const WIDTH: f64 = 860.0;
/// Height of a row of dots or bars.
const ROW: f64 = 30.0;
/// Space for row labels.
const LABELS: f64 = 166.0;
/// Longest label in characters that this space takes.
const LABEL_LENGTH: usize = 20;

/// Colours that the page defines, apart from the baseline's.
pub(super) const COLOURS: usize = 8;

/// The class of a treatment's colour: the same for a label in all pictures,
/// `c0` for baselines.
pub(super) fn colour(summary: &Summary, treatment: &TreatmentSummary) -> String {
    let label = &treatment.treatment.label;
    let mut labels: Vec<&str> = Vec::new();
    for one in &summary.treatments {
        let known = labels.contains(&one.treatment.label.as_str());
        if one.treatment.baseline.is_some() && !known {
            labels.push(&one.treatment.label);
        }
    }
    match labels.iter().position(|one| one == label) {
        Some(place) => format!("c{}", place % COLOURS + 1),
        None => "c0".to_owned(),
    }
}

/// Least distance of two labels at the ends of their lines.
const LABEL_STEP: f64 = 17.0;

/// Places at least a step apart, in the same order, near the wanted ones, and
/// between `top` and `bottom` if they fit.
fn spread(wanted: &[f64], (top, bottom): (f64, f64)) -> Vec<f64> {
    let mut places: Vec<f64> = Vec::with_capacity(wanted.len());
    for &place in wanted {
        let free = places.last().map_or(top, |last| last + LABEL_STEP);
        places.push(place.max(free));
    }
    // What was pushed beyond the lower end pushes its neighbours up again.
    let mut limit = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(limit);
        limit = *place - LABEL_STEP;
    }
    places
}

/// The treatments of a section that have data, in its order.
fn rows<'a>(summary: &'a Summary, section: &'a Section) -> Vec<&'a TreatmentSummary> {
    let treatments = section.treatments.iter().map(|&id| &summary.treatments[id]);
    treatments.filter(|one| one.has_data()).collect()
}

/// The label in front of a row, around the height `y`.
fn name_row(svg: &mut Svg, treatment: &TreatmentSummary, y: f64) {
    let at = (LABELS - 14.0, y + 4.5);
    svg.text("label", at, Anchor::End, &row_label(treatment));
}

/// About `count` vertical lines from `top` to `bottom`, and their values below.
fn grid(
    svg: &mut Svg,
    axis: &Axis,
    count: usize,
    (top, bottom): (f64, f64),
    text: impl Fn(f64) -> String,
) {
    for tick in axis.ticks(count) {
        let x = axis.at(tick);
        let class = if tick == 0.0 { "axis" } else { "grid" };
        svg.line(class, (x, top), (x, bottom));
        svg.text("tick", (x, bottom + 18.0), Anchor::Middle, &text(tick));
    }
}

/// A label that fits in front of a row.
fn row_label(treatment: &TreatmentSummary) -> String {
    short(&treatment.treatment.label)
}

/// A name that fits in front of a row.
fn short(name: &str) -> String {
    let label = describe::clean(name);
    if label.chars().count() <= LABEL_LENGTH {
        return label;
    }
    let kept: String = label.chars().take(LABEL_LENGTH - 1).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_their_distance_and_order() {
        let wanted = [100.0, 101.0, 102.0, 300.0, 371.0, 371.5];
        let places = spread(&wanted, (16.0, 372.0));
        assert!(
            places
                .windows(2)
                .all(|pair| pair[1] - pair[0] >= LABEL_STEP - 1e-9)
        );
        assert_eq!(places[3], 300.0, "what has room stays");
        assert!(places[5] <= 372.0);
    }
}
