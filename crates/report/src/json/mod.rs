//! JSON that scripts can hold on to: units in the names, null for what is not
//! known, and a version that counts up when a key changes its meaning.

// In `object!` each key has a type of its own.
#![allow(non_camel_case_types)]

mod laws;
mod mesh;
mod published;

use std::collections::BTreeMap;

use plumbline_experiment::{Arrival, FACTORS, Factor, Scene, Workload};
use plumbline_stats::verdict::Verdict;
use serde::Serialize;
use serde_json::Value;

use crate::analysis::{
    Account, Comparison, Effect, Latency, Measured, Metric, Quantity, REGISTRY, Summary,
    TreatmentSummary,
};
use crate::latency::{LatencySummary, QUANTILES};
use crate::launch;
use crate::number;
use crate::object::{InOrder, object};
use crate::sentence;
use crate::spread::Spread;
use crate::survive;
use crate::warning;

/// Version of the object; raised when a key changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 2;

/// The report of one run as JSON text.
pub fn render(summary: &Summary) -> String {
    text(&report(summary))
}

pub(crate) fn text(object: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(object).expect("numbers and texts are JSON");
    text.push('\n');
    text
}

/// Copies of baselines against these.
fn controls(summary: &Summary) -> Vec<impl Serialize> {
    let control = |one: &Comparison| {
        let baseline = &summary.treatments[one.baseline].treatment;
        let interval = one.effect.and_then(|effect| effect.interval);
        object! {
            baseline: baseline.label.clone(),
            workload: baseline.task.name().to_owned(),
            metric: one.metric.name(),
            change_low: interval.map(|it| it.low),
            change_high: interval.map(|it| it.high),
        }
    };
    summary.controls.iter().map(control).collect()
}

pub(crate) fn report(summary: &Summary) -> impl Serialize {
    let answers = sentence::sentences(summary);
    let answers = answers.iter().map(|one| number::plain(&one.to_string()));
    let treatments = summary.treatments.iter();
    let comparisons = summary.comparisons.iter();
    let set_ups = &summary.set_ups;
    object! {
        schema_version: SCHEMA_VERSION,
        experiment: &summary.experiment,
        question: &summary.question,
        started: &summary.started,
        target: &summary.target,
        // Only of a run in Kubernetes.
        #[serde(flatten)]
        clusters: (!summary.clusters.is_empty()).then(|| object! { clusters: &summary.clusters }),
        link: summary.link,
        builds: summary.builds,
        cut_off: summary.is_cut_off(),
        floor_ns: summary.floor.map(|floor| object! { p50: floor.p50_ns, p99: floor.p99_ns }),
        maxima: &summary.maxima,
        answer: crate::answer::answer(summary).map(|one| number::plain(&one)),
        answers: answers.collect::<Vec<_>>(),
        // Only where places were brought up for the run.
        #[serde(flatten)]
        set_ups: (!set_ups.is_empty()).then(|| object! { set_ups: set_ups }),
        treatments: treatments.map(|one| treatment(summary, one)).collect::<Vec<_>>(),
        comparisons: comparisons.map(|one| judged(summary, one)).collect::<Vec<_>>(),
        // Only where the plan has them.
        #[serde(flatten)]
        controls: (!summary.controls.is_empty()).then(|| object! { controls: controls(summary) }),
        #[serde(flatten)]
        precision: summary.precision.as_ref().map(|one| object! { precision: object! {
            asked: one.asked,
            reached: one.is_reached(),
            widest: Some(one.widest()).filter(|it| it.is_finite()),
            beyond_meter: one.beyond_meter,
        } }),
        // Only where a factor has three levels that are numbers.
        #[serde(flatten)]
        laws: (!summary.laws.is_empty()).then(|| object! {
            laws: summary.laws.iter().map(|one| laws::law(summary, one)).collect::<Vec<_>>(),
        }),
        mesh: summary.mesh.as_ref().map(|one| mesh::mesh(summary, one)),
        published: summary.beside.as_ref().map(published::published),
        trials: trials(&summary.account, Some(summary.account.missing)),
        warnings: warnings(summary, |concerned| concerned.is_empty()),
    }
}

