//! What one treatment showed by itself.

use plumbline_experiment::{Treatment, TreatmentId};
use plumbline_record::{Histogram, Observation};
use plumbline_stats::order::{MedianOfRuns, median_of_runs};
use plumbline_stats::outlier;

use super::ledger::Ledger;
use super::metric::{is_bulk, metrics_of};
use super::{Account, Cost, LEVEL, Metric, Packets, Rates};
use crate::latency::{LatencySummary, Support, share};

/// Fewer values than this have no rest to be far from.
const LEAST_FOR_OUTLIERS: usize = 6;

/// What one treatment showed by itself, over its valid trials.
#[derive(Clone, Debug)]
pub struct TreatmentSummary {
    /// What was run. Its baseline is in the plan and another treatment; in a
    /// file of others that says otherwise it is taken for none.
    pub treatment: Treatment,
    /// Latencies; `None` for bulk, which has no answers, and without a valid trial.
    pub latency: Option<Latency>,
    /// How much was carried.
    pub rates: Rates,
    /// What the CPUs paid; `None` when it was not measured.
    pub cost: Option<Cost>,
    /// What the devices saw.
    pub packets: Packets,
    /// What became of its trials; `missing` is not counted here.
    pub account: Account,
    /// The numbers that comparisons use, by metric, then block.
    pub values: Vec<(Metric, Vec<TrialValue>)>,
    /// Values far from the rest of the treatment (C-12): flagged, and still used.
    pub outliers: Vec<Outlier>,
}

/// Latencies of a treatment, pooled over its trials for the curve and taken
/// trial by trial for every statement about it (L-15).
#[derive(Clone, Debug)]
pub struct Latency {
    /// Received − intended, pooled.
    pub pooled: Histogram,
    /// What the pooled samples carry.
    pub support: Support,
    /// Percentiles of the pooled latencies.
    pub figures: LatencySummary,
    /// Received − sent, pooled.
    pub service_time: LatencySummary,
    /// Sent − intended, pooled.
    pub send_lag: LatencySummary,
    /// Median over trials of each trial's median, nanoseconds.
    pub p50_over_trials: Option<MedianOfRuns>,
    /// Median over trials of each trial's 99th percentile, nanoseconds.
    pub p99_over_trials: Option<MedianOfRuns>,
    /// Whether each single trial has the samples for its own p99 (D4).
    pub every_trial_carries_p99: bool,
}

/// A metric's number of one trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialValue {
    /// Block of the trial.
    pub block: u32,
    /// The number, in the metric's unit.
    pub value: f64,
}

/// A value far from the rest of its treatment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlier {
    /// In which metric.
    pub metric: Metric,
    /// Block of the trial.
    pub block: u32,
    /// The number, in the metric's unit.
    pub value: f64,
}

impl TreatmentSummary {
    pub(crate) fn new(treatment: &Treatment, ledger: &Ledger<'_>) -> Self {
        let workload = &treatment.workload;
        let kept: Vec<&Observation> = ledger.kept(treatment.id).map(|(_, _, one)| one).collect();
        let values = values(treatment, ledger);
        Self {
            latency: (!is_bulk(workload))
                .then(|| Latency::new(&kept, &values))
                .flatten(),
            rates: Rates::new(workload, &kept),
            cost: Cost::new(workload, &kept),
            packets: Packets::new(&kept),
            account: Account::of_treatment(treatment.id, ledger),
            outliers: outliers(&values),
            values,
            treatment: treatment.clone(),
        }
    }

    /// Position in the plan.
    pub fn id(&self) -> TreatmentId {
        self.treatment.id
    }

    /// Whether its workload moves bytes rather than answers requests.
    pub fn is_bulk(&self) -> bool {
        is_bulk(&self.treatment.workload)
    }

    /// Whether any trial of it counts.
    pub fn has_data(&self) -> bool {
        self.account.kept > 0
    }

    /// The numbers of one metric by rising block; empty when it has none.
    pub fn values_of(&self, metric: Metric) -> &[TrialValue] {
        let found = self.values.iter().find(|(one, _)| *one == metric);
        found.map_or(&[], |(_, values)| values)
    }
}

impl Latency {
    fn new(kept: &[&Observation], values: &[(Metric, Vec<TrialValue>)]) -> Option<Self> {
        let mut pooled = Histogram::new();
        let mut service_time = Histogram::new();
        let mut send_lag = Histogram::new();
        let (mut effective_samples, mut censored) = (0.0, 0u64);
        let mut every_trial_carries_p99 = true;
        for observation in kept {
            let load = &observation.load;
            pooled.merge(&load.latency);
            service_time.merge(&load.service_time);
            send_lag.merge(&load.send_lag);
            let support = Support::of_load(load);
            effective_samples += support.effective_samples;
            every_trial_carries_p99 &= support.shows(0.99);
            censored = censored.saturating_add(load.censored);
        }
        let support = Support {
            effective_samples,
            censored_share: share(censored, pooled.len()),
            end: 1.0,
        };
        let over_trials = |metric| {
            let (_, values) = values.iter().find(|(one, _)| *one == metric)?;
            let values: Vec<f64> = values.iter().map(|one| one.value).collect();
            median_of_runs(&values, LEVEL)
        };
        (!pooled.is_empty()).then(|| Self {
            figures: LatencySummary::with_support(&pooled, support),
            service_time: LatencySummary::with_support(&service_time, support),
            send_lag: LatencySummary::new(&send_lag),
            p50_over_trials: over_trials(Metric::P50),
            p99_over_trials: over_trials(Metric::P99),
            every_trial_carries_p99,
            support,
            pooled,
        })
    }
}

fn values(treatment: &Treatment, ledger: &Ledger<'_>) -> Vec<(Metric, Vec<TrialValue>)> {
    let of_metric = |metric: Metric| {
        let value = |(block, _, observation)| {
            let value = metric.value(&treatment.workload, observation)?;
            Some(TrialValue { block, value })
        };
        (
            metric,
            ledger.kept(treatment.id).filter_map(value).collect(),
        )
    };
    metrics_of(&treatment.workload)
        .iter()
        .map(|&(metric, _)| of_metric(metric))
        .collect()
}

fn outliers(values: &[(Metric, Vec<TrialValue>)]) -> Vec<Outlier> {
    let mut outliers = Vec::new();
    for (metric, values) in values {
        if values.len() < LEAST_FOR_OUTLIERS {
            continue;
        }
        let numbers: Vec<f64> = values.iter().map(|one| one.value).collect();
        let scores = outlier::modified_z_scores(&numbers);
        for (one, score) in values.iter().zip(scores) {
            if score > outlier::THRESHOLD {
                outliers.push(Outlier {
                    metric: *metric,
                    block: one.block,
                    value: one.value,
                });
            }
        }
    }
    outliers
}
