//! What a trial is told to do, and what it has to give.

use std::sync::atomic::AtomicBool;

use plumbline_experiment::Treatment;
use plumbline_record::{GateFailure, IdleSample, Observation, ProcessCpu, Warning};

use crate::agent::TrialError;
use crate::path::Path;
use crate::proof::Least;
use crate::settings::Settings;
use crate::together::Ticket;

/// What a trial is to do.
pub(crate) struct TrialOrder<'a> {
    pub(crate) treatment: &'a Treatment,
    /// Of the arrivals.
    pub(crate) seed: u64,
    /// The machines without load.
    pub(crate) idle: IdleSample,
    pub(crate) settings: &'a Settings,
    pub(crate) interrupted: &'a AtomicBool,
    /// Trials that start at the same moment.
    pub(crate) others: Option<Ticket<'a>>,
}

/// What an exercise saw. The trial adds what was counted on the path around it.
pub(crate) struct Done {
    pub(crate) seen: Observation,
    /// The packets that the path must have carried.
    pub(crate) least: Least,
}

/// A kind of thing that a trial does between two sites.
pub(crate) trait Exercise: Sync {
    /// Does it once, with fresh agents.
    fn run(&self, path: &dyn Path, order: TrialOrder<'_>) -> Result<Done, TrialError>;

    /// The gates that an observation fails; none when it may be believed.
    fn judge(
        &self,
        treatment: &Treatment,
        seen: &Observation,
        settings: &Settings,
    ) -> Vec<GateFailure>;

    /// What to distrust in an observation.
    fn distrust(
        &self,
        treatment: &Treatment,
        seen: &Observation,
        settings: &Settings,
    ) -> Vec<Warning>;

    /// CPU of its own agents over the window: where others run beside it on the
    /// same kernel, it is theirs to leave out.
    fn own_cpu(&self, seen: &Observation) -> ProcessCpu;
}
