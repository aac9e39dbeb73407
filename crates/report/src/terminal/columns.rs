//! Which columns the tables have.

use plumbline_stats::verdict::Verdict;

use super::style::Tint;
use super::table::{Cell, Column};
use crate::overview::{self, Overview, OverviewCell};
use crate::{describe, number};

/// The columns of the overview but for the labels, each workload's together.
pub(super) fn overview(overview: &Overview<'_>) -> Vec<Vec<Column>> {
    let mut groups: Vec<Vec<Column>> = Vec::new();
    for (at, column) in overview.columns.iter().enumerate() {
        let form = |is_wide: bool| {
            let cells = overview
                .rows
                .iter()
                .map(|row| cell(&row.cells[at], is_wide));
            cells.collect()
        };
        let shares = overview.rows.iter();
        let shares = shares.map(|row| row.cells[at].share(column.extent));
        let made = Column::right(column.metric.title, 1, vec![form(true), form(false)]);
        let made = made.with_bars(shares.collect());
        let before = at.checked_sub(1).map(|at| overview.columns[at].workload);
        match groups
            .last_mut()
            .filter(|_| before == Some(column.workload))
        {
            Some(group) => group.push(made),
            None => groups.push(vec![made.headed(&describe::clean(column.workload))]),
        }
    }
    groups
}

fn cell(of: &OverviewCell, is_wide: bool) -> Cell {
    match of {
        OverviewCell::Missing => Cell::new(number::NONE, Tint::Faint),
        OverviewCell::Unknown => Cell::new(overview::UNKNOWN, Tint::Faint),
        OverviewCell::Figure(text) => Cell::plain(number::plain(text)),
        OverviewCell::Change(effect) => {
            let tint = match effect.verdict {
                Some(Verdict::Worse) => Tint::Worse,
                Some(Verdict::Better) => Tint::Better,
                Some(Verdict::Equivalent) => Tint::Plain,
                Some(Verdict::Undecided) | None => Tint::Faint,
            };
            let text = match is_wide {
                true => overview::change(effect),
                false => {
                    format!("{}{}", describe::change(effect), overview::mark(effect))
                }
            };
            // So that figures with and without a mark stand below each other.
            let space = if overview::mark(effect).is_empty() {
                "  "
            } else {
                ""
            };
            Cell::new(&(number::plain(&text) + space), tint)
        }
    }
}
