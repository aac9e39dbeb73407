//! One path of a target, to look at without a run.

use plumbline_experiment::{Experiment, Placement, SpecError};
use plumbline_harness::{Path, Target, TargetError};

use crate::undo::{take_down, with_undoing};
use crate::{SessionError, begin};

/// An experiment on the path of a network, as these flags describe it.
///
/// # Errors
///
/// Flags that describe none.
pub fn path_experiment(network: &str, flags: &[(&str, String)]) -> Result<Experiment, SpecError> {
    let text = "name = \"path\"\n[[workload]]\nkind = \"rr\"\narrival = \"closed\"\n";
    let mut experiment = Experiment::parse(text, "path.toml")?;
    experiment.set_flag("network", network)?;
    experiment.set_flag("baseline", network)?;
    for (flag, value) in flags {
        experiment.set_flag(flag, value)?;
    }
    Ok(experiment)
}

/// Has a target make the path of an experiment's first treatment, does something with it, and
/// takes everything down.
///
/// # Errors
///
/// An experiment that the target cannot do, what goes wrong with the path or with the work,
/// and what could not be taken down.
pub fn on_path<T>(
    experiment: Experiment,
    target: &mut dyn Target,
    work: impl FnOnce(&dyn Path) -> Result<T, TargetError>,
) -> Result<T, SessionError> {
    let done = stand(experiment, target, work);
    let undone = take_down(target);
    with_undoing(done, undone)
}

fn stand<T>(
    experiment: Experiment,
    target: &mut dyn Target,
    work: impl FnOnce(&dyn Path) -> Result<T, TargetError>,
) -> Result<T, SessionError> {
    let (draft, _) = begin::draft(experiment, target)?;
    let plan = draft.plan;
    let Some(treatment) = plan.treatments.first() else {
        let why = "there is no path of this name".to_owned();
        return Err(SessionError::Usage(why));
    };
    begin::make(
        target,
        plan.link,
        std::slice::from_ref(treatment),
        &[treatment.id],
    )?;
    let ends = match treatment.scene.placement {
        Placement::CrossNode => [0, 1],
        Placement::SameNode => [0, 0],
    };
    target.begin_block(0);
    target.ready(treatment, &ends)?;
    let path = target.stage(treatment, ends)?;
    Ok(work(&*path)?)
}
