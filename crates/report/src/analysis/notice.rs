//! Reasons to distrust, each said once.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::{Discriminant, discriminant};

use plumbline_experiment::metric::Traffic;
use plumbline_experiment::{Treatment, TreatmentId};
use plumbline_record::{Run, Trial, Warning};
use plumbline_stats::family::minimum_blocks;

use super::ledger::Ledger;
use super::{ALPHA, Account};

/// A reason to distrust, and what it concerns.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// The reason with its remedy; where trials gave it with different
    /// figures, the worst of them.
    pub warning: Warning,
    /// The treatments that it concerns by rising id; none for the whole run.
    pub treatments: Vec<TreatmentId>,
    /// How many trials gave it; 0 when it comes from the plan or the run.
    pub trials: usize,
    /// Whether trials gave it with different figures.
    pub is_worst: bool,
}

impl Notice {
    /// Whether it puts what was measured in doubt, and not only how exactly.
    pub(crate) fn is_grave(&self) -> bool {
        doubt(&self.warning) <= Doubt::Subject
    }

    fn of_run(warning: Warning) -> Self {
        Self {
            warning,
            treatments: Vec::new(),
            trials: 0,
            is_worst: false,
        }
    }
}

/// Gathers the warnings of run and trials, and adds those that only the whole
/// shows; first what puts most in doubt.
pub(super) fn notices(
    run: &Run,
    ledger: &Ledger<'_>,
    builds: usize,
    is_compared: bool,
) -> Vec<Notice> {
    let mut notices: Vec<Notice> = Vec::new();
    let mixed = (builds > 1).then_some(Warning::MixedBuilds {
        builds: builds as u32,
    });
    let derived = mixed.into_iter().chain(derived(run, ledger, is_compared));
    for warning in run.warnings.iter().cloned().chain(derived) {
        let is_said = |one: &Notice| {
            one.warning == warning || is_said_once(&warning) && kind(&one.warning) == kind(&warning)
        };
        if !notices.iter().any(is_said) {
            notices.push(Notice::of_run(warning));
        }
    }
    notices.extend(closed_loops(run));
    let from_run: Vec<_> = notices.iter().map(|one| kind(&one.warning)).collect();
    for trial in ledger.trials() {
        for warning in &trial.warnings {
            if !from_run.contains(&kind(warning)) {
                add(&mut notices, trial, warning);
            }
        }
    }
    notices.sort_by_key(|one| doubt(&one.warning));
    notices
}

/// How much a warning puts in doubt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Doubt {
    /// Whether what is measured acts at all, which is a finding of its own.
    Existence,
    /// Every figure of the run.
    Everything,
    /// Whether it was the network that was measured.
    Subject,
    /// Whether what is missing would have changed the answer.
    Missing,
    /// How exactly it was measured.
    Precision,
    /// What holds for every run on such a machine, or of such an experiment.
    Setting,
}

fn doubt(warning: &Warning) -> Doubt {
    match warning {
        Warning::NotEnforced { .. } => Doubt::Existence,
        Warning::MixedBuilds { .. } => Doubt::Everything,
        Warning::GeneratorWasTheLimit { .. }
        | Warning::GeneratorBusy { .. }
        | Warning::MaximumOfTheGenerator { .. }
        | Warning::TailLag { .. }
        | Warning::ClientDiffers { .. }
        | Warning::OtherServer { .. }
        | Warning::UserModeKernel => Doubt::Subject,
        Warning::CutOff { .. }
        | Warning::DamagedLines { .. }
        | Warning::RetriesExhausted { .. }
        | Warning::TooFewBlocks { .. }
        | Warning::FewRepetitions { .. } => Doubt::Missing,
        Warning::Nodes { .. }
        | Warning::ShorterWindows { .. }
        | Warning::ClosedLoop { .. }
        | Warning::Steal { .. }
        | Warning::NoTurns { .. }
        | Warning::OtherLoad { .. }
        | Warning::NearSaturation { .. }
        | Warning::ArrivalsDistorted { .. }
        | Warning::UnevenGaps { .. }
        | Warning::LevelChanged { .. } => Doubt::Precision,
        Warning::OneKernel
        | Warning::SharedCpus { .. }
        | Warning::Unguarded { .. }
        | Warning::TrackingUnseen
        | Warning::Unsupported { .. }
        | Warning::CarriesNothing { .. }
        | Warning::StandsFor { .. } => Doubt::Setting,
    }
}

/// How often a command is to be repeated at least.
const REPETITIONS: usize = 10;

/// What only the whole run shows.
fn derived(run: &Run, ledger: &Ledger<'_>, is_compared: bool) -> Vec<Warning> {
    let plan = &run.plan;
    let mut derived = unenforced(run, ledger);
    let account = Account::new(plan, ledger);
    if run.damaged_lines > 0 {
        derived.push(Warning::DamagedLines {
            lines: run.damaged_lines,
        });
    }
    if account.missing > 0 {
        derived.push(Warning::CutOff {
            finished: (account.planned - account.missing) as u32,
            planned: account.planned as u32,
        });
    }
    let (blocks, needed) = (plan.blocks.len(), minimum_blocks(ALPHA));
    let mut tasks = plan.treatments.iter().map(|it| &it.task);
    if blocks < REPETITIONS && tasks.any(|it| it.survive().is_some()) {
        derived.push(Warning::FewRepetitions {
            repetitions: blocks as u32,
            needed: REPETITIONS as u32,
        });
    } else if is_compared && blocks < needed {
        derived.push(Warning::TooFewBlocks {
            blocks: blocks as u32,
            needed: needed as u32,
        });
    }
    derived.extend(exhausted(run, ledger));
    derived
}

