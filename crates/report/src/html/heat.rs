//! A heat map of the pairs of nodes.

use plumbline_experiment::Layout;

use super::svg::{Anchor, Svg};
use crate::analysis::{Mesh, MeshMap, Summary};
use crate::chapter::MOST_NODES;
use crate::describe;
use crate::mesh::{Grade, pair_text, title};

/// Width of the page's drawings.
const WIDTH: f64 = 900.0;
/// Room for the names of the nodes.
const NAMES: f64 = 190.0;
/// Room for the numbers of the columns.
const TOP: f64 = 24.0;
/// Largest side of a cell, and the least that holds a number.
const MOST_SIDE: f64 = 64.0;
const SIDE_WITH_TEXT: f64 = 50.0;
/// Nodes from which on a name each would overlap.
const MOST_NAMES: f64 = 11.0;

/// The map; `None` where there is none to draw.
pub(super) fn map(summary: &Summary, mesh: &Mesh, map: &MeshMap) -> Option<String> {
    let nodes = mesh.nodes.len();
    if mesh.layout != Layout::Mesh || nodes > MOST_NODES || map.pairs.is_empty() {
        return None;
    }
    let side = ((WIDTH - NAMES) / nodes as f64).min(MOST_SIDE);
    let height = TOP + side * nodes as f64;
    let mut svg = Svg::new(WIDTH, height + 56.0, &title(summary, map));
    let at = |node: usize, from: f64| from + side * node as f64;
    let every = (MOST_NAMES / side).ceil().max(1.0) as usize;
    for (node, name) in mesh.nodes.iter().enumerate().step_by(every) {
        let middle = side / 2.0;
        let y = at(node, TOP) + middle + 4.0;
        svg.text("tick", (NAMES - 40.0, y), Anchor::End, &label(name));
        let number = (node + 1).to_string();
        svg.text("tick", (NAMES - 10.0, y), Anchor::End, &number);
        let column = (at(node, NAMES) + middle, TOP - 8.0);
        svg.text("tick", column, Anchor::Middle, &number);
    }
    for row in 0..nodes {
        for column in 0..nodes {
            let corner = (at(column, NAMES), at(row, TOP));
            if row != column {
                cell(&mut svg, mesh, map, [row, column], corner, side);
            }
        }
    }
    legend(&mut svg, height + 24.0);
    Some(svg.finish())
}

fn cell(
    svg: &mut Svg,
    mesh: &Mesh,
    map: &MeshMap,
    ends: [usize; 2],
    (x, y): (f64, f64),
    side: f64,
) {
    let gap = if side > 8.0 { 1.0 } else { 0.0 };
    let size = (side - gap, side - gap);
    let Some(pair) = map.cell(ends) else {
        svg.rect("h hnone", (x, y), size);
        return;
    };
    let name = |node: usize| describe::clean(&mesh.nodes[node]);
    let text = pair_text(map, pair);
    let [from, to] = pair.ends;
    let hover = format!(
        "{} to {}: {text}, {} valid trials",
        name(from),
        name(to),
        pair.trials
    );
    svg.group("", &hover, |svg| {
        let grade = Grade::of(map, pair);
        svg.rect(grade.shown().2, (x, y), size);
        if side >= SIDE_WITH_TEXT {
            let middle = (x + side / 2.0, y + side / 2.0 + 4.0);
            let short = if grade == Grade::Dead { "×" } else { &text };
            svg.text("cell", middle, Anchor::Middle, short);
        }
    });
}

fn legend(svg: &mut Svg, y: f64) {
    let mut x = 0.0;
    for grade in Grade::ALL {
        let (_, words, class) = grade.shown();
        svg.rect(class, (x, y), (14.0, 14.0));
        svg.text("caption", (x + 19.0, y + 11.5), Anchor::Start, words);
        x += 36.0 + 6.9 * words.chars().count() as f64;
    }
}

/// The name, as far as there is room.
fn label(name: &str) -> String {
    const MOST: usize = 20;
    let name = describe::clean(name);
    let count = name.chars().count();
    let short: String = name.chars().take(MOST).collect();
    let cut = if count > MOST { "…" } else { "" };
    short + cut
}
