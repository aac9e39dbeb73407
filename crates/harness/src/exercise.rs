//! How a trial does its task on a path.

mod load;
mod order;

use plumbline_experiment::{Task, Treatment};

pub(crate) use load::LoadExercise;
pub(crate) use order::{Done, Exercise, TrialOrder};

/// The exercise that does the task of a treatment.
pub(crate) fn of(treatment: &Treatment) -> Box<dyn Exercise> {
    match treatment.performed() {
        Task::Load(workload) => Box::new(LoadExercise {
            workload,
            timing: treatment.timing,
        }),
    }
}
