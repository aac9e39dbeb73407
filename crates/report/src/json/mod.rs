//! JSON that scripts can hold on to: units in the names, null for what is not
//! known, and a version that counts up when a key changes its meaning.

mod mesh;
mod object;
mod published;

use std::collections::BTreeMap;

use plumbline_experiment::{Arrival, Workload};
use plumbline_stats::order::MedianOfRuns;
use plumbline_stats::verdict::Verdict;

use object::{
    Contexts, Costs, Factors, FloorNs, InOrder, Judged, Outlier, Packets, Rates, Report,
    SceneLevels, Spread, Treatment, Trials,
};

use crate::analysis::{Comparison, Latency, Metric, Quantity, REGISTRY, Summary, TreatmentSummary};
use crate::latency::{LatencySummary, QUANTILES};
use crate::number;
use crate::sentence;
use crate::warning;

/// Version of the object; raised when a key changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 1;

/// The report of one run as JSON text.
pub fn render(summary: &Summary) -> String {
    let mut text =
        serde_json::to_string_pretty(&report(summary)).expect("numbers and texts are JSON");
    text.push('\n');
    text
}

/// The same as a value, for callers that put it into a larger object.
pub fn value(summary: &Summary) -> serde_json::Value {
    serde_json::to_value(report(summary)).expect("numbers and texts are JSON")
}

fn report(summary: &Summary) -> Report<'_> {
    let answers = sentence::sentences(summary);
    Report {
        schema_version: SCHEMA_VERSION,
        experiment: &summary.experiment,
        question: &summary.question,
        started: &summary.started,
        target: &summary.target,
        link: summary.link,
        builds: summary.builds,
        cut_off: summary.is_cut_off(),
        floor_ns: summary.floor.map(|floor| FloorNs {
            p50: floor.p50_ns,
            p99: floor.p99_ns,
        }),
        maxima: &summary.maxima,
        answers: answers
            .iter()
            .map(|one| number::plain(&one.to_string()))
            .collect(),
        set_ups: crate::set_up::json(summary),
        treatments: summary
            .treatments
            .iter()
            .map(|one| treatment(summary, one))
            .collect(),
        comparisons: summary
            .comparisons
            .iter()
            .map(|one| judged(summary, one))
            .collect(),
        mesh: summary.mesh.as_ref().map(|one| mesh::mesh(summary, one)),
        published: summary.beside.as_ref().map(published::published),
        trials: trials(&summary.account, true),
        warnings: warnings(summary, |concerned| concerned.is_empty()),
    }
}

fn treatment<'a>(summary: &Summary, of: &'a TreatmentSummary) -> Treatment<'a> {
    let latency = of.latency.as_ref();
    let figures = |choose: fn(&Latency) -> LatencySummary| latency.map(choose).unwrap_or_default();
    Treatment {
        label: &of.treatment.label,
        factors: factors(&of.treatment),
        latency_ns: figures(|one| one.figures),
        latency_interval_ns: intervals(latency),
        service_time_ns: figures(|one| one.service_time),
        send_lag_ns: figures(|one| one.send_lag),
        spans: of.spans.as_ref().map(crate::spans::json),
        latency_over_trials_ns: over_trials(of, Quantity::Latency, Metric::name),
        rates: rates(&of.rates),
        costs: costs(of),
        packets: Packets {
            device: of.packets.device.as_deref(),
            per_second: of.packets.per_second,
            mean_size_bytes: of.packets.mean_size_bytes,
            dropped: of.packets.dropped,
            squeezed: of.packets.squeezed,
            retransmitted: of.packets.retransmitted,
            buffer_errors: of.packets.buffer_errors,
            checksum_errors: of.packets.checksum_errors,
        },
        trials: trials(&of.account, false),
        outliers: of.outliers.iter().map(outlier).collect(),
        warnings: warnings(summary, |concerned| concerned.contains(&of.id())),
    }
}

