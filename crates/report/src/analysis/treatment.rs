//! What one treatment showed by itself.

use plumbline_experiment::{Treatment, TreatmentId};
use plumbline_record::{NodeRules, Observation, Spans, Trial};
use plumbline_stats::order::MedianOfRuns;

use super::ledger::Ledger;
use super::measured::{Measured, Outlier, TrialValue};
use super::metric::{Metric, Quantity};
use super::neighbour::{self, Neighbour};
use super::registry::metrics_of;
use super::{Account, Cost, Latency, LaunchSummary, Packets, Rates, SurviveSummary};

/// What one treatment showed by itself, over its valid trials.
#[derive(Clone, Debug)]
pub struct TreatmentSummary {
    /// What was run. Its baseline is another treatment of the plan; where a
    /// file from elsewhere says otherwise, it counts as having none.
    pub treatment: Treatment,
    /// Latencies; `None` for bulk, which has no answers, and without a valid trial.
    pub latency: Option<Latency>,
    /// How much was carried; `None` of what is no load.
    pub rates: Option<Rates>,
    /// What the CPUs paid; `None` when it was not measured.
    pub cost: Option<Cost>,
    /// What its neighbours did; `None` without any.
    pub neighbour: Option<Neighbour>,
    /// Where a sample of the requests spent their time, all trials together;
    /// `None` where none was stamped (L-17).
    pub spans: Option<Spans>,
    /// What pods showed; `None` where none were launched.
    pub launch: Option<LaunchSummary>,
    /// What traffic survived; `None` where no command was run.
    pub survive: Option<SurviveSummary>,
    /// What the devices saw.
    pub packets: Packets,
    /// What stood on each node in its last trial; empty where nothing was laid there.
    pub rules: Vec<NodeRules>,
    /// What became of its trials; `missing` is not counted here.
    pub account: Account,
    /// What it is compared on, a row for each metric of its workload.
    pub metrics: Vec<Measured>,
    /// Values far from the rest of the treatment (C-12): flagged, and still used.
    pub outliers: Vec<Outlier>,
}

/// Whether the build that made a run recorded what a metric is made of.
pub(super) fn is_recorded(metric: &Metric, treatments: &[TreatmentSummary]) -> bool {
    let has_value = |one: &TreatmentSummary| one.over_trials(metric.name()).is_some();
    metric.quantity != Quantity::Processes || treatments.iter().any(has_value)
}

impl TreatmentSummary {
    pub(crate) fn new(treatment: &Treatment, ledger: &Ledger<'_>) -> Self {
        let task = &treatment.task;
        let trials: Vec<(&Trial, &Observation)> = ledger
            .kept(treatment.id)
            .map(|(_, trial, observation)| (trial, observation))
            .collect();
        let kept: Vec<&Observation> = trials.iter().map(|&(_, observation)| observation).collect();
        let measured = |(metric, _)| Measured::new(metric, task, treatment.id, ledger);
        let metrics: Vec<Measured> = metrics_of(task).map(measured).collect();
        Self {
            latency: (!task.traffic().is_bulk())
                .then(|| Latency::new(&trials))
                .flatten(),
            rates: Rates::new(task, &kept),
            cost: Cost::new(task, &kept),
            neighbour: Neighbour::new(neighbour::likeness(treatment), &kept),
            spans: spans(&kept),
            launch: LaunchSummary::new(&trials),
            survive: SurviveSummary::new(&trials),
            packets: Packets::new(task, &kept),
            rules: kept
                .last()
                .map_or_else(Vec::new, |it| it.common.rules.clone()),
            account: Account::of_treatment(treatment.id, ledger),
            outliers: metrics.iter().flat_map(Measured::outliers).collect(),
            metrics,
            treatment: treatment.clone(),
        }
    }

    /// Position in the plan.
    pub fn id(&self) -> TreatmentId {
        self.treatment.id
    }

    /// Whether its load moves bytes rather than asks for answers.
    pub fn is_bulk(&self) -> bool {
        self.treatment.task.traffic().is_bulk()
    }

    /// Whether any trial of it counts.
    pub fn has_data(&self) -> bool {
        self.account.kept > 0
    }

    /// What it showed of the metric of a name; `None` when its workload is not
    /// compared on that.
    pub fn measured(&self, name: &str) -> Option<&Measured> {
        self.metrics.iter().find(|one| one.metric.name() == name)
    }

    /// Whether the samples of all trials carry a metric, so that it may be compared (D4).
    pub(crate) fn shows(&self, metric: &Metric) -> bool {
        let pooled = |tail| self.latency.as_ref().and_then(|one| one.pooled_at(tail));
        metric.tail().is_none_or(|tail| pooled(tail).is_some())
    }

    /// The numbers of one metric by rising block; empty when it has none.
    pub fn values_of(&self, name: &str) -> &[TrialValue] {
        self.measured(name).map_or(&[], |one| &one.values)
    }

    /// The median of the numbers that ratios are made of, also where it is not shown.
    pub(crate) fn median_of(&self, metric: &Metric) -> Option<f64> {
        let median = self
            .measured(metric.name())?
            .median(TrialValue::in_ratios)?;
        (median > 0.0).then_some(median)
    }

    /// The median over trials of one metric; `None` where there is none to show.
    pub fn over_trials(&self, name: &str) -> Option<MedianOfRuns> {
        self.measured(name)?.over_trials
    }
}

/// The samples of all trials as one.
fn spans(kept: &[&Observation]) -> Option<Spans> {
    let mut samples = kept
        .iter()
        .filter_map(|one| one.load()?.load.spans.as_deref());
    let mut all = samples.next()?.clone();
    samples.for_each(|one| all.merge(one));
    Some(all)
}
