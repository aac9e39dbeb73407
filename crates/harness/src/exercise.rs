//! What a trial does on its path, and what has to be done before there is one.

pub(crate) mod load;
mod order;
pub(crate) mod set_up;

use plumbline_experiment::Treatment;

pub(crate) use order::{Done, Exercise, TrialOrder};

/// The exercise of a treatment.
pub(crate) fn of(_treatment: &Treatment) -> &'static dyn Exercise {
    &load::LoadExercise
}
