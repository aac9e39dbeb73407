//! Runs against each other, and against stated limits.
//!
//! Blocks pair trials inside a run. Between runs nothing does, so what changed
//! between the two days counts as the treatment's doing: the environments must
//! match (C-13), and the test is the unpaired one (C-6).

mod environment;
mod limit;
mod shown;

pub use environment::{Difference, differences};
pub use limit::{LimitCheck, LimitOutcome, LimitTextError, parse_limit};
pub use shown::{json, render};

use plumbline_experiment::metric::Role;
use plumbline_record::{Run, Trial};
use plumbline_stats::paired::Effect;
use plumbline_stats::verdict::{self, Verdict};
use plumbline_stats::{holm, unpaired};

use crate::analysis::{
    ALPHA, Metric, Summary, TreatmentSummary, least_seen, margin, metrics_of, no_finer, resolution,
};

/// Why runs cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// There is no run.
    #[error("nothing to compare; name one run directory for its own verdicts, or several")]
    NoRuns,
    /// Environments differ, and it was not asked to compare across them.
    #[error(
        "the environments differ, so a change may come from any of these:\n{}\
         run both on the same machine, or say --across-environments to compare all the same",
        environment::list(.0)
    )]
    DifferentEnvironments(Vec<Difference>),
    /// No treatment of the first run is in another run.
    #[error(
        "run {0} has no treatment in common with the first one: label and workload must be the \
         same in both"
    )]
    NothingInCommon(usize),
}

/// What a comparison of runs gives.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Each run by itself, with its verdicts inside.
    pub runs: Vec<Summary>,
    /// Treatments of later runs against the same treatments of the first one.
    pub changes: Vec<Change>,
    /// The limits of every run.
    pub limits: Vec<LimitCheck>,
    /// In what environments differ, when it was asked to compare across them.
    pub differences: Vec<Difference>,
}

impl Compared {
    /// Whether a stated limit is broken beyond doubt.
    pub fn is_broken(&self) -> bool {
        self.limits
            .iter()
            .any(|check| check.outcome == LimitOutcome::Broken)
    }

    /// Whether a stated limit could not be judged.
    pub fn has_undecided(&self) -> bool {
        self.limits
            .iter()
            .any(|check| check.outcome == LimitOutcome::Undecided)
    }
}

/// A treatment of a run against the same treatment of the first run.
#[derive(Clone, Debug)]
pub struct Change {
    /// Position of the later run among those compared, from 1.
    pub run: usize,
    /// Label of the treatment.
    pub label: String,
    /// Name of its workload.
    pub workload: String,
    /// On which metric.
    pub metric: &'static Metric,
    /// Whether the metric was declared before the runs (C-10).
    pub is_primary: bool,
    /// The change as a ratio less one, with `pairs` the trials of the smaller
    /// run; `None` when one run has no value.
    pub effect: Option<Effect>,
    /// After Holm's adjustment over all changes that are judged together.
    pub adjusted_p: Option<f64>,
    /// The change that would have been found with 80 % probability (C-8).
    pub smallest_effect: Option<f64>,
    /// The judgement (D10); `None` with too few trials.
    pub verdict: Option<Verdict>,
    /// The largest change that does not matter in practice (D9).
    pub margin: f64,
    /// The least change that the meter can tell from none.
    pub resolution: f64,
}

