//! A run as CSV in long form: a row for each treatment and metric.

use plumbline_experiment::FACTORS;
use plumbline_stats::order::MedianOfRuns;
use plumbline_stats::verdict::Verdict;

use crate::analysis::{Metric, Quantity, Summary, TreatmentSummary};
use crate::latency::LatencySummary;
use crate::number;

/// Names of the columns; the factors of the scene stand between the first two
/// and the rest.
fn head() -> String {
    let scene: Vec<&str> = FACTORS.iter().map(|factor| factor.name).collect();
    format!(
        "treatment,workload,{},metric,value,low,high,baseline,change,change_low,change_high,\
         verdict,smallest_effect,builds,damaged_lines",
        scene.join(",")
    )
}

/// One metric of one treatment. `value` has the unit that the name ends in;
/// low and high bound it at 95 %.
struct Row {
    metric: String,
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    compared: Option<&'static Metric>,
}

/// The figures of one run; what is not known is empty (RFC 4180, CRLF).
pub fn render(summary: &Summary) -> String {
    let mut out = head() + "\r\n";
    for treatment in &summary.treatments {
        for row in rows(treatment) {
            out += &line(summary, treatment, &row);
        }
    }
    out
}

fn rows(of: &TreatmentSummary) -> Vec<Row> {
    let mut rows: Vec<Row> = of
        .metrics
        .iter()
        .filter(|one| one.metric.quantity != Quantity::Processes || one.over_trials.is_some())
        .map(|one| spread(one.metric.key, one.over_trials, Some(one.metric)))
        .collect();
    if let Some(latency) = &of.latency {
        rows.extend(percentiles("latency", &latency.figures));
        rows.extend(percentiles("service_time", &latency.service_time));
        rows.extend(percentiles("send_lag", &latency.send_lag));
    }
    if let Some(rates) = &of.rates {
        let (offered, achieved) = (
            rates.offered_requests_per_second,
            rates.achieved_requests_per_second,
        );
        rows.push(single("offered_requests_per_second", offered));
        rows.push(spread("achieved_requests_per_second", achieved, None));
        rows.push(single("loss_share", rates.loss_share));
        rows.push(single("errors", Some(rates.errors as f64)));
        rows.push(single("unanswered", Some(rates.censored as f64)));
    }
    if let Some(neighbour) = &of.neighbour {
        let metric = format!("neighbour_{}_per_second", neighbour.unit());
        rows.push(spread(&metric, Some(neighbour.per_second), None));
        rows.push(spread("neighbour_cpus", Some(neighbour.cpus), None));
    }
    let rest = [
        ("mean_packet_size_bytes", of.packets.mean_size_bytes),
        ("mean_sent_packet_size_bytes", of.packets.mean_sent_bytes),
        (
            "mean_received_packet_size_bytes",
            of.packets.mean_received_bytes,
        ),
        ("tcp_timeouts", Some(of.packets.timeouts as f64)),
        ("packets_per_second", of.packets.per_second),
        ("trials_kept", Some(of.account.kept as f64)),
        ("trials_repeated", Some(of.account.repeated as f64)),
        ("trials_failed", Some(of.account.failed as f64)),
    ];
    rows.extend(rest.map(|(metric, value)| single(metric, value)));
    rows
}

/// The pooled figures, named `latency_p99.9_ns`.
fn percentiles(of: &str, figures: &LatencySummary) -> Vec<Row> {
    let mut rows: Vec<Row> = figures
        .percentiles()
        .into_iter()
        .map(|(quantile, value)| {
            let name = number::percentile_name(quantile);
            single(&format!("{of}_{name}_ns"), value.map(|ns| ns as f64))
        })
        .collect();
    rows.push(single(
        &format!("{of}_max_ns"),
        figures.max.map(|ns| ns as f64),
    ));
    rows.push(single(&format!("{of}_mean_ns"), figures.mean));
    rows
}

fn single(metric: &str, value: Option<f64>) -> Row {
    Row {
        metric: metric.to_owned(),
        value,
        low: None,
        high: None,
        compared: None,
    }
}

fn spread(metric: &str, runs: Option<MedianOfRuns>, compared: Option<&'static Metric>) -> Row {
    let interval = runs.and_then(|runs| runs.interval);
    Row {
        low: interval.map(|one| one.low),
        high: interval.map(|one| one.high),
        compared,
        ..single(metric, runs.map(|runs| runs.median))
    }
}

fn line(summary: &Summary, of: &TreatmentSummary, row: &Row) -> String {
    let comparison = row
        .compared
        .and_then(|metric| summary.comparison(of.id(), metric.name()));
    let effect = comparison.and_then(|one| one.effect);
    let interval = effect.and_then(|effect| effect.interval);
    let baseline = comparison.map(|one| &summary.treatments[one.baseline].treatment.label);
    let verdict = comparison.map(|one| {
        one.effect
            .and_then(|it| it.verdict)
            .unwrap_or(Verdict::Undecided)
    });
    let treatment = &of.treatment;
    let levels = FACTORS
        .iter()
        .map(|factor| (factor.level)(&treatment.scene));
    let scene: Vec<String> = levels.map(|level| text(&level)).collect();
    let cells = [
        text(&treatment.label),
        text(treatment.task.name()),
        scene.join(","),
        text(&row.metric),
        figure(row.value),
        figure(row.low),
        figure(row.high),
        baseline.map(|label| text(label)).unwrap_or_default(),
        figure(effect.map(|effect| effect.ratio_minus_one)),
        figure(interval.map(|one| one.low)),
        figure(interval.map(|one| one.high)),
        verdict.map(|one| one.to_string()).unwrap_or_default(),
        figure(effect.and_then(|one| one.smallest)),
        summary.builds.to_string(),
        summary.damaged_lines.to_string(),
    ];
    format!("{}\r\n", cells.join(","))
}

fn figure(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// A text cell. One that a spreadsheet would run as a formula gets an
/// apostrophe before it (S-8).
fn text(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if is_formula {
        format!("'{text}")
    } else {
        text.to_owned()
    };
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}
