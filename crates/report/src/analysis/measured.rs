//! The numbers of one metric, trial by trial.

use plumbline_experiment::{Task, TreatmentId};
use plumbline_record::{Observation, Trial};
use plumbline_stats::order::{MedianOfRuns, median_of_runs};
use plumbline_stats::outlier;

use serde::Serialize;

use super::LEVEL;
use super::latency::{TAIL, has_late_tail};
use super::ledger::Ledger;
use super::metric::Metric;
use crate::latency::Support;

/// Fewer values than this have no rest to be far from.
const LEAST_FOR_OUTLIERS: usize = 6;

/// What a treatment showed of one metric.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Which.
    pub metric: &'static Metric,
    /// The numbers that comparisons use, by rising block.
    pub values: Vec<TrialValue>,
    /// Their median with its order-statistic interval (L-15). `None` without a
    /// value, and where the trials' samples do not carry it (D4).
    pub over_trials: Option<MedianOfRuns>,
}

/// A metric's number of one trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialValue {
    /// Block of the trial.
    pub block: u32,
    /// The number, in the metric's unit.
    pub value: f64,
    /// The least that the trial can tell from none; 0 where any number has a ratio.
    pub least: f64,
}

impl TrialValue {
    /// The number that ratios are made of.
    pub(crate) fn in_ratios(&self) -> f64 {
        self.value.max(self.least)
    }
}

/// A value far from the rest of its treatment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outlier {
    /// In which metric.
    pub metric: &'static Metric,
    /// Block of the trial.
    pub block: u32,
    /// The number, in the metric's unit.
    pub value: f64,
}

impl Measured {
    pub(super) fn new(
        metric: &'static Metric,
        task: &Task,
        id: TreatmentId,
        ledger: &Ledger<'_>,
    ) -> Self {
        let value = |(block, trial, observation)| {
            if is_of_the_sender(metric, trial) {
                return None;
            }
            Some(TrialValue {
                block,
                value: metric.of_trial(task, observation)?,
                least: metric.least(observation),
            })
        };
        let values: Vec<TrialValue> = ledger.kept(id).filter_map(value).collect();
        let kept = ledger.kept(id).map(|(_, trial, seen)| (trial, seen));
        let numbers: Vec<f64> = values.iter().map(|one| one.value).collect();
        Self {
            metric,
            over_trials: is_carried(metric, kept)
                .then(|| median_of_runs(&numbers, LEVEL))
                .flatten(),
            values,
        }
    }

    /// The median of these of its numbers, also where it is not shown.
    pub(crate) fn median(&self, of: impl Fn(&TrialValue) -> f64) -> Option<f64> {
        let numbers = self.values.iter().map(of);
        let runs = median_of_runs(&numbers.collect::<Vec<_>>(), LEVEL)?;
        Some(runs.median)
    }

    /// The value that a share of the trials does not exceed: the smallest of which that is
    /// true. `None` without a value.
    pub fn at(&self, share: f64) -> Option<f64> {
        let mut numbers: Vec<f64> = self.values.iter().map(|one| one.value).collect();
        numbers.sort_unstable_by(f64::total_cmp);
        let rank = (share * numbers.len() as f64).ceil() as usize;
        numbers.get(rank.max(1) - 1).copied()
    }

    /// The values far from the rest (C-12).
    pub(super) fn outliers(&self) -> Vec<Outlier> {
        if self.values.len() < LEAST_FOR_OUTLIERS {
            return Vec::new();
        }
        let numbers: Vec<f64> = self.values.iter().map(|one| one.value).collect();
        let scores = outlier::modified_z_scores(&numbers);
        let far = self.values.iter().zip(scores);
        far.filter(|(_, score)| *score > outlier::THRESHOLD)
            .map(|(one, _)| Outlier {
                metric: self.metric,
                block: one.block,
                value: one.value,
            })
            .collect()
    }
}

/// Whether a trial's number is its sender's lateness.
fn is_of_the_sender(metric: &Metric, trial: &Trial) -> bool {
    metric.tail().is_some_and(|tail| tail >= TAIL) && has_late_tail(trial)
}

/// Whether each trial has the samples for a tail of its own (D4), and most senders
/// were in time there (L-2).
fn is_carried<'a>(
    metric: &Metric,
    kept: impl Iterator<Item = (&'a Trial, &'a Observation)>,
) -> bool {
    let Some(tail) = metric.tail() else {
        return true;
    };
    let (late, punctual): (Vec<_>, Vec<_>) =
        kept.partition(|(trial, _)| is_of_the_sender(metric, trial));
    late.len() <= punctual.len()
        && punctual
            .iter()
            .filter_map(|(_, seen)| seen.load())
            .all(|seen| Support::of_load(&seen.load).shows(tail))
}
