//! All figures of a section in two tables, for HTML and Markdown.

use plumbline_stats::order::MedianOfRuns;

use crate::analysis::{
    Comparison, Distribution, PerUnit, Section, Summary, TreatmentSummary, Unit, metrics_of,
};
use crate::{describe, number};

/// Rows of cells; the first cell of a row names it. Cells have no-break spaces
/// and hold the names of others as they are: who shows them escapes them.
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

/// Every figure of a section's treatments.
pub(crate) fn figures(summary: &Summary, section: &Section) -> Table {
    let treatments = section.treatments.iter().map(|&id| &summary.treatments[id]);
    if summary.treatments[section.baseline].is_bulk() {
        Table {
            head: head([
                "network",
                "throughput",
                "lost",
                "CPU per GB",
                "client",
                "server",
                "busiest CPU in softirq",
                "mean packet",
                "packets/s",
                "dropped",
                "squeezed",
                "retransmitted",
                "trials",
            ]),
            rows: treatments.map(bulk_row).collect(),
        }
    } else {
        Table {
            head: head([
                "network",
                "p50, median of trials",
                "p99, median of trials",
                "service p50",
                "send lag p99",
                "achieved",
                "CPU per request",
                "client",
                "server",
                "polling, of a CPU",
                "errors",
                "unanswered",
                "trials",
            ]),
            rows: treatments.map(request_row).collect(),
        }
    }
}

fn request_row(of: &TreatmentSummary) -> Vec<String> {
    let latency = of.latency.as_ref();
    let p50 = latency.and_then(|one| one.p50_over_trials);
    let p99 = latency
        .filter(|one| one.every_trial_carries_p99)
        .and_then(|one| one.p99_over_trials);
    let mut row = vec![
        label(of),
        spread(p50, number::duration),
        spread(p99, number::duration),
        nanoseconds(latency.and_then(|one| one.service_time.p50)),
        nanoseconds(latency.and_then(|one| one.send_lag.p99)),
    ];
    row.push(spread(of.rates.achieved_requests_per_second, number::rate));
    row.extend(costs(of));
    let polling = of.cost.as_ref().and_then(|cost| cost.polling_cpus);
    row.push(or_none(polling.map(number::percent)));
    row.push(number::count(of.rates.errors as f64));
    row.push(number::count(of.rates.censored as f64));
    row.push(trials(of));
    row
}

/// The percentiles of all samples together, each with its interval within the
/// run (L-14); `None` for bulk.
pub(crate) fn percentiles(summary: &Summary, section: &Section) -> Option<Table> {
    if summary.treatments[section.baseline].is_bulk() {
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

fn bulk_row(of: &TreatmentSummary) -> Vec<String> {
    let packets = &of.packets;
    let mut row = vec![
        label(of),
        spread(of.rates.throughput_bits_per_second, number::bit_rate),
        or_none(of.rates.loss_share.map(number::percent)),
    ];
    row.extend(costs(of));
    let cost = of.cost.as_ref();
    let busiest = cost.and_then(|cost| cost.busiest_cpu_softirq_share);
    row.push(or_none(busiest.map(number::percent)));
    row.push(or_none(packets.mean_size_bytes.map(number::bytes)));
    row.push(or_none(packets.per_second.map(number::count)));
    row.push(number::count(packets.dropped as f64));
    row.push(number::count(packets.squeezed as f64));
    row.push(number::count(packets.retransmitted as f64));
    row.push(trials(of));
    row
}

/// The whole cost, and the parts of both processes.
fn costs(of: &TreatmentSummary) -> [String; 3] {
    let Some(cost) = &of.cost else {
        return [(); 3].map(|()| number::NONE.to_owned());
    };
    let unit = match cost.per {
        PerUnit::Request => Unit::Nanoseconds,
        PerUnit::Byte => Unit::NanosecondsPerByte,
    };
    let text = |value| describe::in_unit(unit, value);
    [
        spread(Some(cost.total), text),
        or_none(cost.client_process.map(text)),
        or_none(cost.server_process.map(text)),
    ]
}

/// Every comparison of a section's treatments.
pub(crate) fn comparisons(summary: &Summary, section: &Section) -> Table {
    let of_section = |one: &&Comparison| section.treatments.contains(&one.treatment);
    let mut rows: Vec<&Comparison> = summary.comparisons.iter().filter(of_section).collect();
    let workload = &summary.treatments[section.baseline].treatment.workload;
    let metrics = metrics_of(workload);
    rows.sort_by_key(|one| {
        let metric = metrics.iter().position(|(metric, _)| *metric == one.metric);
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
            "p after Holm",
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
    let treatment = &summary.treatments[one.treatment];
    let workload = &treatment.treatment.workload;
    let interval = one.effect.and_then(|effect| effect.interval);
    let exploratory = if one.is_primary { "" } else { " (exploratory)" };
    vec![
        label(treatment),
        label(&summary.treatments[one.baseline]),
        format!("{}{exploratory}", one.metric.words()),
        or_none(
            one.effect
                .map(|effect| number::signed_percent(effect.ratio_minus_one)),
        ),
        or_none(interval.map(|one| number::percent_interval(one.low, one.high))),
        or_none(
            one.difference
                .map(|value| signed(value, describe::value(one.metric, workload, value))),
        ),
        one.verdict.map_or_else(
            || "too few blocks".to_owned(),
            |verdict| verdict.to_string(),
        ),
        or_none(one.adjusted_p.map(|p| format!("{p:.4}"))),
        or_none(one.smallest_effect.map(number::percent)),
        pairs(one),
    ]
}

/// Blocks that were paired, and those that could not be.
fn pairs(one: &Comparison) -> String {
    let pairs = one.effect.map_or(0, |effect| effect.pairs);
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
