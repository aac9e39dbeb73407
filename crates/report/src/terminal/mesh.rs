//! Pairs of nodes for the terminal.

use super::style::{Style, Tint};
use super::table::{Cell, Column, Columns};
use crate::analysis::Summary;
use crate::{mesh, number};

/// A map of letters or a table for each treatment; nothing for a run of one pair.
pub(super) fn render(summary: &Summary, style: Style) -> String {
    let Some(of) = &summary.mesh else {
        return String::new();
    };
    let mut out = String::new();
    for map in &of.maps {
        let title = format!("{}; {}", mesh::title(summary, map), mesh::about(of, map));
        out += &style.lines(Tint::Heading, &title);
        if let Some(lines) = mesh::letters(of, map) {
            let Some((legend, rows)) = lines.split_last() else {
                continue;
            };
            for row in rows {
                out += &format!("{row}\n");
            }
            out += &style.lines(Tint::Faint, legend);
        }
        if let Some(pairs) = mesh::table(of, map) {
            out += &Columns::new(columns(&pairs)).render(style);
        }
        for finding in mesh::findings(of, map) {
            out += &style.lines(Tint::Plain, &finding);
        }
        out.push('\n');
    }
    out
}

fn columns(pairs: &crate::figures::Table) -> Vec<Column> {
    let heads = pairs.head.iter().enumerate();
    heads
        .map(|(at, head)| {
            let cells = pairs.rows.iter();
            let cells = cells.map(|row| Cell::plain(number::plain(&row[at])));
            match at {
                0 | 1 => Column::left(head, cells.collect()),
                _ => Column::right(head, 6 - at as u8, vec![cells.collect()]),
            }
        })
        .collect()
}
