//! Runs against each other, and against stated limits.
//!
//! What changed is the ratio to the baseline that both runs have, which is free of
//! what the two days did to both. Where there is none, a change may come from
//! anything that differs between the days: then there is an interval and no
//! verdict. The environments must match (C-13).

mod environment;
mod limit;
mod shown;

pub use environment::{Difference, differences};
pub use limit::{LimitCheck, LimitOutcome, LimitTextError, check_limits, parse_limits};
pub use shown::{json, render};

use plumbline_experiment::metric::Role;
use plumbline_record::{Run, Trial};
use plumbline_stats::replicate;

use crate::analysis::{
    ALPHA, Effect, Metric, Summary, TreatmentSummary, Unjudged, alpha, judge, log_ratios, margin,
    may_hide, metrics_of, resolution,
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
    /// Label of the baseline that both runs have, against which it changed;
    /// `None` where the values themselves are compared, without a verdict.
    pub against: Option<String>,
    /// The change as a ratio less one; `None` when no block of both has it.
    pub effect: Option<Effect>,
    /// The largest change that does not matter in practice (D9).
    pub margin: f64,
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
    for (index, later) in runs.iter().zip(&summaries).enumerate().skip(1) {
        let before = changes.len();
        changes.extend(changes_of(index, (&runs[0], &summaries[0]), later));
        if changes.len() == before {
            return Err(CompareError::NothingInCommon(index + 1));
        }
    }
    let levels = runs.iter().map(|(run, _)| alpha(&run.plan));
    let strictest = levels.fold(ALPHA, f64::min);
    let limits = runs.iter().zip(&summaries).enumerate();
    Ok(Compared {
        limits: limits
            .flat_map(|(index, ((run, _), summary))| check_limits(index, &run.plan, summary))
            .collect(),
        changes: judged(changes, strictest, first.plan.seed),
        differences,
        runs: summaries,
    })
}

/// A run that was read, and its analysis.
type Read<'a> = (&'a (Run, Vec<Trial>), &'a Summary);

/// Every treatment of the later run that the first one has as well.
fn changes_of(run: usize, first: Read<'_>, later: Read<'_>) -> Vec<(Change, Unjudged)> {
    let mut changes = Vec::new();
    for treatment in &later.1.treatments {
        let Some(before) = same_treatment(first.1, treatment) else {
            continue;
        };
        let baseline = shared_baseline((first.1, before), (later.1, treatment));
        let both = |metric: &Metric| first.1.records(metric) && later.1.records(metric);
        // What is not seen may have changed either way, on any network that takes part.
        let hides = |metric: &Metric| {
            let concerned = [Some(treatment), baseline.map(|both| both.1)];
            let mut concerned = concerned.into_iter().flatten();
            concerned.any(|one| may_hide(metric, &one.treatment, &later.1.target))
        };
        let metrics = metrics_of(&treatment.treatment.task);
        for (metric, role) in metrics.filter(|(metric, _)| both(metric)) {
            let was = by_block(first, before, baseline.map(|both| both.0), metric);
            let is = by_block(later, treatment, baseline.map(|both| both.1), metric);
            let margin = margin(metric, before, &first.0.0.fingerprint);
            let evidence = Unjudged {
                metric,
                is_primary: role == Role::Primary,
                log_ratios: was
                    .iter()
                    .flatten()
                    .zip(is.iter().flatten())
                    .map(|(was, is)| Some(is - was))
                    .collect(),
                baseline: before.median_of(metric),
                may_hide: [hides(metric); 2],
                margin,
                resolution: baseline
                    .iter()
                    .fold(resolution(metric, treatment, before), |own, (was, is)| {
                        own.hypot(resolution(metric, is, was))
                    }),
            };
            let change = Change {
                run,
                label: treatment.treatment.label.clone(),
                workload: treatment.treatment.task.name().to_owned(),
                metric,
                is_primary: evidence.is_primary,
                against: baseline.map(|(_, now)| now.treatment.label.clone()),
                effect: None,
                margin,
            };
            changes.push((change, evidence));
        }
    }
    changes
}

/// The baselines of a treatment in both runs, where they are the same treatment.
fn shared_baseline<'a>(
    (first, before): (&'a Summary, &TreatmentSummary),
    (later, now): (&'a Summary, &TreatmentSummary),
) -> Option<(&'a TreatmentSummary, &'a TreatmentSummary)> {
    let was = &first.treatments[before.treatment.baseline?];
    let is = &later.treatments[now.treatment.baseline?];
    same_treatment(first, is)
        .is_some_and(|same| same.id() == was.id())
        .then_some((was, is))
}

/// For each block, the logarithm of the ratio to the baseline, or of the value.
fn by_block(
    ((run, _), _): Read<'_>,
    of: &TreatmentSummary,
    baseline: Option<&TreatmentSummary>,
    metric: &Metric,
) -> Vec<Option<f64>> {
    if let Some(baseline) = baseline {
        return log_ratios(metric, of, baseline, &run.plan).0;
    }
    let values = of.values_of(metric.name()).iter();
    let values = values.filter(|_| of.shows(metric));
    let cells: Vec<(usize, f64)> = values
        .filter(|one| one.in_ratios() > 0.0)
        .map(|one| (one.block as usize / run.plan.pairs(), one.in_ratios().ln()))
        .collect();
    replicate::of_blocks(run.plan.blocks.len(), &cells)
}

/// Changes against a shared baseline are judged together. Blocks of two runs have
/// nothing in common, so the first that holds a comparison in one run stands against
/// the first in the other, and so on: their difference is as likely as its opposite
/// when nothing changed. The others are
/// bounded together, without a verdict.
fn judged(changes: Vec<(Change, Unjudged)>, alpha: f64, seed: u64) -> Vec<Change> {
    let (mut changes, evidence): (Vec<Change>, Vec<Unjudged>) = changes.into_iter().unzip();
    let has_baseline: Vec<bool> = changes.iter().map(|one| one.against.is_some()).collect();
    let (with, without): (Vec<_>, Vec<_>) = evidence
        .into_iter()
        .zip(&has_baseline)
        .partition(|(_, has)| **has);
    let evidence = |all: Vec<(Unjudged, &bool)>| all.into_iter().map(|(one, _)| one).collect();
    let (with, without): (Vec<_>, Vec<_>) = (evidence(with), evidence(without));
    let mut with = judge(&with, alpha, seed).into_iter();
    let mut without = judge(&without, alpha, seed).into_iter();
    for change in &mut changes {
        change.effect = match change.against {
            Some(_) => with.next().flatten(),
            None => without.next().flatten().map(|effect| Effect {
                verdict: None,
                ..effect
            }),
        };
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
            && one.treatment.task == wanted.treatment.task
            && one.treatment.scene.but_network() == wanted.treatment.scene.but_network()
    })
}