/// One warning for each label whose policies did not act, with the first connection that
/// showed it.
fn unenforced(run: &Run, ledger: &Ledger<'_>) -> Vec<Warning> {
    let treatments = &run.plan.treatments;
    let mut found: BTreeMap<&str, (TreatmentId, &str, BTreeSet<u32>)> = BTreeMap::new();
    for trial in ledger.trials() {
        if let Some(detail) = trial.status.unenforced() {
            let label = &*treatments[trial.treatment].label;
            let first = (trial.treatment, detail, BTreeSet::new());
            found.entry(label).or_insert(first).2.insert(trial.block);
        }
    }
    let warning = |(label, (id, detail, blocks)): (&str, (TreatmentId, &str, BTreeSet<u32>))| {
        let policies = treatments[id].scene.policies;
        Warning::NotEnforced {
            label: label.to_owned(),
            policies: policies.count,
            enforcer: policies.enforcer.as_str().to_owned(),
            detail: detail.to_owned(),
            blocks: blocks.len() as u32,
            planned: run.plan.blocks.len() as u32,
        }
    };
    found.into_iter().map(warning).collect()
}

/// One warning for all treatments that lost a block.
fn exhausted(run: &Run, ledger: &Ledger<'_>) -> Option<Warning> {
    let treatments = &run.plan.treatments;
    let has_lost = |id: TreatmentId| {
        let mut slots = ledger.slots_of(id);
        slots.any(|(_, slot)| slot.kept().is_none() && !slot.is_void)
    };
    let named = |(_, treatment): (usize, &Treatment)| {
        format!("{} ({})", treatment.label, treatment.task.name())
    };
    let lost = treatments
        .iter()
        .enumerate()
        .filter(|(id, _)| has_lost(*id));
    let lost: Vec<String> = lost.map(named).collect();
    let treatment = match lost.as_slice() {
        [] => return None,
        [one] => one.clone(),
        all if all.len() == treatments.len() => "every treatment".to_owned(),
        several => format!("each of {}", several.join(", ")),
    };
    Some(Warning::RetriesExhausted { treatment })
}

/// One notice for each number of outstanding requests (L-4). Bulk is always a
/// closed loop and shows no latency, so it needs none.
fn closed_loops(run: &Run) -> Vec<Notice> {
    let mut notices: Vec<Notice> = Vec::new();
    for treatment in &run.plan.treatments {
        let load = treatment.task.load();
        let Some(load) = load.filter(|load| load.traffic() == Traffic::Closed) else {
            continue;
        };
        let warning = Warning::ClosedLoop {
            outstanding: load.connections,
        };
        match notices.iter_mut().find(|one| one.warning == warning) {
            Some(notice) => notice.treatments.push(treatment.id),
            None => notices.push(Notice {
                treatments: vec![treatment.id],
                ..Notice::of_run(warning)
            }),
        }
    }
    notices
}

/// Counts a trial's warning with those of its kind.
fn add(notices: &mut Vec<Notice>, trial: &Trial, warning: &Warning) {
    let found = notices
        .iter_mut()
        .find(|one| kind(&one.warning) == kind(warning));
    match found {
        Some(notice) => {
            notice.trials += 1;
            if let Err(place) = notice.treatments.binary_search(&trial.treatment) {
                notice.treatments.insert(place, trial.treatment);
            }
            notice.is_worst |= notice.warning != *warning;
            if severity(warning) > severity(&notice.warning) {
                notice.warning = warning.clone();
            }
        }
        None => notices.push(Notice {
            treatments: vec![trial.treatment],
            trials: 1,
            ..Notice::of_run(warning.clone())
        }),
    }
}

fn kind(warning: &Warning) -> Discriminant<Warning> {
    discriminant(warning)
}

/// Whether a run has at most one of this kind, whatever its figures.
fn is_said_once(warning: &Warning) -> bool {
    matches!(
        warning,
        Warning::CutOff { .. }
            | Warning::TooFewBlocks { .. }
            | Warning::FewRepetitions { .. }
            | Warning::NoTurns { .. }
    )
}

fn severity(warning: &Warning) -> f64 {
    match warning {
        Warning::Steal { share }
        | Warning::OtherLoad { share }
        | Warning::NearSaturation { share } => *share,
        Warning::TailLag { lag_ns, .. } => *lag_ns as f64,
        Warning::ArrivalsDistorted { distance, .. } => *distance,
        Warning::UnevenGaps { error_ns, .. } => *error_ns as f64,
        Warning::GeneratorBusy { share } => *share,
        Warning::ClientDiffers {
            p99_ns, others_ns, ..
        } => *p99_ns.max(others_ns) as f64 / (*p99_ns.min(others_ns)).max(1) as f64,
        Warning::GeneratorWasTheLimit {
            sent_share, lag_ns, ..
        } => (1.0 - sent_share) * 1e12 + *lag_ns as f64,
        Warning::LevelChanged {
            before_ns,
            after_ns,
            ..
        } => (*after_ns.max(before_ns) as f64) / (*after_ns.min(before_ns)).max(1) as f64,
        _ => 0.0,
    }
}
