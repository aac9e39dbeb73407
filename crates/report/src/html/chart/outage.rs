//! What became of all traffic around a command, along the time.

use plumbline_record::{FlowSeries, ProbeSeries, RequestOutcome, RequestSpell, SurviveObservation};

use super::{LABELS, WIDTH, colour, grid, row_label};
use crate::analysis::{NotedRepetition, Section, Summary, SurviveSummary, TreatmentSummary};
use crate::html::axis::Axis;
use crate::html::svg::{Anchor, Svg};
use crate::{number, survive};

const TOP: f64 = 34.0;
const RIGHT: f64 = 760.0;
/// Height of the row of one kind of traffic, and of the space below those of a network.
const LINE: f64 = 16.0;
const SPACE: f64 = 14.0;

/// A request that was not answered in time is seen, however short that was.
const NARROWEST: f64 = 1.2;

/// How requests fare, and their colours.
const FARES: [(&str, &str, RequestOutcome); 4] = [
    ("in time", "h0", RequestOutcome::InTime),
    ("after 10 ms", "h2", RequestOutcome::After10Ms),
    ("after 100 ms", "h4", RequestOutcome::After100Ms),
    ("after 1 s, or never", "k3", RequestOutcome::After1S),
];

/// What a policy forbids and got through.
const THROUGH: (&str, &str) = ("got through", "k1");

/// Rows for one repetition of each treatment; `None` where no command was run.
pub(in crate::html) fn outage(
    summary: &Summary,
    section: &Section,
    choose: fn(&SurviveSummary) -> &NotedRepetition,
) -> Option<String> {
    let survived = survive::survived(summary, section).into_iter();
    let rows: Vec<(&TreatmentSummary, &NotedRepetition)> = survived
        .map(|(treatment, of)| (treatment, choose(of)))
        .collect();
    let since = |it: &NotedRepetition| -(it.seen.begun_ns as f64);
    let first = rows
        .iter()
        .map(|(_, it)| since(it))
        .min_by(f64::total_cmp)?;
    let last = rows
        .iter()
        .map(|(_, it)| it.seen.last_ns() as f64 + since(it))
        .max_by(f64::total_cmp)?;
    let height = |(_, it): &(&TreatmentSummary, &NotedRepetition)| LINE * lines(&it.seen) + SPACE;
    let bottom = TOP + rows.iter().map(height).sum::<f64>();
    let axis = Axis::linear((first, last), (LABELS, RIGHT));
    let mut svg = Svg::new(WIDTH, bottom + 30.0, "Traffic around the command");
    legend(
        &mut svg,
        rows.iter().any(|(_, it)| it.seen.forbidden.is_some()),
    );
    let text = |tick: f64| match tick < 0.0 {
        true => format!("−{}", number::tick(&number::duration(-tick))),
        false => number::tick(&number::duration(tick)),
    };
    grid(&mut svg, &axis, 6, (TOP, bottom), text);
    let mut y = TOP;
    for row in &rows {
        let (treatment, noted) = *row;
        let class = colour(summary, treatment);
        svg.group(&class, &title(treatment, noted), |svg| {
            draw(svg, treatment, noted, &axis, y);
        });
        y += height(row);
    }
    Some(svg.finish())
}

fn draw(
    svg: &mut Svg,
    treatment: &TreatmentSummary,
    noted: &NotedRepetition,
    axis: &Axis,
    top: f64,
) {
    let seen = &noted.seen;
    let height = LINE * lines(seen);
    let middle = (LABELS - 14.0, top + height / 2.0 + 4.5);
    svg.text("label", middle, Anchor::End, &row_label(treatment));
    let at = |ns: u64| axis.at(ns as f64 - seen.begun_ns as f64);
    let mut y = top;
    let mut name = |svg: &mut Svg, words: &str| {
        let at = (RIGHT + 12.0, y + LINE - 4.5);
        svg.text("tick", at, Anchor::Start, words);
        y += LINE;
        y - LINE
    };
    for flow in &seen.flows {
        let y = name(svg, survive::short(flow.kind));
        band(svg, flow, &at, y);
    }
    if let Some(series) = &seen.forbidden {
        let y = name(svg, "forbidden");
        openings(svg, series, &at, y);
    }
    let bottom = top + height;
    for ns in [seen.begun_ns, seen.ended_ns] {
        svg.line("mark", (at(ns), top - 4.0), (at(ns), bottom + 4.0));
    }
}

/// A row for each kind of traffic, and one for what a policy forbids.
fn lines(seen: &SurviveObservation) -> f64 {
    (seen.flows.len() + usize::from(seen.forbidden.is_some())) as f64
}

/// Connections that a policy forbids, and upon them those that got through.
fn openings(svg: &mut Svg, series: &ProbeSeries, at: &dyn Fn(u64) -> f64, y: f64) {
    let ends = (series.spells.first(), series.spells.last());
    let all = ends
        .0
        .zip(ends.1)
        .map(|(first, last)| ("h0", first.first_ns, last.last_ns));
    let opened = series.openings().map(|(from, to)| (THROUGH.1, from, to));
    for (class, from, to) in all.into_iter().chain(opened) {
        let (from, to) = (at(from), at(to));
        let size = ((to - from).max(NARROWEST), LINE - 4.0);
        svg.rect(class, (from, y + 2.0), size);
    }
}

/// Requests in time below, and upon them all others.
fn band(svg: &mut Svg, flow: &FlowSeries, at: &dyn Fn(u64) -> f64, y: f64) {
    let is_in_time = |it: &&RequestSpell| it.outcome == RequestOutcome::InTime;
    let well = flow.spells.iter().filter(is_in_time);
    let late = flow.spells.iter().filter(|it| !is_in_time(it));
    for spell in well.chain(late) {
        let (from, to) = (
            at(spell.first_ns),
            at(spell.last_ns.saturating_add(flow.gap_ns)),
        );
        let width = match is_in_time(&spell) {
            true => to - from,
            false => (to - from).max(NARROWEST),
        };
        svg.rect(class(spell.outcome), (from, y + 2.0), (width, LINE - 4.0));
    }
}

fn class(outcome: RequestOutcome) -> &'static str {
    let fares = FARES.iter().rfind(|(_, _, least)| *least <= outcome);
    fares.map_or("h0", |(_, class, _)| class)
}

fn legend(svg: &mut Svg, has_forbidden: bool) {
    let mut x = LABELS;
    let fares = FARES.map(|(name, class, _)| (name, class));
    for (name, class) in fares.into_iter().chain(has_forbidden.then_some(THROUGH)) {
        svg.rect(class, (x, 6.0), (11.0, 11.0));
        svg.text("tick", (x + 17.0, 16.0), Anchor::Start, name);
        x += 40.0 + 7.5 * name.len() as f64;
    }
}

fn title(treatment: &TreatmentSummary, noted: &NotedRepetition) -> String {
    let seen = &noted.seen;
    let mut title = format!(
        "{}, block {}\nthe command took {}",
        row_label(treatment),
        u64::from(noted.block) + 1,
        number::duration(seen.ended_ns.saturating_sub(seen.begun_ns) as f64)
    );
    for flow in &seen.flows {
        let gap_ns = seen.longest_gap_ns(flow.kind).unwrap_or_default();
        let gap = number::duration(gap_ns as f64);
        title += &format!("\n{}: longest gap {gap}", survive::in_words(flow.kind));
    }
    title
}
