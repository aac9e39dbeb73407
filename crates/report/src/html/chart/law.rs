//! A cost against the levels of a factor, with the line that was fitted to it.

use super::{COLOURS, WIDTH, short, spread};
use crate::analysis::{Law, LawPoint};
use crate::html::axis::Axis;
use crate::html::svg::{Anchor, Svg};
use crate::{describe, number};

const HEIGHT: f64 = 400.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 690.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 348.0;
/// Levels that span a larger factor stand on an axis of even factors.
const WIDEST_LINEAR: f64 = 10.0;
/// The same for costs, whose axis begins at 0 otherwise.
const WIDEST_COSTS: f64 = 30.0;
/// Where an axis of even factors begins when level 0 stands left of it.
const AFTER_ZERO: f64 = LEFT + 70.0;
/// Least distance between two levels that are named, for each of their letters.
const LETTER: f64 = 8.0;
/// Half of the width of a cross.
const MARK: f64 = 4.5;
/// Points of a line that is curved by its axis.
const POINTS: u32 = 100;

/// Where levels stand.
struct LevelAxis {
    axis: Axis,
    /// The ends of the axis. Level 0 has no logarithm: it stands by itself at the left.
    range: (f64, f64),
    has_zero_aside: bool,
    is_logarithmic: bool,
}

impl LevelAxis {
    fn new(laws: &[Law]) -> Self {
        let levels = || {
            laws.iter()
                .flat_map(|law| law.points.iter().map(|one| one.level))
        };
        let highest = levels().fold(f64::NEG_INFINITY, f64::max);
        let lowest = levels().fold(f64::INFINITY, f64::min);
        let least = levels().filter(|&level| level > 0.0);
        let least = least.fold(f64::INFINITY, f64::min);
        let is_logarithmic = lowest >= 0.0 && highest > WIDEST_LINEAR * least;
        let has_zero_aside = is_logarithmic && lowest <= 0.0;
        let range = match is_logarithmic {
            true => (least, highest),
            false => (lowest, highest),
        };
        let ends = match has_zero_aside {
            true => (AFTER_ZERO, RIGHT - 14.0),
            false => (LEFT + 14.0, RIGHT - 14.0),
        };
        Self {
            axis: match is_logarithmic {
                true => Axis::logarithmic(range, ends),
                false => Axis::linear(range, ends),
            },
            range,
            has_zero_aside,
            is_logarithmic,
        }
    }

    fn at(&self, level: f64) -> f64 {
        match self.has_zero_aside && level < self.range.0 {
            true => LEFT + 14.0,
            false => self.axis.at(level),
        }
    }

    /// Levels between which a line looks straight.
    fn steps(&self) -> Vec<f64> {
        let (low, high) = self.range;
        let share = |step: u32| f64::from(step) / f64::from(POINTS);
        let level = |step: u32| match self.is_logarithmic {
            true => low * (high / low).powf(share(step)),
            false => low + (high - low) * share(step),
        };
        (0..=POINTS).map(level).collect()
    }
}

/// One line for each of the laws, which are of one metric, with what was published of each:
/// levels and costs.
pub(in crate::html) fn law(laws: &[Law], published: &[Vec<(f64, f64)>]) -> String {
    let x = LevelAxis::new(laws);
    let (y, is_logarithmic) = costs(laws, published, &x);
    let metric = laws[0].metric;
    let about = format!(
        "{} by {}, one line per network",
        metric.words, laws[0].factor
    );
    let mut svg = Svg::new(WIDTH, HEIGHT, &about);
    for tick in y.ticks(5) {
        let at = y.at(tick);
        svg.line("grid", (LEFT, at), (RIGHT, at));
        let text = number::tick(&describe::value(metric, tick));
        svg.text("tick", (LEFT - 8.0, at + 4.0), Anchor::End, &text);
    }
    svg.line("axis", (LEFT, BOTTOM), (RIGHT, BOTTOM));
    name_levels(&mut svg, laws, &x);
    let scale = match (x.is_logarithmic, is_logarithmic) {
        (true, true) => ", both axes logarithmic",
        (true, false) => ", logarithmic, so that a straight line is a curve",
        (false, true) => "; the cost logarithmic",
        (false, false) => "",
    };
    let caption = format!("{}{scale}", laws[0].factor);
    let middle = f64::midpoint(LEFT, RIGHT);
    svg.text("caption", (middle, BOTTOM + 42.0), Anchor::Middle, &caption);
    for (place, law) in laws.iter().enumerate() {
        draw(&mut svg, &class(place), law, &x, &y);
    }
    for (place, marks) in published.iter().enumerate() {
        if marks.is_empty() {
            continue;
        }
        let about = format!("{}, as published", short(&laws[place].label));
        svg.group(&class(place), &about, |svg| {
            for &(level, cost) in marks {
                cross(svg, (x.at(level), y.at(cost)));
            }
        });
    }
    labels(&mut svg, laws, &x, &y);
    svg.finish()
}

/// A mark of what others measured.
fn cross(svg: &mut Svg, (x, y): (f64, f64)) {
    for turn in [-MARK, MARK] {
        svg.line("mark", (x - MARK, y - turn), (x + MARK, y + turn));
    }
}

