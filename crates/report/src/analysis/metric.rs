//! What one metric is: a row of the [`REGISTRY`](super::REGISTRY).

use plumbline_experiment::Task;
use plumbline_experiment::metric::DeclaredMetric;
use plumbline_record::Observation;
use plumbline_stats::verdict::Direction;

use serde::{Serialize, Serializer};

use super::unit::Unit;
use crate::latency::Support;

/// One number for each trial, on which treatments are compared. Every format asks
/// the row; none of them knows a metric by name.
#[derive(Debug)]
pub struct Metric {
    /// Its name in files, and for which workloads it counts.
    pub declared: &'static DeclaredMetric,
    /// The name in sentences, charts and tables of comparisons.
    pub words: &'static str,
    /// The name of its row in CSV, which ends in its unit, and of its key in JSON.
    pub key: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// Which way it should go.
    pub direction: Direction,
    /// Among which figures it stands.
    pub quantity: Quantity,
    /// The number of one trial.
    pub value: Value,
    /// The largest difference that does not matter in practice, as a fraction (D9).
    pub margin: f64,
    /// What limits how exactly it can be known.
    pub resolution: Resolution,
    /// A value in a sentence, with `{}` for the number and its unit.
    pub phrase: &'static str,
    /// A value above the baseline's in a sentence, with `{}` for the change.
    pub more: &'static str,
    /// A value below it.
    pub less: &'static str,
    /// The heading of its column where there is room.
    pub heading: &'static str,
    /// The heading of its column in the terminal.
    pub title: &'static str,
}

/// The figures among which a metric stands in tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// How long an answer took.
    Latency,
    /// How much was carried.
    Throughput,
    /// How much did not arrive.
    Loss,
    /// What the CPUs paid for it.
    Cpu,
    /// How long an event took that is no request: a change until it acted, a pod until its
    /// network was up.
    Event,
    /// What the processes that do the work paid for it, which earlier builds did not
    /// record.
    Processes,
}

/// How the number of a trial is found.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// The median latency, which any sample gives.
    Median,
    /// The latency at a quantile that takes many samples: each trial has to carry
    /// it before a median over trials is shown (D4).
    Tail(f64),
    /// Something else; `None` when nothing was measured.
    Of(fn(&Task, &Observation) -> Option<f64>),
    /// A length of time that may be none, and the least that a trial can tell from none: ratios
    /// are made of no less, for none has no ratio.
    MayBeNone {
        /// What was measured.
        of: fn(&Observation) -> Option<f64>,
        /// The least.
        least: fn(&Observation) -> Option<f64>,
    },
}

/// How finely a metric can be resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// More finely than it needs to be.
    Fine,
    /// By the clock and the histogram: differences near their steps do not matter.
    Clock,
    /// By the kernel's accounting of CPU time: no interval is narrower than its
    /// rounding.
    CpuAccounting,
}

impl Metric {
    /// The name in files: `p50`, `p99`, `cpu_per_request`, …
    pub fn name(&self) -> &'static str {
        self.declared.name
    }

    /// The number of one trial; `None` when nothing was measured.
    pub(crate) fn of_trial(&self, task: &Task, observation: &Observation) -> Option<f64> {
        let load = observation.load().map(|seen| &seen.load);
        let load = load.filter(|load| !load.latency.is_empty());
        // Errors are later than all that was answered (L-3).
        let at = |quantile: f64| {
            let load = load?;
            Some(Support::of_load(load).value_at(&load.latency, quantile) as f64)
        };
        match self.value {
            Value::Median => at(0.5),
            Value::Tail(quantile) => at(quantile),
            Value::Of(value) => value(task, observation),
            Value::MayBeNone { of, .. } => of(observation),
        }
    }

    /// The least that a trial can tell from none; 0 where any number has a ratio.
    pub(crate) fn least(&self, observation: &Observation) -> f64 {
        match self.value {
            Value::MayBeNone { least, .. } => least(observation).unwrap_or_default(),
            Value::Median | Value::Tail(_) | Value::Of(_) => 0.0,
        }
    }

    /// The quantile that its samples have to carry, if it is a tail.
    pub(crate) fn tail(&self) -> Option<f64> {
        match self.value {
            Value::Tail(quantile) => Some(quantile),
            Value::Median | Value::Of(_) | Value::MayBeNone { .. } => None,
        }
    }
}

/// Its name in files.
impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The same row. Workloads that have no row in common may share a name.
impl PartialEq for Metric {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Metric {}
