//! The published study beside a run, as tables for the terminal.

use super::style::{Style, Tint};
use super::table::{Cell, Column, Columns};
use crate::analysis::{Beside, BesideRow, BesideTable, Summary};
use crate::{beside, describe, number};

/// Percentiles that find a place in 80 columns; the other formats have all.
const MOST_COLUMNS: usize = 2;

/// A table for each of the study's that the run answers; nothing without a study.
pub(super) fn render(summary: &Summary, style: Style) -> String {
    let Some(study) = &summary.beside else {
        return String::new();
    };
    let mut out = String::new();
    for table in &study.tables {
        let (workload, about) = beside::title(study, table);
        let title = format!("{workload} beside {}: {about}", beside::name(study));
        out += &style.lines(Tint::Heading, &describe::clean(&title));
        if !beside::shown_columns(study, table).is_empty() {
            out += &Columns::new(columns(study, table)).render(style);
        }
        for order in beside::orders(study, table).iter().take(1) {
            out += &style.lines(Tint::Faint, order);
        }
        out.push('\n');
    }
    out
}

fn columns(study: &Beside, table: &BesideTable) -> Vec<Column> {
    let published = beside::published(study, table);
    let network = |row: &BesideRow| {
        let network = published.rows[row.row].network.as_deref();
        Cell::plain(describe::clean(network.unwrap_or_default()))
    };
    let labels = table.rows.iter().map(network).collect();
    let mut columns = vec![Column::left("network", labels)];
    let shown = beside::shown_columns(study, table);
    for (place, &column) in shown.iter().take(MOST_COLUMNS).enumerate() {
        let weight = (MOST_COLUMNS - place) as u8;
        let name = &published.columns[column];
        let cells = |text: fn(&Beside, &BesideTable, &BesideRow, usize) -> String| {
            let cell = |row| Cell::plain(number::plain(&text(study, table, row, column)));
            vec![table.rows.iter().map(cell).collect()]
        };
        columns.push(Column::right(
            &format!("{name} published"),
            weight,
            cells(beside::theirs),
        ));
        columns.push(Column::right(
            &format!("{name} here"),
            weight,
            cells(beside::ours),
        ));
    }
    columns
}
