//! What each further one of a factor costs.

use serde::Serialize;

use crate::analysis::{Law, LawCrossing, LawShape, Summary};
use crate::object::object;

/// One law of a run.
pub(super) fn law<'a>(summary: &'a Summary, of: &'a Law) -> impl Serialize + use<'a> {
    let all = &summary.laws;
    let label = |id: usize| &summary.treatments[id].treatment.label;
    let (slope, at_zero) = (of.line.per_level, of.line.at_zero);
    let at_zero_interval = Some(at_zero.alone).filter(|one| one.high.is_finite());
    let points = of.points.iter().map(|one| {
        object! {
            level: one.level,
            treatment: label(one.treatment),
            median: one.over_trials.map(|runs| runs.median),
        }
    });
    let shape = |shape| match shape {
        LawShape::Straight => "straight",
        LawShape::Bent => "bent",
        LawShape::Open => "open",
    };
    let crossing = |one: &LawCrossing| {
        object! {
            treatment: all[one.with].label.clone(),
            at: one.crossing.at,
            low: one.crossing.interval.low,
            high: one.crossing.interval.high,
        }
    };
    object! {
        factor: of.factor,
        treatment: &of.label,
        workload: &of.workload,
        metric: of.metric,
        primary: of.is_primary,
        unit: of.metric.unit.name(),
        per_level: slope.mean,
        low: of.interval.map(|one| one.low),
        high: of.interval.map(|one| one.high),
        level: of.interval.map(|one| one.level),
        verdict: of.verdict.map(|one| one.to_string()),
        at_zero: at_zero.mean,
        at_zero_low: at_zero_interval.map(|one| one.low),
        at_zero_high: at_zero_interval.map(|one| one.high),
        margin: of.margin,
        bend: of.bend.as_ref().map(|bend| object! {
            shape: shape(bend.shape),
            p: bend.p,
            furthest: &bend.at,
            share: bend.share,
            reach: bend.reach,
        }),
        points: points.collect::<Vec<_>>(),
        crossings: of.crossings.iter().map(crossing).collect::<Vec<_>>(),
        blocks: of.line.blocks(),
    }
}