/// Compares runs with the first of them, and each with its own limits. One run
/// alone gives its limits and its verdicts inside.
///
/// # Errors
///
/// Without a run, with environments that differ unless `across_environments`,
/// and with a run that shares no treatment with the first.
pub fn compare(
    runs: &[(Run, Vec<Trial>)],
    across_environments: bool,
) -> Result<Compared, CompareError> {
    let ((first, _), later) = runs.split_first().ok_or(CompareError::NoRuns)?;
    let differences: Vec<Difference> = later
        .iter()
        .enumerate()
        .flat_map(|(index, (run, _))| {
            environment::differences(index + 1, &first.fingerprint, &run.fingerprint)
        })
        .collect();
    if !differences.is_empty() && !across_environments {
        return Err(CompareError::DifferentEnvironments(differences));
    }
    let summaries: Vec<Summary> = runs
        .iter()
        .map(|(run, trials)| Summary::new(run, trials))
        .collect();
    let mut changes = Vec::new();
    for (index, summary) in summaries.iter().enumerate().skip(1) {
        let found = changes_of(index, &summaries[0], summary, &first.fingerprint);
        if found.is_empty() {
            return Err(CompareError::NothingInCommon(index + 1));
        }
        changes.extend(found);
    }
    judge(&mut changes);
    let limits = runs.iter().zip(&summaries).enumerate();
    Ok(Compared {
        limits: limits
            .flat_map(|(index, ((run, _), summary))| limit::check(index, &run.plan, summary))
            .collect(),
        changes: changes.into_iter().map(|(change, _, _)| change).collect(),
        differences,
        runs: summaries,
    })
}

/// A change with the logarithms of the later and the first run's values.
type Judged = (Change, Vec<f64>, Vec<f64>);

fn changes_of(
    run: usize,
    first: &Summary,
    later: &Summary,
    fingerprint: &plumbline_record::Fingerprint,
) -> Vec<Judged> {
    let mut changes = Vec::new();
    for treatment in &later.treatments {
        let Some(before) = same_treatment(first, treatment) else {
            continue;
        };
        for (metric, role) in metrics_of(&treatment.treatment.workload) {
            let (ours, theirs) = (positive(treatment, metric), positive(before, metric));
            let resolution = resolution(metric, treatment, before);
            let change = Change {
                run,
                label: treatment.treatment.label.clone(),
                workload: treatment.treatment.workload.name.clone(),
                metric,
                is_primary: role == Role::Primary,
                effect: unpaired::effect(&ours, &theirs, ALPHA)
                    .ok()
                    .map(|effect| no_finer(effect, resolution)),
                adjusted_p: None,
                smallest_effect: None,
                verdict: None,
                margin: margin(metric, before, fingerprint),
                resolution,
            };
            changes.push((change, logarithms(&ours), logarithms(&theirs)));
        }
    }
    changes
}

/// The treatment of the other run with the same label and workload. One whose
/// workload has the same name but other values is another treatment.
fn same_treatment<'a>(
    summary: &'a Summary,
    wanted: &TreatmentSummary,
) -> Option<&'a TreatmentSummary> {
    summary.treatments.iter().find(|one| {
        one.treatment.label == wanted.treatment.label
            && one.treatment.workload == wanted.treatment.workload
            && one.treatment.scene.but_network() == wanted.treatment.scene.but_network()
    })
}

/// The values that have a logarithm, in rising order.
fn positive(treatment: &TreatmentSummary, metric: &Metric) -> Vec<f64> {
    let values = treatment
        .values_of(metric.name())
        .iter()
        .map(|one| one.value);
    let mut values: Vec<f64> = values.filter(|&value| value > 0.0).collect();
    values.sort_by(f64::total_cmp);
    values
}

fn logarithms(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.ln()).collect()
}

/// Judges primary changes among themselves and exploratory ones among all, as
/// inside a run.
fn judge(changes: &mut [Judged]) {
    let mut all: Vec<&mut Judged> = changes.iter_mut().collect();
    judge_together(&mut all);
    all.retain(|judged| judged.0.is_primary);
    judge_together(&mut all);
}

fn judge_together(together: &mut [&mut Judged]) {
    let p: Vec<f64> = together
        .iter()
        .map(|judged| judged.0.effect.map_or(1.0, |effect| effect.p_value))
        .collect();
    let level = ALPHA / together.len() as f64;
    for (judged, adjusted_p) in together.iter_mut().zip(holm(&p)) {
        let (change, ours, theirs) = &mut **judged;
        let Some(effect) = change.effect else {
            continue;
        };
        change.adjusted_p = Some(adjusted_p);
        let smallest = unpaired::smallest_effect(ours, theirs, level);
        change.smallest_effect = least_seen(smallest, change.resolution);
        let direction = change.metric.direction;
        change.verdict = effect
            .interval
            .map(|_| verdict::judge(&effect, adjusted_p, ALPHA, change.margin, direction));
    }
}
