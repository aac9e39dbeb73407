//! Latency against percentile, on the axis that HDR plots use.

use plumbline_record::Histogram;

use super::{WIDTH, colour, row_label, rows, spread};
use crate::analysis::{Latency, Section, Summary, TreatmentSummary};
use crate::html::axis::Axis;
use crate::html::svg::{Anchor, Svg};
use crate::latency::{QUANTILES, Support};
use crate::number;

const HEIGHT: f64 = 420.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 700.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 372.0;
/// Points of a line for each factor of ten beyond the quantile.
const POINTS_PER_DECADE: f64 = 40.0;
/// Above this ratio between the highest and the lowest latency the lower lines
/// would lie on the axis, so that latency gets a logarithmic scale too.
const WIDEST_LINEAR: f64 = 30.0;

struct Curve<'a> {
    treatment: &'a TreatmentSummary,
    latency: &'a Latency,
    /// (log₁₀ 1/(1−q), nanoseconds).
    points: Vec<(f64, f64)>,
}

/// One line for each treatment, ending where its samples end (D4); `None` when
/// no treatment has latencies.
pub(in crate::html) fn percentiles(summary: &Summary, section: &Section) -> Option<String> {
    let curves: Vec<Curve<'_>> = rows(summary, section)
        .into_iter()
        .filter_map(|treatment| {
            let latency = treatment.latency.as_ref()?;
            let points = points(&latency.pooled, latency.support);
            (points.len() > 1).then_some(Curve {
                treatment,
                latency,
                points,
            })
        })
        .collect();
    let all = || curves.iter().flat_map(|curve| &curve.points);
    let furthest = all().map(|point| point.0).reduce(f64::max)?;
    let highest = all().map(|point| point.1).reduce(f64::max)?;
    let lowest = all().map(|point| point.1).reduce(f64::min)?;

    let x = Axis::linear((0.0, furthest), (LEFT, RIGHT));
    let is_logarithmic = highest > WIDEST_LINEAR * lowest.max(1.0);
    let y = if is_logarithmic {
        Axis::logarithmic((lowest * 0.9, highest * 1.05), (BOTTOM, TOP))
    } else {
        Axis::linear((0.0, highest * 1.05), (BOTTOM, TOP))
    };
    let mut svg = Svg::new(
        WIDTH,
        HEIGHT,
        "Latency against percentile, one line per network",
    );
    grid(&mut svg, &x, &y, furthest, is_logarithmic);
    // The baseline last, so that it lies on top.
    for curve in curves.iter().rev() {
        line(&mut svg, summary, curve, &x, &y);
    }
    labels(&mut svg, summary, &curves, &x, &y);
    Some(svg.finish())
}

/// The latency at evenly spaced places of the axis, as far as the samples
/// carry it, in one pass over the buckets.
fn points(histogram: &Histogram, support: Support) -> Vec<(f64, f64)> {
    let total = histogram.len() as f64 * (1.0 + support.errors_per_sample);
    let mut buckets = histogram.buckets();
    let (mut value, mut below) = (0, 0);
    let mut points = Vec::new();
    for step in 1.. {
        let place = f64::from(step) / POINTS_PER_DECADE;
        let quantile = 1.0 - 10f64.powf(-place);
        if !support.shows(quantile) {
            break;
        }
        while (below as f64) < quantile * total {
            let Some((top, count)) = buckets.next() else {
                break;
            };
            (value, below) = (top, below + count);
        }
        points.push((place, value as f64));
    }
    points
}

fn grid(svg: &mut Svg, x: &Axis, y: &Axis, furthest: f64, is_logarithmic: bool) {
    for tick in y.ticks(5) {
        let at = y.at(tick);
        svg.line("grid", (LEFT, at), (RIGHT, at));
        let text = number::tick(&number::duration(tick));
        svg.text("tick", (LEFT - 8.0, at + 4.0), Anchor::End, &text);
    }
    for (quantile, name) in std::iter::once((0.0, "p0".to_owned()))
        .chain(QUANTILES.map(|quantile| (quantile, number::percentile_name(quantile))))
    {
        let place = -(1.0 - quantile).log10();
        if place > furthest + 1e-9 {
            break;
        }
        svg.line("grid", (x.at(place), TOP), (x.at(place), BOTTOM));
        svg.text("tick", (x.at(place), BOTTOM + 20.0), Anchor::Middle, &name);
    }
    svg.line("axis", (LEFT, BOTTOM), (RIGHT, BOTTOM));
    let scale = if is_logarithmic {
        ", both axes logarithmic"
    } else {
        ", logarithmic in 1/(1−q)"
    };
    let caption = format!("percentile{scale}");
    let middle = f64::midpoint(LEFT, RIGHT);
    svg.text("caption", (middle, BOTTOM + 42.0), Anchor::Middle, &caption);
}

fn line(svg: &mut Svg, summary: &Summary, curve: &Curve<'_>, x: &Axis, y: &Axis) {
    let points: Vec<_> = curve
        .points
        .iter()
        .map(|&(place, ns)| (x.at(place), y.at(ns)))
        .collect();
    let class = colour(summary, curve.treatment);
    svg.group(&class, &title(curve), |svg| {
        svg.polyline("hit", &points);
        svg.polyline("curve", &points);
        if let Some(&end) = points.last() {
            svg.circle("dot", end, 3.0);
        }
    });
}

/// What hovering over a line says.
fn title(curve: &Curve<'_>) -> String {
    let mut title = row_label(curve.treatment);
    for (quantile, value) in curve.latency.figures.percentiles() {
        if let Some(ns) = value {
            let name = number::percentile_name(quantile);
            title += &format!("\n{name} {}", number::duration(ns as f64));
        }
    }
    title
}

/// Labels beside the ends of their lines, pushed apart where they would meet.
fn labels(svg: &mut Svg, summary: &Summary, curves: &[Curve<'_>], x: &Axis, y: &Axis) {
    let mut ends: Vec<_> = curves
        .iter()
        .filter_map(|curve| {
            let &(place, ns) = curve.points.last()?;
            Some((curve, x.at(place), y.at(ns)))
        })
        .collect();
    ends.sort_by(|a, b| a.2.total_cmp(&b.2));
    let wanted: Vec<f64> = ends.iter().map(|end| end.2).collect();
    for ((curve, end_x, end_y), at) in ends.into_iter().zip(spread(&wanted, (TOP, BOTTOM))) {
        let class = colour(summary, curve.treatment);
        svg.group(&class, &title(curve), |svg| {
            svg.line("leader", (end_x + 5.0, end_y), (RIGHT + 22.0, at));
            let text = row_label(curve.treatment);
            svg.text("label", (RIGHT + 27.0, at + 4.5), Anchor::Start, &text);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_where_a_hundred_samples_lie_beyond() {
        let mut histogram = Histogram::new();
        (1..=10_000).for_each(|ns| histogram.record(ns));
        let points = points(&histogram, Support::of(&histogram));
        let (place, ns) = *points.last().unwrap();
        assert!(
            (place - 2.0).abs() < 1e-9,
            "p99 is the last of 10,000: {place}"
        );
        assert!((ns / 9_900.0 - 1.0).abs() < 2e-3, "{ns}");
    }
}
