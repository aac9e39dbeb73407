//! Which columns a section's table has.

use plumbline_record::Spans;
use plumbline_stats::verdict::Verdict;

use super::Tint;
use super::table::{Cell, Column};
use crate::analysis::{Comparison, Metric, Section, Summary, TreatmentSummary};
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
    let mut columns = vec![build.labels()];
    if baseline.is_bulk() {
        columns.extend(build.bulk(baseline));
    } else if baseline.treatment.workload.arrival.rate().is_none() {
        columns.extend(build.closed());
    } else {
        columns.extend(build.open());
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
    fn open(&self) -> Vec<Column> {
        vec![
            self.p50(9),
            self.change(Metric::P50, 8),
            self.p99(1),
            self.cpu("CPU/req"),
            self.change(Metric::CpuPerRequest, 3),
        ]
    }

    fn closed(&self) -> Vec<Column> {
        let rate = |one: &TreatmentSummary| {
            let rate = one.rates.achieved_requests_per_second?;
            Some(number::rate(rate.median))
        };
        vec![
            self.figure("req/s", 9, rate),
            self.change(Metric::Throughput, 8),
            self.p50(7),
            self.change(Metric::P50, 6),
            self.p99(1),
            self.cpu("CPU/req"),
        ]
    }

    fn bulk(&self, baseline: &TreatmentSummary) -> Vec<Column> {
        let throughput = |one: &TreatmentSummary| {
            let rate = one.rates.throughput_bits_per_second?;
            Some(number::bit_rate(rate.median))
        };
        let size = |one: &TreatmentSummary| one.packets.mean_size_bytes.map(number::bytes);
        let packets = |one: &TreatmentSummary| one.packets.per_second.map(number::short_count);
        let mut columns = vec![
            self.figure("throughput", 9, throughput),
            self.change(Metric::Throughput, 8),
            self.cpu("CPU/GB"),
            self.change(Metric::CpuPerByte, 3),
            // N-1: a rate of bytes says little without the size of its packets.
            self.figure("packet", 5, size),
            self.figure("pkt/s", 5, packets),
        ];
        if baseline.rates.loss_share.is_some() {
            let loss = |one: &TreatmentSummary| one.rates.loss_share.map(number::percent);
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

    fn p50(&self, weight: u8) -> Column {
        self.figure("p50", weight, |one| {
            let p50 = one.latency.as_ref()?.p50_over_trials?;
            Some(number::duration(p50.median))
        })
    }

    /// The pooled p99, and only if its samples carry it (D4).
    fn p99(&self, weight: u8) -> Column {
        self.figure("p99", weight, |one| {
            let p99 = one.latency.as_ref()?.figures.p99?;
            Some(number::duration(p99 as f64))
        })
    }

    fn cpu(&self, title: &str) -> Column {
        self.figure(title, 4, |one| {
            let cost = one.cost.as_ref()?;
            let workload = &one.treatment.workload;
            let metric = match cost.per {
                crate::analysis::PerUnit::Request => Metric::CpuPerRequest,
                crate::analysis::PerUnit::Byte => Metric::CpuPerByte,
            };
            Some(describe::value(metric, workload, cost.total.median))
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

    /// Change of the figure to its left against the baseline: with its interval, or without where the
    /// table is too narrow.
    fn change(&self, metric: Metric, weight: u8) -> Column {
        let cells = |with_interval| {
            let cell = |one: &&TreatmentSummary| match self.summary.comparison(one.id(), metric) {
                Some(comparison) => change(comparison, with_interval),
                None => Cell::new("baseline", Tint::Faint),
            };
            self.rows.iter().map(cell).collect()
        };
        Column::right("change", weight, vec![cells(true), cells(false)])
    }
}

/// `+31 % [27, 35]`, marked `=` when equivalent and `?` without a verdict. The
/// mark stands close, or six networks would not fit 80 columns.
fn change(comparison: &Comparison, with_interval: bool) -> Cell {
    let Some(effect) = comparison.effect else {
        return Cell::new(number::NONE, Tint::Faint);
    };
    let (mark, tint) = match comparison.verdict {
        Some(Verdict::Worse) => (' ', Tint::Worse),
        Some(Verdict::Better) => (' ', Tint::Better),
        Some(Verdict::Equivalent) => ('=', Tint::Faint),
        Some(Verdict::Inconclusive) | None => ('?', Tint::Faint),
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
