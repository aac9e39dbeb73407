//! The start of a pod on each network, stretch by stretch.

use plumbline_record::{LaunchPart, LaunchPartKind};

use super::{LABELS, ROW, WIDTH, colour, grid, name_row, row_label};
use crate::analysis::{LaunchSummary, NotedPod, Section, Summary, TreatmentSummary};
use crate::html::axis::Axis;
use crate::html::svg::{Anchor, Svg};
use crate::{describe, launch, number};

const TOP: f64 = 34.0;
const RIGHT: f64 = 760.0;

/// Colours of the steps of a network, in turn.
const STEPS: [&str; 2] = ["k1", "k2"];

/// A bar for one pod of each treatment; `None` where no pods were launched.
pub(in crate::html) fn waterfall(
    summary: &Summary,
    section: &Section,
    choose: fn(&LaunchSummary) -> Option<&NotedPod>,
) -> Option<String> {
    let launched = launch::launched(summary, section).into_iter();
    let rows: Vec<(&TreatmentSummary, &NotedPod)> = launched
        .filter_map(|(treatment, of)| Some((treatment, choose(of)?)))
        .collect();
    let parts: Vec<Vec<LaunchPart<'_>>> = rows.iter().map(|(_, it)| it.pod.parts()).collect();
    let ends = parts.iter().flatten().map(|part| part.to_ns);
    let highest = ends.max()? as f64;
    let bottom = TOP + ROW * rows.len() as f64;
    let axis = Axis::linear((0.0, highest * 1.02), (LABELS, RIGHT));
    let mut svg = Svg::new(WIDTH, bottom + 30.0, "The start of a pod on each network");
    legend(&mut svg);
    let text = |tick| number::tick(&number::duration(tick));
    grid(&mut svg, &axis, 5, (TOP, bottom), text);
    for (row, ((treatment, noted), parts)) in rows.iter().zip(&parts).enumerate() {
        let y = TOP + ROW * row as f64;
        let class = colour(summary, treatment);
        svg.group(&class, &title(treatment, noted, parts), |svg| {
            let middle = y + ROW / 2.0;
            name_row(svg, treatment, middle);
            stack(svg, parts, &axis, y);
            let total = noted.pod.up_ns().unwrap_or_default() as f64;
            if parts.last().is_some_and(|last| last.to_ns as f64 > total) {
                let up = axis.at(total);
                svg.line("mark", (up, y + 2.0), (up, y + ROW - 2.0));
            }
            let at = (RIGHT + 12.0, middle + 4.5);
            svg.text("value", at, Anchor::Start, &number::duration(total));
        });
    }
    Some(svg.finish())
}

fn stack(svg: &mut Svg, parts: &[LaunchPart<'_>], axis: &Axis, y: f64) {
    let mut steps = 0;
    for part in parts {
        let class = match part.kind {
            LaunchPartKind::Lag | LaunchPartKind::Placing | LaunchPartKind::Shown => "margin",
            LaunchPartKind::Namespace | LaunchPartKind::Program => "k4",
            LaunchPartKind::Attach => {
                steps += 1;
                STEPS[(steps - 1) % STEPS.len()]
            }
            LaunchPartKind::Packets => "k3",
        };
        let (from, to) = (axis.at(part.from_ns as f64), axis.at(part.to_ns as f64));
        svg.rect(class, (from, y + 5.0), (to - from, ROW - 10.0));
    }
}

fn legend(svg: &mut Svg) {
    let mut x = LABELS;
    for (name, classes) in [
        ("lag, what a cluster shows", &["margin"][..]),
        ("namespace, program", &["k4"][..]),
        ("steps of the network", &STEPS[..]),
        ("first packets", &["k3"][..]),
    ] {
        for class in classes {
            svg.rect(class, (x, 6.0), (11.0, 11.0));
            x += 11.0;
        }
        svg.text("tick", (x + 6.0, 16.0), Anchor::Start, name);
        x += 27.0 + 6.6 * name.len() as f64;
    }
}

fn title(treatment: &TreatmentSummary, noted: &NotedPod, parts: &[LaunchPart<'_>]) -> String {
    let mut title = format!(
        "{}\npod {} in block {}",
        row_label(treatment),
        noted.position + 1,
        u64::from(noted.block) + 1
    );
    for part in parts {
        let length = number::duration((part.to_ns - part.from_ns) as f64);
        title += &format!("\n{} {length}", describe::clean(part.name));
    }
    title
}
