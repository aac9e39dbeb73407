//! What an exercise is given, and what it has to give.

use std::sync::atomic::AtomicBool;

use plumbline_experiment::{Family, NeighbourKind, Slice, Timing, Workload};
use plumbline_record::{GateFailure, IdleSample, Observation, ProcessCpu, Warning};

use crate::agent::TrialError;
use crate::path::Path;
use crate::proof::Least;
use crate::settings::Settings;
use crate::snapshot::PathSnapshot;
use crate::together::Ticket;

/// What an exercise is given beside its task.
pub(crate) struct TrialOrder<'a> {
    /// Of the arrivals.
    pub(crate) seed: u64,
    /// The machines without load.
    pub(crate) idle: IdleSample,
    pub(crate) settings: &'a Settings,
    pub(crate) interrupted: &'a AtomicBool,
    /// Trials that start at the same moment.
    pub(crate) others: Option<Ticket<'a>>,
    /// The slices in which it takes turns with these.
    pub(crate) slices: Option<Vec<Slice>>,
    /// What works beside the path meanwhile.
    pub(crate) neighbour: Option<NeighbourExercise>,
}

impl<'a> TrialOrder<'a> {
    /// Of a trial with nothing beside it, and on machines of which nothing is known.
    pub(crate) fn alone(seed: u64, settings: &'a Settings, interrupted: &'a AtomicBool) -> Self {
        Self {
            seed,
            idle: IdleSample::default(),
            settings,
            interrupted,
            others: None,
            slices: None,
            neighbour: None,
        }
    }
}

/// What each neighbour of a treatment does.
#[derive(Clone, Debug)]
pub(crate) struct NeighbourExercise {
    pub(crate) kind: NeighbourKind,
    /// The load of the treatment, where neighbours do the same.
    pub(crate) alike: Option<Workload>,
    pub(crate) family: Family,
    pub(crate) timing: Timing,
}

/// What an exercise saw. The trial adds what was counted on the path around it.
pub(crate) struct Done {
    pub(crate) seen: Observation,
    /// The packets that the path must have carried.
    pub(crate) least: Least,
    /// What was counted on the path when it had carried them, where nobody knows what is
    /// left of it at the end.
    pub(crate) counted: Option<PathSnapshot>,
}

/// What does a task between two sites, and judges what was seen of it.
pub(crate) trait Exercise: Sync {
    /// Does it once, with fresh agents.
    fn run(&self, path: &dyn Path, order: TrialOrder<'_>) -> Result<Done, TrialError>;

    /// The gates that an observation fails; none when it may be believed.
    fn judge(&self, seen: &Observation, settings: &Settings) -> Vec<GateFailure>;

    /// What to distrust in an observation.
    fn distrust(&self, seen: &Observation, settings: &Settings) -> Vec<Warning>;

    /// CPU of its own agents over the window: where others run beside it on the
    /// same kernel, it is theirs to leave out.
    fn own_cpu(&self, seen: &Observation) -> ProcessCpu;
}
