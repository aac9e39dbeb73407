//! Which columns the tables have.

use plumbline_record::Spans;
use plumbline_stats::verdict::Verdict;

use super::style::Tint;
use super::table::{Cell, Column};
use crate::analysis::{Section, Summary, TreatmentSummary};
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
        let made = Column::right(column.metric.title, 1, vec![form(true), form(false)]);
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
                    let change = number::signed_percent(effect.ratio_minus_one);
                    format!("{change}{}", overview::mark(effect))
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

/// Where the time of a sample of the requests went; `None` without one.
pub(super) fn spans(summary: &Summary, section: &Section) -> Option<Vec<Column>> {
    let rows: Vec<(&TreatmentSummary, &Spans)> = section
        .treatments
        .iter()
        .map(|&id| &summary.treatments[id])
        .filter_map(|one| Some((one, one.spans.as_ref()?)))
        .filter(|(_, spans)| spans.complete > 0)
        .collect();
    let labels = rows
        .iter()
        .map(|(one, _)| describe::clean(&one.treatment.label));
    let mut columns = vec![Column::left("network", labels.map(Cell::plain).collect())];
    let titles = ["protocol", "queue", "network+server", "wake-up"];
    for (index, title) in titles.into_iter().enumerate() {
        let mean = |(_, spans): &(_, &Spans)| spans.in_order()[index].1.mean();
        let cells = rows
            .iter()
            .map(|row| Cell::plain(number::duration(mean(row))));
        columns.push(Column::right(title, 5, vec![cells.collect()]));
    }
    let whole = rows
        .iter()
        .map(|(_, spans)| number::duration(spans.service_time.mean()));
    columns.push(Column::right(
        "service time",
        9,
        vec![whole.map(Cell::plain).collect()],
    ));
    (!rows.is_empty()).then_some(columns)
}

/// What it took to bring up each network; `None` where nothing was.
pub(super) fn set_up(summary: &Summary) -> Option<Vec<Column>> {
    let table = crate::set_up::table(summary)?;
    let columns = table.head.iter().enumerate().map(|(at, title)| {
        let cells = table.rows.iter().map(|row| Cell::plain(row[at].clone()));
        if at == 0 {
            Column::left(title, cells.collect())
        } else {
            Column::right(title, 9, vec![cells.collect()])
        }
    });
    Some(columns.collect())
}