fn class(place: usize) -> String {
    format!("c{}", place % COLOURS + 1)
}

/// The axis of costs, and whether it is one of even factors: it holds all points, their
/// intervals, all lines, and what was published.
fn costs(laws: &[Law], published: &[Vec<(f64, f64)>], x: &LevelAxis) -> (Axis, bool) {
    let points = laws.iter().flat_map(|law| &law.points);
    let of_points = points.filter_map(|one| one.over_trials).flat_map(|runs| {
        let ends = runs
            .interval
            .map_or([runs.median; 2], |it| [it.low, it.high]);
        [runs.median, ends[0], ends[1]]
    });
    let (first, last) = x.range;
    let of_lines = laws
        .iter()
        .flat_map(|law| [law.line.at(first), law.line.at(last)]);
    let all: Vec<f64> = of_points
        .chain(of_lines)
        .chain(published.iter().flatten().map(|(_, cost)| *cost))
        .filter(|cost| cost.is_finite())
        .collect();
    let highest = all.iter().copied().fold(0.0, f64::max);
    let lowest = all.iter().copied().fold(highest, f64::min);
    let is_logarithmic = lowest > 0.0 && highest > WIDEST_COSTS * lowest;
    let axis = match is_logarithmic {
        true => Axis::logarithmic((lowest * 0.9, highest * 1.1), (BOTTOM, TOP)),
        false => Axis::linear((lowest.min(0.0), highest * 1.05), (BOTTOM, TOP)),
    };
    (axis, is_logarithmic)
}

/// A tick at each level that was measured, named where there is room.
fn name_levels(svg: &mut Svg, laws: &[Law], x: &LevelAxis) {
    let mut levels: Vec<&LawPoint> = laws.iter().flat_map(|law| &law.points).collect();
    levels.sort_by(|a, b| a.level.total_cmp(&b.level));
    levels.dedup_by(|a, b| a.level == b.level);
    let mut free = f64::NEG_INFINITY;
    for point in levels {
        let at = x.at(point.level);
        svg.line("grid", (at, TOP), (at, BOTTOM));
        let text = describe::clean(&point.shown);
        let half = text.chars().count() as f64 * LETTER / 2.0;
        if at - half >= free {
            svg.text("tick", (at, BOTTOM + 20.0), Anchor::Middle, &text);
            free = at + half;
        }
    }
    if x.has_zero_aside {
        // The axis is broken between 0 and the first level that has a logarithm.
        let middle = f64::midpoint(x.at(0.0), x.at(x.range.0));
        for at in [middle - 3.0, middle + 3.0] {
            svg.line("axis", (at - 3.0, BOTTOM + 5.0), (at + 3.0, BOTTOM - 5.0));
        }
    }
}

fn draw(svg: &mut Svg, class: &str, law: &Law, x: &LevelAxis, y: &Axis) {
    let steps = x.steps().into_iter();
    let line: Vec<(f64, f64)> = steps
        .map(|level| (x.at(level), y.at(law.line.at(level))))
        .collect();
    svg.group(class, &title(law), |svg| {
        svg.polyline("hit", &line);
        svg.polyline("curve", &line);
        if x.has_zero_aside {
            let (at, cost) = (x.at(0.0), y.at(law.line.at(0.0)));
            svg.polyline("curve", &[(at - 9.0, cost), (at + 9.0, cost)]);
        }
        for point in &law.points {
            let Some(runs) = point.over_trials else {
                continue;
            };
            let at = x.at(point.level);
            if let Some(interval) = runs.interval {
                svg.line(
                    "whisker",
                    (at, y.at(interval.low)),
                    (at, y.at(interval.high)),
                );
            }
            svg.circle("dot", (at, y.at(runs.median)), 4.0);
        }
    });
}

/// What hovering over a line says.
fn title(law: &Law) -> String {
    let mut title = short(&law.label);
    for point in &law.points {
        if let Some(runs) = point.over_trials {
            let cost = describe::value(law.metric, runs.median);
            title += &format!(
                "\n{} = {}: {cost}",
                law.factor,
                describe::clean(&point.shown)
            );
        }
    }
    title
}

/// Labels beside the ends of their lines, pushed apart where they would meet.
fn labels(svg: &mut Svg, laws: &[Law], x: &LevelAxis, y: &Axis) {
    let (_, last) = x.range;
    let mut ends: Vec<(usize, f64)> = laws
        .iter()
        .enumerate()
        .map(|(place, law)| (place, y.at(law.line.at(last))))
        .collect();
    ends.sort_by(|a, b| a.1.total_cmp(&b.1));
    let wanted: Vec<f64> = ends.iter().map(|end| end.1).collect();
    for ((place, end), at) in ends.into_iter().zip(spread(&wanted, (TOP, BOTTOM))) {
        svg.group(&class(place), &title(&laws[place]), |svg| {
            svg.line("leader", (x.at(last) + 6.0, end), (RIGHT + 18.0, at));
            let label = short(&laws[place].label);
            svg.text("label", (RIGHT + 23.0, at + 4.5), Anchor::Start, &label);
        });
    }
}
