//! All figures of a section in two tables, for HTML and Markdown.

use std::borrow::Cow;

use plumbline_stats::order::MedianOfRuns;
use plumbline_stats::verdict::Verdict;

use plumbline_experiment::Task;
use plumbline_experiment::metric::{Role, Traffic};

use crate::analysis::{
    Comparison, Cost, Distribution, Metric, Packets, Quantity, REGISTRY, Rates, Section, Summary,
    TreatmentSummary, leading, metrics_among, metrics_of,
};
use crate::{describe, number};

/// Rows of cells; the first cell of a row names it. Cells have no-break spaces
/// and hold names from outside as they are: renderers must escape them.
pub(crate) struct Table {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// The names of columns.
pub(crate) fn head<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

/// Mean and deviation of each treatment's latencies, for display (C-6).
pub(crate) fn distribution(summary: &Summary, of: &Distribution, baseline: usize) -> Table {
    let label = |id: usize| describe::clean(&summary.treatments[id].treatment.label);
    let rows = of.rows.iter().map(|row| {
        let ratio = row.of_baseline.map(number::significant);
        vec![
            label(row.treatment),
            number::count(row.samples as f64),
            number::duration(row.mean_ns),
            number::duration(row.deviation_ns),
            ratio.unwrap_or_else(|| number::NONE.to_owned()),
        ]
    });
    let mut head = head(["network", "measured", "mean", "deviation"]);
    head.push(format!("times {}", label(baseline)));
    Table {
        head,
        rows: rows.collect(),
    }
}

/// How many of each treatment's latencies are in each bin, but for bins at the
/// ends that are empty for all.
pub(crate) fn bins(summary: &Summary, of: &Distribution) -> Table {
    let label = |id: usize| describe::clean(&summary.treatments[id].treatment.label);
    let mut head = head(["up to"]);
    head.extend(of.rows.iter().map(|row| label(row.treatment)));
    let counts = |bin: usize| of.rows.iter().map(move |row| row.counts[bin]);
    let is_filled = |&bin: &usize| counts(bin).any(|count| count > 0);
    let all = 0..of.ends_ns.len();
    let first = all.clone().find(is_filled).unwrap_or(0);
    let last = all.clone().rfind(is_filled).unwrap_or(0);
    let row = |bin: usize| {
        let mut row = vec![number::duration(of.ends_ns[bin])];
        row.extend(counts(bin).map(|count| number::count(count as f64)));
        row
    };
    Table {
        head,
        rows: (first..=last).map(row).collect(),
    }
}

/// A column of figures: its heading, and the cell of a treatment.
type Figure = (Cow<'static, str>, Box<dyn Fn(&TreatmentSummary) -> String>);

/// Every figure of a section's treatments.
pub(crate) fn figures(summary: &Summary, section: &Section) -> Table {
    let task = &summary.treatments[section.baseline].treatment.task;
    let mut columns = match (task.load(), task.traffic()) {
        (None, _) => own_columns(task),
        (_, Traffic::Bulk | Traffic::Paced) => bulk_columns(task),
        _ => request_columns(task),
    };
    let any = |has: fn(&TreatmentSummary) -> bool| {
        let mut of_section = section.treatments.iter();
        of_section.any(|&id| has(&summary.treatments[id]))
    };
    if any(|of| of.neighbour.is_some()) {
        columns.push(column("neighbours did", |of| {
            or_none(of.neighbour.map(|it| describe::neighbour(&it)))
        }));
    }
    if any(|of| !of.rules.is_empty()) {
        columns.push(column("on the fullest node", |of| {
            or_none(describe::rules(&of.rules))
        }));
    }
    let mut head = head(["network"]);
    head.extend(columns.iter().map(|(heading, _)| heading.to_string()));
    let row = |&id: &usize| {
        let of = &summary.treatments[id];
        let cells = columns.iter().map(|(_, cell)| cell(of));
        [label(of)].into_iter().chain(cells).collect()
    };
    Table {
        head,
        rows: section.treatments.iter().map(row).collect(),
    }
}

/// What the neighbours of each treatment did.
pub(crate) fn beside_neighbours(summary: &Summary, section: &Section) -> Vec<String> {
    let beside = section.with(&summary.treatments, |one| one.neighbour.as_ref());
    let did = beside
        .into_iter()
        .map(|(of, neighbour)| format!("{} {}", label(of), describe::neighbour(neighbour)));
    did.collect()
}

/// What each neighbour does to the metric that orders a section's treatments, against what one
/// that only computes does to it. Without a verdict: it is no exact measure of their CPU.
pub(crate) fn beyond_cpu(summary: &Summary, section: &Section) -> Vec<String> {
    let of_section = |one: &&Comparison| section.treatments.contains(&one.treatment);
    let told = |one: &Comparison| {
        let of = &summary.treatments[one.treatment];
        let effect = one
            .effect
            .filter(|_| one.metric == leading(&of.treatment.task))?;
        let (change, interval) = (describe::change(&effect), describe::interval(&effect)?);
        let (name, words) = (label(of), one.metric.words);
        Some(format!("{words} of {name} {change} ({interval})"))
    };
    let against = summary.against_cpu.iter();
    against.filter(of_section).filter_map(told).collect()
}

fn column(
    heading: impl Into<Cow<'static, str>>,
    cell: impl Fn(&TreatmentSummary) -> String + 'static,
) -> Figure {
    (heading.into(), Box::new(cell))
}

/// The metrics of a workload among certain figures, as medians over trials.
fn metrics(task: &Task, quantity: Quantity) -> impl Iterator<Item = Figure> + use<> {
    metrics_among(task, quantity).map(|(metric, _)| metric_column(metric))
}

fn metric_column(metric: &'static Metric) -> Figure {
    column(metric.heading, move |of| {
        let text = |value| describe::value(metric, value);
        spread(of.over_trials(metric.name()), text)
    })
}

/// Of what is no load.
fn own_columns(task: &Task) -> Vec<Figure> {
    let metrics = metrics_of(task).flat_map(|(metric, role)| {
        let quantile = |(name, share): (&str, f64)| {
            column(format!("{}, {name}", metric.words), move |of| {
                let measured = of.measured(metric.name());
                let value = measured.and_then(|one| one.at(share));
                or_none(value.map(|value| describe::value(metric, value)))
            })
        };
        let is_primary = role == Role::Primary;
        let quantiles = is_primary.then(|| QUANTILES_OF_TRIALS.map(quantile));
        let quantiles = quantiles.into_iter().flatten();
        [metric_column(metric)].into_iter().chain(quantiles)
    });
    metrics.chain([column("trials", trials)]).collect()
}

/// What is told of the trials of what is no load, beside their median: they are few, and
/// each is one event.
const QUANTILES_OF_TRIALS: [(&str, f64); 2] = [("p90", 0.9), ("longest", 1.0)];

fn request_columns(task: &Task) -> Vec<Figure> {
    let mut columns: Vec<Figure> = metrics(task, Quantity::Latency).collect();
    columns.push(column("service p50 of all trials", |of| {
        let latency = of.latency.as_ref();
        nanoseconds(latency.and_then(|one| one.service_time.at(0.5)))
    }));
    columns.push(column("send lag p99 of all trials", |of| {
        let latency = of.latency.as_ref();
        nanoseconds(latency.and_then(|one| one.send_lag.at(0.99)))
    }));
    let before = columns.len();
    columns.extend(metrics(task, Quantity::Throughput));
    if columns.len() == before {
        // What was asked for is no result, but what came of it is worth a look.
        columns.push(column("achieved", |of| {
            let rates = of.rates.as_ref();
            spread(
                rates.and_then(|one| one.achieved_requests_per_second),
                number::rate,
            )
        }));
    }
    columns.extend(metrics(task, Quantity::Cpu));
    columns.extend(processes());
    columns.push(column("polling, of a CPU", |of| {
        let polling = of.cost.as_ref().and_then(|cost| cost.polling_cpus);
        or_none(polling.map(number::percent))
    }));
    let rates = |heading, of_rates: fn(&Rates) -> u64| {
        count(heading, move |of| of.rates.as_ref().map(of_rates))
    };
    columns.push(rates("errors", |rates| rates.errors));
    columns.push(rates("unanswered", |rates| rates.censored));
    columns.push(packets("dropped", |packets| packets.dropped));
    columns.push(packets("TCP timeouts", |packets| packets.timeouts));
    columns.push(column("trials", trials));
    columns
}

fn bulk_columns(task: &Task) -> Vec<Figure> {
    let mut columns: Vec<Figure> = metrics(task, Quantity::Throughput).collect();
    columns.push(column("lost", |of| {
        let rates = of.rates.as_ref();
        or_none(rates.and_then(|one| one.loss_share).map(number::percent))
    }));
    columns.extend(metrics(task, Quantity::Cpu));
    columns.extend(processes());
    columns.push(column("busiest CPU in softirq", |of| {
        let cost = of.cost.as_ref();
        let busiest = cost.and_then(|cost| cost.busiest_cpu_softirq_share);
        or_none(busiest.map(number::percent))
    }));
    columns.push(column("mean packet from, to the sender", |of| {
        let size = |bytes: Option<f64>| or_none(bytes.map(number::bytes));
        let packets = &of.packets;
        let sizes = [packets.mean_sent_bytes, packets.mean_received_bytes];
        sizes.map(size).join(", ")
    }));
    columns.push(column("packets/s", |of| {
        or_none(of.packets.per_second.map(number::count))
    }));
    columns.extend([
        packets("dropped", |packets| packets.dropped),
        packets("squeezed", |packets| packets.squeezed),
        packets("retransmitted", |packets| packets.retransmitted),
        packets("TCP timeouts", |packets| packets.timeouts),
    ]);
    columns.push(column("trials", trials));
    columns
}

/// What the devices and the protocols counted.
fn packets(heading: &'static str, of_packets: fn(&Packets) -> u64) -> Figure {
    count(heading, move |of| Some(of_packets(&of.packets)))
}

/// How often something happened in the trials that count: none where there are none.
fn count(
    heading: &'static str,
    value: impl Fn(&TreatmentSummary) -> Option<u64> + 'static,
) -> Figure {
    column(heading, move |of| {
        let count = value(of).filter(|_| of.has_data());
        or_none(count.map(|count| number::count(count as f64)))
    })
}

/// What of the cost both processes had.
fn processes() -> [Figure; 2] {
    let part = |heading: &'static str, of_cost: fn(&Cost) -> Option<f64>| {
        column(heading, move |of| {
            let cost = of.cost.as_ref();
            or_none(cost.and_then(|cost| Some(describe::in_unit(cost.unit, of_cost(cost)?))))
        })
    };
    [
        part("client", |cost| cost.client_process),
        part("server", |cost| cost.server_process),
    ]
}

/// The percentiles of all samples together, each with its interval within the
/// run (L-14); `None` where nothing is answered.
pub(crate) fn percentiles(summary: &Summary, section: &Section) -> Option<Table> {
    let is_answered = |task: &Task| task.load().is_some_and(|load| load.kind.is_answered());
    if !is_answered(&summary.treatments[section.baseline].treatment.task) {
        return None;
    }
    let row = |&id: &usize| {
        let of = &summary.treatments[id];
        let mut row = vec![label(of)];
        match &of.latency {
            Some(latency) => {
                let values = latency.figures.percentiles();
                let cells = values.iter().zip(latency.intervals);
                row.extend(cells.map(|(&(_, value), interval)| bounded(value, interval)));
                row.push(nanoseconds(latency.figures.max));
            }
            None => row.extend(std::iter::repeat_n(number::NONE.to_owned(), 7)),
        }
        row
    };
    Some(Table {
        head: head([
            "network", "p50", "p90", "p99", "p99.9", "p99.99", "p99.999", "max",
        ]),
        rows: section.treatments.iter().map(row).collect(),
    })
}

/// A percentile with the samples that bound it.
fn bounded(value: Option<u64>, interval: Option<(u64, u64)>) -> String {
    let text = |ns: u64| number::duration(ns as f64);
    match (value, interval) {
        (Some(value), Some((low, high))) => {
            format!("{} ({} to {})", text(value), text(low), text(high))
        }
        (value, _) => nanoseconds(value),
    }
}

/// Every comparison of a section's treatments.
pub(crate) fn comparisons(summary: &Summary, section: &Section) -> Table {
    let of_section = |one: &&Comparison| section.treatments.contains(&one.treatment);
    let mut rows: Vec<&Comparison> = summary.comparisons.iter().filter(of_section).collect();
    rows.sort_by_key(|one| {
        let metric = REGISTRY.iter().position(|metric| metric == one.metric);
        let treatment = section
            .treatments
            .iter()
            .position(|&id| id == one.treatment);
        (metric, treatment)
    });
    Table {
        head: head([
            "network",
            "against",
            "metric",
            "change",
            "95 % interval",
            "difference",
            "verdict",
            "adjusted p",
            "would have been seen",
            "blocks",
        ]),
        rows: rows
            .into_iter()
            .map(|one| comparison_row(summary, one))
            .collect(),
    }
}

fn comparison_row(summary: &Summary, one: &Comparison) -> Vec<String> {
    let effect = one.effect;
    let exploratory = if one.is_primary { "" } else { " (exploratory)" };
    let interval = effect.as_ref().and_then(describe::interval);
    let difference = one
        .difference
        .map(|value| signed(value, describe::value(one.metric, value)));
    let verdict = effect.and_then(|effect| effect.verdict);
    let smallest = effect.and_then(|it| Some(describe::margin(&it, it.smallest?)));
    vec![
        label(&summary.treatments[one.treatment]),
        label(&summary.treatments[one.baseline]),
        format!("{}{exploratory}", one.metric.words),
        or_none(effect.as_ref().map(describe::change)),
        or_none(interval),
        or_none(difference),
        match (effect, verdict) {
            (Some(effect), Some(Verdict::Undecided)) if effect.is_partly_seen() => {
                format!("undecided: {}", describe::UNSEEN)
            }
            (_, Some(verdict)) => verdict.to_string(),
            (Some(_), None) => "too few blocks".to_owned(),
            (None, None) => "not measured".to_owned(),
        },
        or_none(effect.map(|effect| format!("{:.4}", effect.adjusted_p))),
        or_none(smallest),
        pairs(one),
    ]
}

/// Blocks that were paired, and those that could not be.
fn pairs(one: &Comparison) -> String {
    let pairs = one.effect.map_or(0, |effect| effect.blocks);
    match one.pairs_left_out {
        0 => pairs.to_string(),
        left_out => format!("{pairs}, {left_out} without a ratio"),
    }
}

/// A difference with its sign; a minus stands in the text already.
fn signed(value: f64, text: String) -> String {
    if value > 0.0 {
        format!("+{text}")
    } else {
        text
    }
}

fn label(of: &TreatmentSummary) -> String {
    describe::clean(&of.treatment.label)
}

fn trials(of: &TreatmentSummary) -> String {
    let account = &of.account;
    let mut text = format!("{} kept", account.kept);
    if account.repeated > 0 {
        text += &format!(", {} repeated", account.repeated);
    }
    if account.failed > 0 {
        text += &format!(", {} failed", account.failed);
    }
    text
}

/// A median with its interval, where there is one.
pub(crate) fn spread(runs: Option<MedianOfRuns>, text: impl Fn(f64) -> String) -> String {
    let Some(runs) = runs else {
        return number::NONE.to_owned();
    };
    match runs.interval {
        Some(interval) => format!(
            "{} ({} to {})",
            text(runs.median),
            text(interval.low),
            text(interval.high)
        ),
        None => text(runs.median),
    }
}

fn nanoseconds(value: Option<u64>) -> String {
    or_none(value.map(|ns| number::duration(ns as f64)))
}

fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| number::NONE.to_owned())
}
