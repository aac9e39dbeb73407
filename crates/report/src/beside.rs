//! A run beside a published study, in words and tables for every format.

use plumbline_experiment::study::{FigureRow, FigureTable as Published};

use crate::analysis::{Beside, BesideRow, BesideTable, OrderAt, Summary};
use crate::figures::Table;
use crate::{describe, number};

/// `MachineZone (2016)`.
pub(crate) fn name(beside: &Beside) -> String {
    format!("{} ({})", beside.study.author, beside.study.year)
}

/// What follows the study's name in the answer: how far the order agrees.
pub(crate) fn answer(beside: &Beside) -> String {
    if beside.tables.is_empty() {
        return format!(
            ": no figures were published to compare with; they found that {}",
            beside.study.findings.join("; ")
        );
    }
    let Some(order) = beside.agreement.first() else {
        return ": the order cannot be compared, since no published figure is carried by the \
                samples of every row, the reference among them; run more blocks or a longer duration"
            .to_owned();
    };
    let tables = match beside.tables.len() {
        1 => "1 table".to_owned(),
        several => format!("{several} tables"),
    };
    format!(
        ": by {} the order agrees with {}, over {tables}",
        order.percentile,
        tau(order)
    )
}

/// `tau 0.92 (95 % interval 0.81 to 0.97; 0.97 is the highest that ties in the
/// study allow): 37 of 39 pairs that the study orders stand the same way round`.
fn tau(order: &OrderAt) -> String {
    let agreement = &order.agreement;
    let pairs = &agreement.pairs;
    let interval = match agreement.interval {
        Some(one) => format!(
            "{} interval {:.2} to {:.2}",
            number::percent(one.level),
            one.low,
            one.high
        ),
        None => "too few blocks for an interval".to_owned(),
    };
    let highest = if agreement.highest < 1.0 {
        format!(
            "; {:.2} is the highest that ties in the study allow",
            agreement.highest
        )
    } else {
        String::new()
    };
    format!(
        "Kendall’s tau {:.2} ({interval}{highest}): {} of {} pairs that the study orders stand the \
         same way round here, by ratios within a block",
        agreement.tau,
        pairs.same,
        pairs.same + pairs.opposite + pairs.tied_in_second
    )
}

/// Where the study is from, and what is to be kept in mind with it.
pub(crate) fn about(beside: &Beside) -> String {
    let study = &beside.study;
    let mut text = format!(
        "{}, “{}”, {} ({}).",
        name(beside),
        study.title,
        study.source,
        study.setup
    );
    if !beside.tables.is_empty() {
        text +=
            " Compare the order and the factors, not the times: those belong to their machines.";
    }
    text
}

/// The title of a table: the workload of ours that answers it, and the
/// published conditions.
pub(crate) fn title(beside: &Beside, table: &BesideTable) -> String {
    let published = published(beside, table);
    let workload = published.workload.as_deref().unwrap_or_default();
    format!("{workload} beside {}", published.about)
}

/// The load of ours that answers a table.
pub(crate) fn load(summary: &Summary, table: &BesideTable) -> Option<String> {
    let first = table.rows.first()?;
    let treatment = &summary.treatments.get(first.treatment)?.treatment;
    Some(describe::task(&treatment.task))
}

/// How far the orders agree within one table, a sentence for each column.
pub(crate) fn orders(beside: &Beside, table: &BesideTable) -> Vec<String> {
    if shown_columns(beside, table).is_empty() {
        return vec!["no published figure has enough samples here".to_owned()];
    }
    let sentence = |order: &OrderAt| {
        let chance = order.by_chance.map_or_else(String::new, |share| {
            format!(
                "; a random order does as well in {}",
                number::percent(share)
            )
        });
        format!("{}: {}{chance}", order.percentile, tau(order))
    };
    table.agreement.iter().map(sentence).collect()
}

pub(crate) fn published<'a>(beside: &'a Beside, table: &BesideTable) -> &'a Published {
    &beside.study.tables[table.table]
}

/// The columns of which any row of ours has a figure.
fn shown_columns(beside: &Beside, table: &BesideTable) -> Vec<usize> {
    let has_figure = |&column: &usize| table.rows.iter().any(|row| row.ours[column].is_some());
    (0..published(beside, table).columns.len())
        .filter(has_figure)
        .collect()
}

/// A published figure and its ratio to the reference's: `0.9 ms (1.8×)`.
fn theirs(beside: &Beside, table: &BesideTable, row: &BesideRow, column: usize) -> String {
    let published = published(beside, table);
    let scale = published.unit.nanoseconds();
    let value = published.rows[row.row].values[column];
    let base = published
        .reference_row()
        .map(|one: &FigureRow| one.values[column]);
    with_ratio(value * scale, base.map(|base| base * scale))
}

/// A figure of ours and its ratio to the reference's.
fn ours(beside: &Beside, table: &BesideTable, row: &BesideRow, column: usize) -> String {
    let published = published(beside, table);
    let is_reference = |one: &&BesideRow| published.rows[one.row].label == published.reference;
    let base = table
        .rows
        .iter()
        .find(is_reference)
        .and_then(|one| one.ours[column]);
    match row.ours[column] {
        Some(value) => with_ratio(value, base),
        None => number::NONE.to_owned(),
    }
}

fn with_ratio(ns: f64, base: Option<f64>) -> String {
    let ratio = base.map_or_else(String::new, |base| {
        format!("{}({:.2}×)", number::NO_BREAK_SPACE, ns / base)
    });
    number::duration(ns) + &ratio
}

/// Everything of a table that both have. What a narrow screen may give up comes last.
pub(crate) fn table(beside: &Beside, table: &BesideTable) -> Table {
    let published = published(beside, table);
    let columns = shown_columns(beside, table);
    let mut head = vec!["published as".to_owned()];
    for &column in &columns {
        let name = &published.columns[column];
        head.push(format!("{name} published"));
        head.push(format!("{name} here"));
    }
    head.push("measured as".to_owned());
    let row = |row: &BesideRow| {
        let of = &published.rows[row.row];
        let mut cells = vec![of.label.clone()];
        for &column in &columns {
            cells.push(theirs(beside, table, row, column));
            cells.push(ours(beside, table, row, column));
        }
        cells.push(describe::clean(&row.label));
        cells
    };
    Table {
        head,
        rows: table.rows.iter().map(row).collect(),
    }
}