fn treatment<'a>(summary: &Summary, of: &'a TreatmentSummary) -> impl Serialize + use<'a> {
    let latency = of.latency.as_ref();
    let figures = |choose: fn(&Latency) -> LatencySummary| latency.map(choose).unwrap_or_default();
    let spans = of.spans.as_ref().map(crate::spans::json);
    object! {
        label: &of.treatment.label,
        factors: factors(&of.treatment),
        latency_ns: figures(|one| one.figures),
        latency_interval_ns: intervals(latency),
        service_time_ns: figures(|one| one.service_time),
        send_lag_ns: figures(|one| one.send_lag),
        #[serde(flatten)]
        spans: spans.map(|spans| object! { spans: spans }),
        latency_over_trials_ns: over_trials(of, Quantity::Latency, Metric::name),
        // Only of a change.
        #[serde(flatten)]
        programming: programming(of).map(|one| object! { programming: one }),
        // Only where pods were launched.
        #[serde(flatten)]
        launch: of.launch.as_ref().map(|one| object! { launch: launch::json(one) }),
        // Only where a command was run.
        #[serde(flatten)]
        survive: of.survive.as_ref().map(|one| object! { survive: survive::json(one) }),
        rates: &of.rates,
        costs: costs(of),
        // Only beside neighbours.
        #[serde(flatten)]
        neighbour: of.neighbour.map(|one| object! {
            neighbour: object! {
                unit: one.unit(),
                per_second: Spread(Some(one.per_second)),
                cpus: Spread(Some(one.cpus)),
            },
        }),
        packets: &of.packets,
        // Only where some were laid on the nodes.
        #[serde(flatten)]
        rules: (!of.rules.is_empty()).then(|| object! { rules: &of.rules }),
        trials: trials(&of.account, None),
        outliers: &of.outliers,
        warnings: warnings(summary, |concerned| concerned.contains(&of.id())),
    }
}

/// The median over trials of every metric among certain figures; null for those
/// that the treatment has none of.
fn over_trials(
    of: &TreatmentSummary,
    quantity: Quantity,
    key: fn(&Metric) -> &'static str,
) -> impl Serialize + use<> {
    let metrics = REGISTRY.iter().filter(|metric| metric.quantity == quantity);
    let measured = |metric| of.metrics.iter().find(|one| one.metric == metric);
    let runs = |metric| Spread(measured(metric).and_then(|one| one.over_trials));
    InOrder(metrics.map(|metric| (key(metric), runs(metric))).collect())
}

/// How long a change took until it acted; `None` of another task.
fn programming(of: &TreatmentSummary) -> Option<impl Serialize + use<>> {
    of.treatment.task.programming()?;
    let measured = of.metrics.iter();
    let measured = measured.filter(|one| one.metric.quantity == Quantity::Event);
    let figures = |one: &Measured| {
        object! {
            over_trials: Spread(one.over_trials),
            p90: one.at(0.9),
            longest: one.at(1.0),
        }
    };
    let named = measured.map(|one| (one.metric.key, figures(one)));
    Some(InOrder(named.collect()))
}

/// Each percentile by name with its interval within the run.
fn intervals(latency: Option<&Latency>) -> BTreeMap<String, Option<(u64, u64)>> {
    let intervals = latency.map_or([None; QUANTILES.len()], |one| one.intervals);
    QUANTILES
        .into_iter()
        .map(number::percentile_name)
        .zip(intervals)
        .collect()
}

fn factors(treatment: &plumbline_experiment::Treatment) -> impl Serialize {
    let task = &treatment.task;
    object! {
        #[serde(flatten)]
        scene: levels(&treatment.scene),
        workload: task.name(),
        kind: task.kind().name(),
        #[serde(flatten)]
        load: task.load().map(|workload| object! {
            protocol: workload.protocol,
            arrival: arrival(workload),
            connections: workload.connections,
            request_size_bytes: workload.request_size,
            response_size_bytes: workload.response_size,
            keep_alive: workload.keep_alive,
            think_ns: workload.think_ns,
        }),
        #[serde(flatten)]
        programming: task.programming().map(|change| object! {
            object: change.object,
            change: change.change,
            rate_per_second: change.rate,
        }),
        #[serde(flatten)]
        launch: task.launch().map(|launch| object! {
            pods: launch.pods,
            pods_per_second: launch.rate,
        }),
        #[serde(flatten)]
        survive: task.survive().map(|survive| object! {
            during: &survive.during,
            connections: survive.connections,
            rate_per_second: survive.rate,
            policy: survive.policy,
            pods: survive.pods,
        }),
    }
}

