//! Treatments against their baselines, by blocks.

use plumbline_experiment::metric::Role;
use plumbline_experiment::{Treatment, TreatmentId};
use plumbline_record::Fingerprint;
use plumbline_stats::paired::{self, Effect};
use plumbline_stats::verdict::{self, Verdict};

use super::ALPHA;
use super::margin::{least_seen, margin, no_finer, resolution};
use super::measured::TrialValue;
use super::metric::Metric;
use super::registry::metrics_of;
use super::treatment::TreatmentSummary;

/// One treatment against its baseline on one metric.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The treatment.
    pub treatment: TreatmentId,
    /// What it is compared with.
    pub baseline: TreatmentId,
    /// On which metric.
    pub metric: &'static Metric,
    /// Whether it was declared before the run as one of the metrics that count
    /// (C-10); the others are exploratory.
    pub is_primary: bool,
    /// The effect as a ratio less one, over the blocks that hold both (D8);
    /// `None` without such a block.
    pub effect: Option<Effect>,
    /// Hodges–Lehmann estimate of the paired differences, in the metric's unit.
    pub difference: Option<f64>,
    /// p-value after Holm's adjustment over all comparisons that are judged
    /// together: the primary ones, or for an exploratory one all of them.
    pub adjusted_p: Option<f64>,
    /// The effect that would have been found with 80 % probability, one of as
    /// many comparisons as are judged together (C-8); `None` when the blocks
    /// are too few for any.
    pub smallest_effect: Option<f64>,
    /// The judgement (D10); `None` when there is nothing to judge, or too few
    /// blocks for an interval (C-7).
    pub verdict: Option<Verdict>,
    /// The largest effect that does not matter in practice (D9).
    pub margin: f64,
    /// The least effect that the meter can tell from none; the interval is no
    /// narrower on either side. 0 where the meter is fine.
    pub resolution: f64,
    /// Blocks in which both ran but one gave no positive number, so that there
    /// is no ratio.
    pub pairs_left_out: usize,
    /// Blocks that it takes before "better" or "worse" can be said (C-7).
    pub blocks_needed: usize,
}

/// A comparison that the plan declares, before any data.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeclaredComparison {
    pub(super) treatment: TreatmentId,
    pub(super) baseline: TreatmentId,
    pub(super) metric: &'static Metric,
    pub(super) is_primary: bool,
}

/// Every comparison of some treatments, whose baselines are among them.
pub(super) fn declared(treatments: &[Treatment]) -> Vec<DeclaredComparison> {
    let mut declared = Vec::new();
    for treatment in treatments {
        let Some(baseline) = treatment.baseline else {
            continue;
        };
        for (metric, role) in metrics_of(&treatment.workload) {
            declared.push(DeclaredComparison {
                treatment: treatment.id,
                baseline,
                metric,
                is_primary: role == Role::Primary,
            });
        }
    }
    declared
}

/// Compares everything that was declared. Primary comparisons are judged among
/// themselves, exploratory ones among all, so that looking at more metrics
/// makes none of the primary ones harder and none of the others easy (C-10).
pub(super) fn compare_all(
    declared: &[DeclaredComparison],
    treatments: &[TreatmentSummary],
    fingerprint: &Fingerprint,
) -> Vec<Comparison> {
    let (mut comparisons, pairs): (Vec<_>, Vec<_>) = declared
        .iter()
        .map(|one| compare(one, treatments, fingerprint))
        .unzip();
    let mut all: Vec<_> = comparisons.iter_mut().zip(&pairs).collect();
    // The primary ones are judged last and by themselves, which replaces what
    // was found for them among all.
    judge(&mut all);
    let mut primary: Vec<_> = all.into_iter().filter(|(one, _)| one.is_primary).collect();
    judge(&mut primary);
    comparisons
}

/// Pairs of one comparison: (treatment, baseline).
type Pairs = Vec<(f64, f64)>;

/// The comparison without its judgement, and the pairs that it is made of.
fn compare(
    declared: &DeclaredComparison,
    treatments: &[TreatmentSummary],
    fingerprint: &Fingerprint,
) -> (Comparison, Pairs) {
    let (treatment, baseline) = (
        &treatments[declared.treatment],
        &treatments[declared.baseline],
    );
    let metric = declared.metric;
    let (pairs, pairs_left_out) = pairs(
        treatment.values_of(metric.name()),
        baseline.values_of(metric.name()),
    );
    let resolution = resolution(metric, treatment, baseline);
    let differences: Vec<f64> = pairs.iter().map(|(a, b)| a - b).collect();
    let comparison = Comparison {
        treatment: declared.treatment,
        baseline: declared.baseline,
        metric,
        is_primary: declared.is_primary,
        // The pairs are positive and the level is ours, so the only error is
        // that there is no pair.
        effect: paired::effect(&pairs, ALPHA)
            .ok()
            .map(|effect| no_finer(effect, resolution)),
        difference: (!pairs.is_empty()).then(|| paired::hodges_lehmann(&differences)),
        adjusted_p: None,
        smallest_effect: None,
        verdict: None,
        margin: margin(metric, baseline, fingerprint),
        resolution,
        pairs_left_out,
        blocks_needed: 0,
    };
    (comparison, pairs)
}

/// The values of the blocks that hold both treatments, and how many of these
/// blocks have no ratio.
fn pairs(values: &[TrialValue], baseline: &[TrialValue]) -> (Pairs, usize) {
    let mut pairs = Vec::new();
    let mut left_out = 0;
    for ours in values {
        let theirs = baseline.binary_search_by_key(&ours.block, |one| one.block);
        match theirs.map(|found| baseline[found].value) {
            Ok(theirs) if ours.value > 0.0 && theirs > 0.0 => pairs.push((ours.value, theirs)),
            Ok(_) => left_out += 1,
            Err(_) => {}
        }
    }
    (pairs, left_out)
}

/// Judges comparisons that belong together (C-7, C-10). Those without data
/// count as not significant, so that losing one makes no other easier.
fn judge(together: &mut [(&mut Comparison, &Pairs)]) {
    let p: Vec<f64> = together
        .iter()
        .map(|(one, _)| one.effect.map_or(1.0, |effect| effect.p_value))
        .collect();
    let adjusted = plumbline_stats::holm(&p);
    let number = together.len();
    for ((comparison, pairs), adjusted_p) in together.iter_mut().zip(adjusted) {
        comparison.blocks_needed = paired::minimum_pairs(number, ALPHA);
        let Some(effect) = comparison.effect else {
            continue;
        };
        let log_ratios: Vec<f64> = pairs.iter().map(|(a, b)| (a / b).ln()).collect();
        let smallest = paired::smallest_effect(&log_ratios, ALPHA / number as f64);
        comparison.smallest_effect = least_seen(smallest, comparison.resolution);
        comparison.adjusted_p = Some(adjusted_p);
        comparison.verdict = effect.interval.map(|_| {
            let direction = comparison.metric.direction;
            verdict::judge(&effect, adjusted_p, ALPHA, comparison.margin, direction)
        });
    }
}
