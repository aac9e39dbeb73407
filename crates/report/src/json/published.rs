//! The published study beside a run.

use serde::Serialize;

use crate::analysis::{Beside, BesideTable, OrderAt};
use crate::beside;
use crate::object::object;

pub(super) fn published(of: &Beside) -> impl Serialize {
    object! {
        study: &of.study.name,
        title: &of.study.title,
        author: &of.study.author,
        year: of.study.year,
        source: &of.study.source,
        order: of.agreement.iter().map(order).collect::<Vec<_>>(),
        tables: of.tables.iter().map(|one| table(of, one)).collect::<Vec<_>>(),
    }
}

/// Figures by column; null where ours has none.
fn table<'a>(of: &'a Beside, one: &'a BesideTable) -> impl Serialize + use<'a> {
    let published = beside::published(of, one);
    let scale = published.unit.nanoseconds();
    let rows = one.rows.iter().map(|row| {
        let theirs = &published.rows[row.row];
        object! {
            label: &theirs.label,
            network: theirs.network.as_deref().unwrap_or_default(),
            treatment: &row.label,
            published_ns: theirs.values.iter().map(|value| value * scale).collect::<Vec<_>>(),
            here_ns: &row.ours,
        }
    });
    object! {
        workload: published.workload.as_deref().unwrap_or_default(),
        about: &published.about,
        columns: &published.columns,
        rows: rows.collect::<Vec<_>>(),
        order: one.agreement.iter().map(order).collect::<Vec<_>>(),
    }
}

/// Kendall's tau-b with its interval, and the pairs behind it.
fn order(of: &OrderAt) -> impl Serialize {
    let agreement = &of.agreement;
    let interval = agreement.interval;
    object! {
        percentile: &of.percentile,
        tau: agreement.tau,
        low: interval.map(|one| one.low),
        high: interval.map(|one| one.high),
        level: interval.map(|one| one.level),
        highest_tau: agreement.highest,
        pairs_same: agreement.pairs.same,
        pairs_opposite: agreement.pairs.opposite,
        pairs_tied_published: agreement.pairs.tied_in_first + agreement.pairs.tied_in_both,
        share_by_chance: of.by_chance,
    }
}
