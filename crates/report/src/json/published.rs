//! The published study beside a run.

use super::object::{Order, Published, PublishedRow, PublishedTable};
use crate::analysis::{Beside, BesideTable, OrderAt};
use crate::beside;

pub(super) fn published(of: &Beside) -> Published<'_> {
    Published {
        study: &of.study.name,
        title: &of.study.title,
        author: &of.study.author,
        year: of.study.year,
        source: &of.study.source,
        order: of.agreement.iter().map(order).collect(),
        tables: of.tables.iter().map(|one| table(of, one)).collect(),
    }
}

fn table<'a>(of: &'a Beside, one: &'a BesideTable) -> PublishedTable<'a> {
    let published = beside::published(of, one);
    let scale = published.unit.nanoseconds();
    let rows = one.rows.iter().map(|row| {
        let theirs = &published.rows[row.row];
        PublishedRow {
            label: &theirs.label,
            network: theirs.network.as_deref().unwrap_or_default(),
            published_ns: theirs.values.iter().map(|value| value * scale).collect(),
            here_ns: &row.ours,
        }
    });
    PublishedTable {
        workload: published.workload.as_deref().unwrap_or_default(),
        about: &published.about,
        columns: &published.columns,
        rows: rows.collect(),
        order: one.agreement.iter().map(order).collect(),
    }
}

fn order(of: &OrderAt) -> Order<'_> {
    let agreement = &of.agreement;
    let interval = agreement.interval;
    Order {
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
