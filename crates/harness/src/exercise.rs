//! What a trial does on its path.

pub(crate) mod load;

use plumbline_experiment::Treatment;
use plumbline_record::{GateFailure, Observation, Warning};

use crate::agent::TrialError;
use crate::path::Path;
use crate::proof::Least;
use crate::settings::Settings;
use crate::trial::Order;

/// What an exercise saw. The trial adds what was counted on the path around it.
pub(crate) struct Done {
    pub(crate) seen: Observation,
    /// The packets that the path must have carried.
    pub(crate) least: Least,
}

/// A kind of thing that a trial does between two sites.
pub(crate) trait Exercise: Sync {
    /// Does it once, with fresh agents.
    fn run(&self, path: &dyn Path, order: Order<'_>) -> Result<Done, TrialError>;

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
}

/// The exercise of a treatment.
pub(crate) fn of(_treatment: &Treatment) -> &'static dyn Exercise {
    &load::Load
}