/// The median over trials of every metric among certain figures; null for those
/// that the treatment has none of.
fn over_trials(
    of: &TreatmentSummary,
    quantity: Quantity,
    key: fn(&Metric) -> &'static str,
) -> InOrder {
    let metrics = REGISTRY.iter().filter(|metric| metric.quantity == quantity);
    let measured = |metric| of.metrics.iter().find(|one| one.metric == metric);
    InOrder(
        metrics
            .map(|metric| {
                (
                    key(metric),
                    measured(metric).and_then(|one| one.over_trials),
                )
            })
            .map(|(key, runs)| (key, runs.map(spread)))
            .collect(),
    )
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

fn factors(treatment: &plumbline_experiment::Treatment) -> Factors<'_> {
    let workload = &treatment.workload;
    Factors {
        scene: SceneLevels(&treatment.scene),
        workload: &workload.name,
        kind: workload.kind,
        protocol: workload.protocol,
        arrival: arrival(workload),
        connections: workload.connections,
        request_size_bytes: workload.request_size,
        response_size_bytes: workload.response_size,
        keep_alive: workload.keep_alive,
    }
}

fn arrival(workload: &Workload) -> &'static str {
    match workload.arrival {
        Arrival::Constant { .. } => "constant",
        Arrival::Poisson { .. } => "poisson",
        Arrival::Closed => "closed",
    }
}

fn rates(rates: &crate::analysis::Rates) -> Rates {
    Rates {
        offered_requests_per_second: rates.offered_requests_per_second,
        achieved_requests_per_second: rates.achieved_requests_per_second.map(spread),
        throughput_bits_per_second: rates.throughput_bits_per_second.map(spread),
        loss_share: rates.loss_share,
        planned: rates.planned,
        completed: rates.completed,
        errors: rates.errors,
        unanswered: rates.censored,
    }
}

fn costs(of: &TreatmentSummary) -> Costs {
    let totals = over_trials(of, Quantity::Cpu, |metric| metric.key);
    let Some(cost) = &of.cost else {
        return Costs {
            totals,
            ..Costs::default()
        };
    };
    Costs {
        totals,
        by_context: cost.by_context.map(|split| Contexts {
            user_ns: split.user,
            system_ns: split.system,
            softirq_ns: split.softirq,
            irq_ns: split.irq,
        }),
        client_process_ns: cost.client_process,
        server_process_ns: cost.server_process,
        polling_cpus: cost.polling_cpus,
        busiest_cpu_softirq_share: cost.busiest_cpu_softirq_share,
    }
}

fn trials(account: &crate::analysis::Account, is_whole_run: bool) -> Trials {
    Trials {
        kept: account.kept,
        repeated: account.repeated,
        failed: account.failed,
        missing: is_whole_run.then_some(account.missing),
        reasons: account
            .failures
            .iter()
            .map(|failure| (failure.reason.clone(), failure.trials))
            .collect(),
    }
}

fn outlier(outlier: &crate::analysis::Outlier) -> Outlier {
    Outlier {
        metric: outlier.metric.name(),
        block: outlier.block,
        value: outlier.value,
    }
}

fn judged<'a>(summary: &'a Summary, comparison: &Comparison) -> Judged<'a> {
    let treatment = &summary.treatments[comparison.treatment].treatment;
    let interval = comparison.effect.and_then(|effect| effect.interval);
    Judged {
        treatment: &treatment.label,
        baseline: &summary.treatments[comparison.baseline].treatment.label,
        workload: &treatment.workload.name,
        metric: comparison.metric.name(),
        primary: comparison.is_primary,
        effect: comparison.effect.map(|effect| effect.ratio_minus_one),
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        level: interval.map(|interval| interval.level),
        difference: comparison.difference,
        difference_unit: comparison.metric.unit.name(),
        adjusted_p: comparison.adjusted_p,
        // Too few blocks leave it as open as too much noise does (D10).
        verdict: comparison
            .verdict
            .unwrap_or(Verdict::Inconclusive)
            .to_string(),
        smallest_effect: comparison.smallest_effect,
        margin: comparison.margin,
        resolution: comparison.resolution,
        pairs: comparison.effect.map_or(0, |effect| effect.pairs),
        pairs_left_out: comparison.pairs_left_out,
        blocks_needed: comparison.blocks_needed,
    }
}

fn spread(runs: MedianOfRuns) -> Spread {
    Spread {
        median: runs.median,
        low: runs.interval.map(|interval| interval.low),
        high: runs.interval.map(|interval| interval.high),
        level: runs.interval.map(|interval| interval.level),
    }
}

fn warnings(summary: &Summary, concerns: impl Fn(&[usize]) -> bool) -> Vec<String> {
    let chosen = summary
        .notices
        .iter()
        .filter(|notice| concerns(&notice.treatments));
    chosen
        .map(|notice| warning::text(&notice.warning))
        .collect()
}
