//! What an exercise is given, and what it has to give.

use std::sync::atomic::AtomicBool;

use plumbline_experiment::Slice;
use plumbline_record::{GateFailure, IdleSample, Observation, ProcessCpu, Warning};

use crate::agent::TrialError;
use crate::path::Path;
use crate::proof::Least;
use crate::settings::Settings;
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
}

/// What an exercise saw. The trial adds what was counted on the path around it.
pub(crate) struct Done {
    pub(crate) seen: Observation,
    /// The packets that the path must have carried.
    pub(crate) least: Least,
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
