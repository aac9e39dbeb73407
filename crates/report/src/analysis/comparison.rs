//! Treatments against their baselines, by blocks.

use plumbline_experiment::metric::Role;
use plumbline_experiment::{NeighbourKind, Neighbours, Plan, TreatmentId};
use plumbline_record::Run;
use plumbline_stats::replicate;

use super::cost;
use super::effect::{self, Effect, Unjudged, log_ratio};
use super::level::alpha;
use super::margin::{margin, resolution};
use super::measured::TrialValue;
use super::metric::{Metric, Quantity};
use super::registry::metrics_of;
use super::treatment::{TreatmentSummary, is_recorded};

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
    /// What the blocks that hold both say (D8); `None` without such a block.
    pub effect: Option<Effect>,
    /// The effect times what the baseline usually shows, in the metric's unit.
    pub difference: Option<f64>,
    /// The largest effect that does not matter in practice (D9).
    pub margin: f64,
    /// The least effect that the meter can tell from none; the interval is no
    /// narrower on either side. 0 where the meter is fine.
    pub resolution: f64,
    /// Trials of the same moment of which one gave no positive number, so that
    /// there is no ratio.
    pub pairs_left_out: usize,
}

/// Compares some treatments with their baselines, which are among all, on all metrics
/// that the plan declares.
pub(super) fn compare_all(
    of: &[TreatmentSummary],
    treatments: &[TreatmentSummary],
    run: &Run,
) -> Vec<Comparison> {
    let of_one = |ours: &TreatmentSummary| {
        let theirs = &treatments[ours.treatment.baseline?];
        let metrics = metrics_of(&ours.treatment.task);
        let metrics = metrics.filter(|(metric, _)| is_recorded(metric, treatments));
        let gathered = metrics.map(|metric| gather(metric, ours, theirs, run));
        Some(gathered.collect::<Vec<_>>())
    };
    let gathered = of.iter().filter_map(of_one).flatten();
    let (mut comparisons, evidence): (Vec<_>, Vec<_>) = gathered.unzip();
    let effects = effect::judge(&evidence, alpha(&run.plan), run.plan.seed);
    for (comparison, effect) in comparisons.iter_mut().zip(effects) {
        let baseline = treatments[comparison.baseline].median_of(comparison.metric);
        comparison.effect = effect;
        comparison.difference = effect
            .filter(|_| comparison.metric.quantity != Quantity::Loss)
            .zip(baseline)
            .map(|(effect, baseline)| effect.ratio_minus_one * baseline);
    }
    comparisons
}

/// Treatments beside neighbours of which the plan has the same beside one that only computes,
/// with that as their baseline.
pub(super) fn against_cpu(treatments: &[TreatmentSummary]) -> Vec<TreatmentSummary> {
    let kind = |it: &TreatmentSummary| it.treatment.scene.neighbours.kind;
    // All but what they do and share.
    let rest = |it: &TreatmentSummary| {
        let mut scene = it.treatment.scene.clone();
        scene.neighbours = Neighbours {
            further: scene.neighbours.further,
            ..Neighbours::default()
        };
        (scene, it.treatment.task.clone(), it.treatment.copy)
    };
    let against = |ours: &TreatmentSummary| {
        let mut beside_cpu = treatments
            .iter()
            .filter(|it| kind(it) == NeighbourKind::Cpu);
        let like_ours = rest(ours);
        let theirs = beside_cpu.find(|it| rest(it) == like_ours)?;
        let mut ours = ours.clone();
        ours.treatment.baseline = Some(theirs.id());
        Some(ours)
    };
    let is_other =
        |it: &&TreatmentSummary| !matches!(kind(it), NeighbourKind::None | NeighbourKind::Cpu);
    treatments
        .iter()
        .filter(is_other)
        .filter_map(against)
        .collect()
}

/// The comparison without its effect, and what that is judged by.
fn gather(
    (metric, role): (&'static Metric, Role),
    ours: &TreatmentSummary,
    theirs: &TreatmentSummary,
    run: &Run,
) -> (Comparison, Unjudged) {
    let (log_ratios, pairs_left_out) = log_ratios(metric, ours, theirs, &run.plan);
    let evidence = Unjudged {
        metric,
        is_primary: role == Role::Primary,
        log_ratios,
        baseline: theirs.median_of(metric),
        margin: margin(metric, theirs, &run.fingerprint),
        resolution: resolution(metric, ours, theirs),
        may_hide: may_hide(metric, [ours, theirs], &run.provenance.target),
    };
    let comparison = Comparison {
        treatment: ours.id(),
        baseline: theirs.id(),
        metric,
        is_primary: evidence.is_primary,
        effect: None,
        difference: None,
        margin: evidence.margin,
        resolution: evidence.resolution,
        pairs_left_out,
    };
    (comparison, evidence)
}

/// Which of both may cost more than is seen. On one network both hide the same.
fn may_hide(metric: &Metric, both: [&TreatmentSummary; 2], target: &str) -> [bool; 2] {
    let found = both.map(|one| cost::may_hide(metric, &one.treatment, target));
    let [ours, theirs] = both.map(|one| &one.treatment.scene);
    let is_same = ours.network == theirs.network && ours.variant == theirs.variant;
    match found {
        [true, true] if is_same => [false; 2],
        found => found,
    }
}

/// One log-ratio for each block that holds both treatments: of several pairs of
/// nodes, each with a ratio of its own, their mean (C-19). And how many cells
/// that hold both have no ratio. None where one of them does not show the metric.
pub(crate) fn log_ratios(
    metric: &Metric,
    ours: &TreatmentSummary,
    theirs: &TreatmentSummary,
    plan: &Plan,
) -> (Vec<Option<f64>>, usize) {
    if !(ours.shows(metric) && theirs.shows(metric)) {
        return (vec![None; plan.blocks.len()], 0);
    }
    let (ours, theirs) = (
        ours.values_of(metric.name()),
        theirs.values_of(metric.name()),
    );
    let both: Vec<(&TrialValue, f64)> = ours
        .iter()
        .filter_map(|one| {
            let found = theirs.binary_search_by_key(&one.block, |one| one.block);
            Some((one, theirs[found.ok()?].in_ratios()))
        })
        .collect();
    let cell = |(ours, theirs): &(&TrialValue, f64)| {
        let block = ours.block as usize / plan.pairs();
        Some((block, log_ratio(ours.in_ratios(), *theirs)?))
    };
    let cells: Vec<(usize, f64)> = both.iter().filter_map(cell).collect();
    let of_blocks = replicate::of_blocks(plan.blocks.len(), &cells);
    (of_blocks, both.len() - cells.len())
}
