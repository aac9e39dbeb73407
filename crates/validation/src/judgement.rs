//! Judging the figures of one comparison: what to reach, and whether it was.

use plumbline_stats::{family, order};
use serde::Serialize;

use crate::bout::ComparedFigure;
use crate::pairs::BoutPairs;
use crate::quantity::{Measurand, Readings};
use crate::size::OPEN_RATE;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct FigureVerdict {
    pub(crate) comparison: &'static str,
    pub(crate) what: String,
    pub(crate) against: &'static str,
    #[serde(rename = "metric")]
    pub(crate) quantity: Measurand,
    /// Median over the pairs; `None` where a run's samples do not carry the
    /// figure (D4).
    pub(crate) ours: Option<f64>,
    pub(crate) theirs: Option<f64>,
    /// Geometric mean of ours/theirs over the pairs.
    pub(crate) ratio: Option<f64>,
    /// Its exact 95 % interval, from flipped signs; needs six pairs.
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) reach: Option<String>,
    pub(crate) met: Option<bool>,
    /// What to know of the figure: that too few samples carry it.
    pub(crate) note: Option<String>,
    /// Theirs and ours of every pair.
    pub(crate) pairs: Vec<(Option<f64>, Option<f64>)>,
}

/// Judges every figure of a bout of which at least one pair was run.
pub(crate) fn judge(run: &BoutPairs) -> Vec<FigureVerdict> {
    if run.readings.is_empty() {
        return Vec::new();
    }
    let figures = run.bout.figures.iter();
    figures.map(|figure| judge_figure(run, figure)).collect()
}

fn judge_figure(run: &BoutPairs, figure: &ComparedFigure) -> FigureVerdict {
    let of = |readings: &Readings| readings.get(&figure.quantity).copied();
    let pairs = run.readings.iter();
    let pairs: Vec<_> = pairs.map(|(theirs, ours)| (of(theirs), of(ours))).collect();
    let theirs = median(pairs.iter().filter_map(|pair| pair.0));
    let ours = median(pairs.iter().filter_map(|pair| pair.1));
    let log_ratio = |&(theirs, ours): &(Option<f64>, Option<f64>)| Some((ours? / theirs?).ln());
    let log_ratios = pairs.iter().map(log_ratio);
    let log_ratios = log_ratios.map(|one| one.filter(|one| one.is_finite()));
    let effect = family::compare(&[log_ratios.collect()], 0.05, 0).ok();
    let effect = effect.and_then(|all| all.into_iter().find(|one| one.blocks > 0));
    let ratio = effect.map(|effect| 1.0 + effect.ratio_minus_one);
    let interval = effect.filter(family::JointEffect::is_bounded);
    let interval = interval.map(|effect| effect.alone);
    FigureVerdict {
        comparison: run.bout.name,
        what: figure.words.replace("{}", run.bout.about),
        against: run.bout.against,
        quantity: figure.quantity,
        ours,
        theirs,
        ratio,
        interval: interval.map(|it| (1.0 + it.low, 1.0 + it.high)),
        reach: figure.reach.map(|reach| reach.in_words(figure.quantity)),
        met: figure
            .reach
            .and_then(|reach| reach.is_met(ours?, theirs, ratio)),
        note: too_few(figure.quantity, run.bout.is_alone(), &pairs),
        pairs,
    }
}

/// Says in how many pairs a percentile lacks the samples that it needs (D4), and how
/// long runs would have to last for it. A figure from some of the pairs only comes
/// from the quieter ones, so this is always said.
fn too_few(
    quantity: Measurand,
    alone: bool,
    pairs: &[(Option<f64>, Option<f64>)],
) -> Option<String> {
    let samples = quantity.samples()?;
    let lacking = pairs
        .iter()
        .filter(|(theirs, ours)| ours.is_none() || (theirs.is_none() && !alone));
    let lacking = lacking.count();
    let seconds = samples.div_ceil(u64::from(OPEN_RATE));
    (lacking > 0).then(|| {
        format!(
            "too few samples in {lacking} of {} pairs: {seconds} s of independent ones are needed, \
             more --seconds where they are not",
            pairs.len()
        )
    })
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    Some(order::median_of_runs(&values, 0.95)?.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_of_too_few_samples_says_so() {
        let pairs = [(None, Some(1.0)), (Some(1.0), Some(1.0))];
        let note = too_few(Measurand::P999, false, &pairs).unwrap();
        assert_eq!(
            note,
            "too few samples in 1 of 2 pairs: 20 s of independent ones are needed, more --seconds where they are not"
        );
        assert_eq!(too_few(Measurand::P999, true, &pairs), None);
        assert!(too_few(Measurand::P50, false, &pairs).is_some());
        assert_eq!(too_few(Measurand::Rate, false, &pairs), None);
        assert!(too_few(Measurand::LagP99, true, &[(None, None)]).is_some());
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(median([4.0, 1.0, 3.0, 2.0].into_iter()), Some(2.5));
        assert_eq!(median(std::iter::empty()), None);
    }
}
