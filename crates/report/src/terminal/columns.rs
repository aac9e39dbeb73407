//! Which columns a section's table has.

use plumbline_experiment::metric::Role;
use plumbline_record::Spans;
use plumbline_stats::verdict::Verdict;

use super::style::Tint;
use super::table::{Cell, Column};
use crate::analysis::{
    Comparison, Metric, Quantity, Section, Summary, TreatmentSummary, metrics_among,
};
use crate::{describe, number};

/// The table of a section, one row for each treatment in the section's order.
pub(super) fn of(summary: &Summary, section: &Section) -> Vec<Column> {
    let rows: Vec<&TreatmentSummary> = section
        .treatments
        .iter()
        .map(|&id| &summary.treatments[id])
        .collect();
    let baseline = &summary.treatments[section.baseline];
    let build = Builder {
        summary,
        rows: &rows,
    };
    let task = &baseline.treatment.task;
    let mut columns = vec![build.labels()];
    for quantity in [Quantity::Throughput, Quantity::Latency, Quantity::Cpu] {
        for (metric, role) in metrics_among(task, quantity) {
            columns.push(build.metric(metric));
            if role == Role::Primary {
                columns.push(build.change(metric));
            }
        }
    }
    if baseline.is_bulk() {
        columns.extend(build.packets(baseline));
    }
    columns
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

struct Builder<'a> {
    summary: &'a Summary,
    rows: &'a [&'a TreatmentSummary],
}

impl Builder<'_> {
    /// What a rate of bytes says little without (N-1).
    fn packets(&self, baseline: &TreatmentSummary) -> Vec<Column> {
        let size = |one: &TreatmentSummary| one.packets.mean_size_bytes.map(number::bytes);
        let packets = |one: &TreatmentSummary| one.packets.per_second.map(number::short_count);
        let mut columns = vec![
            self.figure("packet", 5, size),
            self.figure("pkt/s", 5, packets),
        ];
        let loss = |one: &TreatmentSummary| one.rates.as_ref()?.loss_share.map(number::percent);
        if loss(baseline).is_some() {
            columns.push(self.figure("lost", 6, loss));
        }
        columns
    }

    fn labels(&self) -> Column {
        let label = |one: &&TreatmentSummary| describe::clean(&one.treatment.label);
        Column::left(
            "network",
            self.rows.iter().map(label).map(Cell::plain).collect(),
        )
    }

    /// A tail is pooled, and shown only if its samples carry it (D4).
    fn metric(&self, metric: &'static Metric) -> Column {
        self.figure(metric.title, metric.weight, |one| {
            let value = match metric.tail() {
                Some(tail) => one.latency.as_ref()?.pooled_at(tail)? as f64,
                None => one.over_trials(metric.name())?.median,
            };
            Some(describe::value(metric, value))
        })
    }

    fn figure(
        &self,
        title: &str,
        weight: u8,
        text: impl Fn(&TreatmentSummary) -> Option<String>,
    ) -> Column {
        let cell = |one: &&TreatmentSummary| match text(one) {
            Some(text) => Cell::plain(number::plain(&text)),
            None => Cell::new(number::NONE, Tint::Faint),
        };
        Column::right(title, weight, vec![self.rows.iter().map(cell).collect()])
    }

    /// Change of the figure to its left against the baseline: with its interval, or
    /// without where the table is too narrow.
    fn change(&self, metric: &Metric) -> Column {
        let found = |one: &TreatmentSummary| self.summary.comparison(one.id(), metric.name());
        let cells = |with_interval| {
            let cell = |one: &&TreatmentSummary| match found(one) {
                Some(comparison) => change(comparison, with_interval),
                None => Cell::new("baseline", Tint::Faint),
            };
            self.rows.iter().map(cell).collect()
        };
        Column::right("change", metric.weight - 1, vec![cells(true), cells(false)])
    }
}

/// `+31 % [27, 35]`, marked `=` when equivalent and `?` without a verdict. The
/// mark stands close, or six networks would not fit 80 columns.
fn change(comparison: &Comparison, with_interval: bool) -> Cell {
    let Some(effect) = comparison.effect else {
        return Cell::new(number::NONE, Tint::Faint);
    };
    let (mark, tint) = match effect.verdict {
        Some(Verdict::Worse) => (' ', Tint::Worse),
        Some(Verdict::Better) => (' ', Tint::Better),
        Some(Verdict::Equivalent) => ('=', Tint::Faint),
        Some(Verdict::Undecided) | None => ('?', Tint::Faint),
    };
    let change = number::signed_percent(effect.ratio_minus_one);
    let text = match effect.interval.filter(|_| with_interval) {
        Some(interval) => {
            let interval = number::percent_brackets(interval.low, interval.high);
            format!("{change} {interval}{mark}")
        }
        None => format!("{change} {mark}"),
    };
    Cell::new(&number::plain(&text), tint)
}
