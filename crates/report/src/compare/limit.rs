//! Overheads against the limits that an experiment states.

use plumbline_experiment::Plan;
use plumbline_stats::verdict::Direction;

use crate::analysis::{Comparison, Summary};

/// One limit on one treatment.
#[derive(Clone, Debug)]
pub struct LimitCheck {
    /// Position of the run among those compared.
    pub run: usize,
    /// Label of the treatment; empty when nothing is compared on the metric.
    pub label: String,
    /// Name of its workload.
    pub workload: String,
    /// Name of the metric as the experiment file has it.
    pub metric: String,
    /// The largest overhead allowed, as a fraction.
    pub limit: f64,
    /// The overhead found, as a fraction; of throughput, what was lost.
    pub overhead: Option<f64>,
    /// Its interval: low, high.
    pub interval: Option<(f64, f64)>,
    /// What follows.
    pub outcome: Outcome,
}

/// What follows from an overhead and its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The whole interval is within the limit.
    Held,
    /// The whole interval is beyond the limit.
    Broken,
    /// The interval holds the limit, or there is none: more blocks would tell.
    Undecided,
}

/// Checks every limit of a plan against every comparison on its metric. A limit
/// on what was never compared is undecided, so that it cannot pass unnoticed.
pub(super) fn check(run: usize, plan: &Plan, summary: &Summary) -> Vec<LimitCheck> {
    let mut checks = Vec::new();
    for (metric, &limit) in &plan.limits {
        let before = checks.len();
        let concerned = summary
            .comparisons
            .iter()
            .filter(|one| one.metric.name() == metric);
        checks.extend(concerned.map(|one| check_one(run, limit, summary, one)));
        if checks.len() == before {
            checks.push(LimitCheck {
                run,
                label: String::new(),
                workload: String::new(),
                metric: metric.clone(),
                limit,
                overhead: None,
                interval: None,
                outcome: Outcome::Undecided,
            });
        }
    }
    checks
}

fn check_one(run: usize, limit: f64, summary: &Summary, of: &Comparison) -> LimitCheck {
    let treatment = &summary.treatments[of.treatment].treatment;
    let effect = of.effect;
    let interval = effect.and_then(|effect| effect.interval);
    let (overhead, interval) = match of.metric.direction() {
        Direction::LowerIsBetter => (
            effect.map(|effect| effect.ratio_minus_one),
            interval.map(|one| (one.low, one.high)),
        ),
        Direction::HigherIsBetter => (
            effect.map(|effect| -effect.ratio_minus_one),
            interval.map(|one| (-one.high, -one.low)),
        ),
    };
    LimitCheck {
        run,
        label: treatment.label.clone(),
        workload: treatment.workload.name.clone(),
        metric: of.metric.name().to_owned(),
        limit,
        overhead,
        interval,
        outcome: match interval {
            Some((low, _)) if low > limit => Outcome::Broken,
            Some((_, high)) if high <= limit => Outcome::Held,
            _ => Outcome::Undecided,
        },
    }
}
