//! How a trial does its task on a path.

mod agents;
mod launch;
mod load;
mod neighbour;
mod order;
mod probing;
mod programming;
mod survive;

use plumbline_experiment::{Task, Treatment};

use launch::LaunchExercise;
pub(crate) use load::LoadExercise;
pub(crate) use order::{Done, Exercise, NeighbourExercise, TrialOrder};
use programming::ProgrammingExercise;
use survive::SurviveExercise;

/// What each neighbour of a treatment does meanwhile.
pub(crate) fn beside(treatment: &Treatment) -> Option<NeighbourExercise> {
    let neighbours = treatment.scene.neighbours;
    (!neighbours.is_none()).then_some(NeighbourExercise {
        kind: neighbours.kind,
        alike: match treatment.performed() {
            Task::Load(load) if neighbours.are_alike() => Some(load),
            _ => None,
        },
        family: treatment.scene.family,
        timing: treatment.timing,
    })
}

/// The exercise that does the task of a treatment.
pub(crate) fn of(treatment: &Treatment) -> Box<dyn Exercise> {
    match treatment.performed() {
        Task::Load(workload) => Box::new(LoadExercise {
            workload,
            timing: treatment.timing,
        }),
        Task::Programming(task) => Box::new(ProgrammingExercise {
            task,
            timing: treatment.timing,
        }),
        Task::Launch(task) => Box::new(LaunchExercise { task }),
        Task::Survive(task) => Box::new(SurviveExercise {
            task,
            timing: treatment.timing,
        }),
    }
}
