//! A run beside what others published.

use plumbline_experiment::study::{FigureKind, FigureRow, FigureTable, Study};
use plumbline_experiment::{Plan, TreatmentId};
use plumbline_record::{Observation, Trial};
use plumbline_stats::kendall::{Agreement, Ranking, agreement};
use plumbline_stats::order::median_of_runs;

use super::latency::{TAIL, has_late_tail};
use super::law::Law;
use super::ledger::Ledger;
use super::metric::Metric;
use super::{LEVEL, TreatmentSummary, rates};

/// A run beside a published study: tables, and how far the orders agree.
#[derive(Clone, Debug)]
pub struct Beside {
    /// What was published.
    pub study: Study,
    /// The tables that a workload of the run answers, in the study's order.
    pub tables: Vec<BesideTable>,
    /// The agreement over the pairs within each table, by column; the lowest
    /// percentile first, which has the most samples behind it.
    pub agreement: Vec<OrderAt>,
}

/// One published table and the figures of ours that answer it.
#[derive(Clone, Debug)]
pub struct BesideTable {
    /// Its place in [`Study::tables`].
    pub table: usize,
    /// One for each published row that a treatment of the run answers.
    pub rows: Vec<BesideRow>,
    /// The agreement within this table, by column.
    pub agreement: Vec<OrderAt>,
}

/// One published row and its counterpart.
#[derive(Clone, Debug)]
pub struct BesideRow {
    /// Its place in [`FigureTable::rows`].
    pub row: usize,
    /// The treatment that answers it.
    pub treatment: TreatmentId,
    /// The treatment's label.
    pub label: String,
    /// For each column, the median over trials of each trial's figure in
    /// nanoseconds (L-15); `None` beside what we have nothing for, and where the
    /// samples of all trials together do not carry it (D4).
    pub ours: Vec<Option<f64>>,
}

/// How far two orders agree in one column.
#[derive(Clone, Debug)]
pub struct OrderAt {
    /// The column as published, such as `p95` or `mean`.
    pub percentile: String,
    /// Kendall's tau-b and its interval.
    pub agreement: Agreement,
    /// Of one table: the share of all orders that agree at least as well.
    pub by_chance: Option<f64>,
}

/// A published table with the treatments that answer its rows.
struct Answered<'a> {
    place: usize,
    table: &'a FigureTable,
    rows: Vec<(usize, &'a TreatmentSummary)>,
}

impl Beside {
    /// `None` when the plan names no study, or nothing of the run answers it. A
    /// study that published no figures to compare is there with its findings.
    pub(super) fn new(
        plan: &Plan,
        treatments: &[TreatmentSummary],
        ledger: &Ledger<'_>,
    ) -> Option<Self> {
        let study = Study::find(plan.study.as_deref()?)?;
        let answered: Vec<Answered<'_>> = study
            .tables
            .iter()
            .enumerate()
            .filter_map(|(place, table)| answer(place, table, treatments))
            .collect();
        let source = Source { plan, ledger };
        let tables: Vec<BesideTable> = answered.iter().map(|one| source.table(one)).collect();
        let agreement = source.over_all(&answered);
        let has_figures = study.tables.iter().any(|one| one.workload.is_some());
        (!tables.is_empty() || !has_figures).then(|| Self {
            tables,
            agreement,
            study: study.clone(),
        })
    }

    /// What was published at the levels of a law of ours: levels, and costs in
    /// nanoseconds.
    pub(crate) fn published_of(&self, law: &Law) -> Vec<(f64, f64)> {
        let of_table = |one: &BesideTable| {
            let table = &self.study.tables[one.table];
            let mut columns = 0..table.columns.len();
            let column = columns.find(|&it| is_of(table.figure(it), law.metric));
            let point = |row: &BesideRow| {
                let mut points = law.points.iter();
                let point = points.find(|point| point.treatment == row.treatment)?;
                let value = table.rows[row.row].values[column?];
                Some((point.level, value * table.unit.nanoseconds()))
            };
            one.rows.iter().filter_map(point).collect::<Vec<_>>()
        };
        self.tables.iter().flat_map(of_table).collect()
    }
}

/// Whether a published figure stands for a metric of ours: a mean for the median.
fn is_of(kind: Option<FigureKind>, metric: &Metric) -> bool {
    match kind {
        Some(FigureKind::Mean) => metric.name() == "p50",
        Some(FigureKind::Handshake) => metric.name() == "handshake",
        Some(FigureKind::Quantile(_)) | None => false,
    }
}

/// Finds the treatments of a table's workload by their scenes.
fn answer<'a>(
    place: usize,
    table: &'a FigureTable,
    treatments: &'a [TreatmentSummary],
) -> Option<Answered<'a>> {
    let name = table.workload.as_deref()?;
    let of_row = |row: &FigureRow| {
        let answers = |one: &&TreatmentSummary| {
            one.treatment.task.name() == name && row.is_of(&one.treatment.scene)
        };
        treatments.iter().find(answers)
    };
    let rows: Vec<_> = table
        .rows
        .iter()
        .enumerate()
        .filter_map(|(place, row)| Some((place, of_row(row)?)))
        .collect();
    (!rows.is_empty()).then_some(Answered { place, table, rows })
}