/// The level of every factor of a scene: a number where it is one.
fn levels(scene: &Scene) -> InOrder<Value> {
    let level = |factor: &Factor| {
        let level = (factor.level)(scene);
        let number = level.parse::<u64>().map(Value::from);
        (factor.name, number.unwrap_or_else(|_| level.into()))
    };
    InOrder(FACTORS.iter().map(level).collect())
}

fn arrival(workload: &Workload) -> &'static str {
    match workload.arrival {
        Arrival::Constant { .. } => "constant",
        Arrival::Poisson { .. } => "poisson",
        Arrival::Closed => "closed",
    }
}

/// Nanoseconds per request, or per byte for bulk.
fn costs(of: &TreatmentSummary) -> impl Serialize + use<> {
    let cost = of.cost.as_ref();
    object! {
        #[serde(flatten)]
        totals: over_trials(of, Quantity::Cpu, |metric| metric.key),
        #[serde(flatten)]
        processes: over_trials(of, Quantity::Processes, |metric| metric.key),
        by_context: cost.and_then(|cost| cost.by_context),
        client_process_ns: cost.and_then(|cost| cost.client_process),
        server_process_ns: cost.and_then(|cost| cost.server_process),
        polling_cpus: cost.and_then(|cost| cost.polling_cpus),
        busiest_cpu_softirq_share: cost.and_then(|cost| cost.busiest_cpu_softirq_share),
    }
}

/// What became of trials; what is missing is known of the whole run only.
fn trials(account: &Account, missing: Option<usize>) -> impl Serialize {
    let failures = account.failures.iter();
    let reasons = failures.map(|failure| (failure.reason.as_str(), failure.trials));
    object! {
        kept: account.kept,
        repeated: account.repeated,
        failed: account.failed,
        #[serde(flatten)]
        missing: missing.map(|missing| object! { missing: missing }),
        reasons: reasons.collect::<BTreeMap<_, _>>(),
    }
}

fn judged<'a>(summary: &'a Summary, comparison: &Comparison) -> impl Serialize + use<'a> {
    let treatment = &summary.treatments[comparison.treatment].treatment;
    let of = comparison.effect;
    // Too few blocks leave it as open as too much noise does (D10).
    let verdict = of.and_then(|effect| effect.verdict);
    object! {
        treatment: &treatment.label,
        baseline: &summary.treatments[comparison.baseline].treatment.label,
        workload: treatment.task.name(),
        metric: comparison.metric,
        primary: comparison.is_primary,
        #[serde(flatten)]
        effect: effect(of, verdict.or(Some(Verdict::Undecided))),
        difference: comparison.difference,
        difference_unit: comparison.metric.unit.name(),
        margin: comparison.margin,
        resolution: comparison.resolution,
        pairs: of.map_or(0, |effect| effect.blocks),
        pairs_left_out: comparison.pairs_left_out,
        blocks_needed: of.map(|effect| effect.blocks_needed()),
    }
}

/// What blocks say, with the ends of the interval.
pub(crate) fn effect(of: Option<Effect>, verdict: Option<Verdict>) -> impl Serialize {
    let interval = of.and_then(|effect| effect.interval);
    object! {
        effect: of.map(|effect| effect.ratio_minus_one),
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        level: interval.map(|interval| interval.level),
        alone: of.and_then(|effect| effect.alone).map(|alone| object! {
            low: alone.low,
            high: alone.high,
        }),
        adjusted_p: of.map(|effect| effect.adjusted_p),
        verdict: verdict.map(|verdict| verdict.to_string()),
        smallest_effect: of.and_then(|effect| effect.smallest),
    }
}

fn warnings(summary: &Summary, concerns: impl Fn(&[usize]) -> bool) -> Vec<String> {
    let all = summary.notices.iter();
    let chosen = all.filter(|notice| concerns(&notice.treatments));
    chosen
        .map(|notice| warning::text(&notice.warning))
        .collect()
}
