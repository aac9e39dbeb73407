//! What one treatment showed by itself.

use plumbline_experiment::{Treatment, TreatmentId};
use plumbline_record::{Observation, Spans, Trial};
use plumbline_stats::outlier;

use super::latency::has_late_tail;
use super::ledger::Ledger;
use super::metric::{is_bulk, metrics_of};
use super::{Account, Cost, Latency, Metric, Packets, Rates};

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
    /// Where a sample of the requests spent their time, all trials together;
    /// `None` where none was stamped (L-17).
    pub spans: Option<Spans>,
    /// What the devices saw.
    pub packets: Packets,
    /// What became of its trials; `missing` is not counted here.
    pub account: Account,
    /// The numbers that comparisons use, by metric, then block.
    pub values: Vec<(Metric, Vec<TrialValue>)>,
    /// Values far from the rest of the treatment (C-12): flagged, and still used.
    pub outliers: Vec<Outlier>,
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
        let trials: Vec<(&Trial, &Observation)> = ledger
            .kept(treatment.id)
            .map(|(_, trial, observation)| (trial, observation))
            .collect();
        let kept: Vec<&Observation> = trials.iter().map(|&(_, observation)| observation).collect();
        let values = values(treatment, ledger);
        Self {
            latency: (!is_bulk(workload))
                .then(|| Latency::new(&trials, &values))
                .flatten(),
            rates: Rates::new(workload, &kept),
            cost: Cost::new(workload, &kept),
            spans: spans(&kept),
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

/// The samples of all trials as one.
fn spans(kept: &[&Observation]) -> Option<Spans> {
    let mut samples = kept.iter().filter_map(|one| one.load.spans.as_deref());
    let mut all = samples.next()?.clone();
    samples.for_each(|one| all.merge(one));
    Some(all)
}

fn values(treatment: &Treatment, ledger: &Ledger<'_>) -> Vec<(Metric, Vec<TrialValue>)> {
    let of_metric = |metric: Metric| {
        let value = |(block, trial, observation)| {
            if metric == Metric::P99 && has_late_tail(trial) {
                return None;
            }
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