/// Where the figures come from.
struct Source<'a> {
    plan: &'a Plan,
    ledger: &'a Ledger<'a>,
}

impl Source<'_> {
    fn table(&self, answered: &Answered<'_>) -> BesideTable {
        let columns = 0..answered.table.columns.len();
        let row = |&(row, treatment): &(usize, &TreatmentSummary)| BesideRow {
            row,
            treatment: treatment.id(),
            label: treatment.treatment.label.clone(),
            ours: columns
                .clone()
                .map(|column| self.figure(answered.table, column, treatment))
                .collect(),
        };
        let order = |column: usize| {
            let ranking = self.ranking(answered, column)?;
            let by_chance = ranking.share_by_chance(self.blocks());
            self.order(answered.table, column, &[ranking], by_chance)
        };
        BesideTable {
            table: answered.place,
            rows: answered.rows.iter().map(row).collect(),
            agreement: columns.clone().filter_map(order).collect(),
        }
    }

    /// One agreement for each column that all tables have.
    fn over_all(&self, answered: &[Answered<'_>]) -> Vec<OrderAt> {
        let Some(first) = answered.first() else {
            return Vec::new();
        };
        let order = |column: usize| {
            let same = |one: &Answered<'_>| {
                one.table.columns.get(column) == first.table.columns.get(column)
            };
            if !answered.iter().all(same) {
                return None;
            }
            let rankings: Option<Vec<Ranking>> = answered
                .iter()
                .map(|one| self.ranking(one, column))
                .collect();
            self.order(first.table, column, &rankings?, None)
        };
        (0..first.table.columns.len()).filter_map(order).collect()
    }

    fn order(
        &self,
        table: &FigureTable,
        column: usize,
        rankings: &[Ranking],
        by_chance: Option<f64>,
    ) -> Option<OrderAt> {
        Some(OrderAt {
            percentile: table.columns[column].clone(),
            agreement: agreement(rankings, self.blocks(), LEVEL, self.plan.seed)?,
            by_chance,
        })
    }

    /// What orders the networks of a table: the logarithms of their ratios to
    /// the reference of the same block, which are free of the block's noise
    /// (C-6). `None` unless every network with a result carries the
    /// column's figure; one without has no place in the order.
    fn ranking(&self, answered: &Answered<'_>, column: usize) -> Option<Ranking> {
        let kind = answered.table.figure(column)?;
        let is_carried =
            |(_, one): &(usize, &TreatmentSummary)| one.latency.is_none() || carries(one, kind);
        if answered.rows.len() < 2 || !answered.rows.iter().all(is_carried) {
            return None;
        }
        let reference = answered.table.reference_row()?;
        let is_reference = |(row, _): &&(usize, &TreatmentSummary)| {
            answered.table.rows[*row].label == reference.label
        };
        let (_, reference) = answered.rows.iter().find(is_reference)?;
        let base = self.by_block(reference.id(), kind);
        let ratios = |(_, one): &(usize, &TreatmentSummary)| {
            let values = self.by_block(one.id(), kind);
            values
                .iter()
                .zip(&base)
                .map(|(value, base)| Some((value.as_ref()? / base.as_ref()?).ln()))
                .collect()
        };
        Some(Ranking {
            published: answered
                .rows
                .iter()
                .map(|(row, _)| answered.table.rows[*row].values[column])
                .collect(),
            measured: answered.rows.iter().map(ratios).collect(),
        })
    }

    /// Those of all pairs of nodes.
    fn blocks(&self) -> usize {
        self.plan.blocks.len() * self.plan.pairs()
    }

    /// A figure of each block's trial, nanoseconds.
    fn by_block(&self, id: TreatmentId, kind: FigureKind) -> Vec<Option<f64>> {
        let mut blocks = vec![None; self.blocks()];
        for (block, trial, observation) in self.ledger.kept(id) {
            if let Some(slot) = blocks.get_mut(block as usize) {
                *slot = value(trial, observation, kind);
            }
        }
        blocks
    }

    fn figure(&self, table: &FigureTable, column: usize, of: &TreatmentSummary) -> Option<f64> {
        let kind = table.figure(column)?;
        if !carries(of, kind) {
            return None;
        }
        let values: Vec<f64> = self.by_block(of.id(), kind).into_iter().flatten().collect();
        Some(median_of_runs(&values, LEVEL)?.median)
    }
}

/// Whether the samples of all trials together carry a figure (D4, L-3).
fn carries(of: &TreatmentSummary, kind: FigureKind) -> bool {
    let latency = of.latency.as_ref();
    latency.is_some_and(|latency| match kind {
        FigureKind::Quantile(quantile) => latency.support.shows(quantile),
        FigureKind::Mean | FigureKind::Handshake => true,
    })
}

fn value(trial: &Trial, observation: &Observation, kind: FigureKind) -> Option<f64> {
    let latency = &observation.load()?.load.latency;
    if latency.is_empty() {
        return None;
    }
    let ns = match kind {
        FigureKind::Quantile(quantile) if quantile >= TAIL && has_late_tail(trial) => return None,
        FigureKind::Quantile(quantile) => latency.value_at(quantile) as f64,
        FigureKind::Mean => latency.mean(),
        FigureKind::Handshake => rates::handshake_ns(observation)?,
    };
    (ns > 0.0).then_some(ns)
}
