//! Whether a path leads to its receiver at all.

use std::sync::atomic::AtomicBool;

use plumbline_experiment::{Timing, Workload, WorkloadKind};
use plumbline_record::IdleSample;

use crate::agent::TrialError;
use crate::error::TargetError;
use crate::exercise::{LoadExercise, TrialOrder};
use crate::path::Path;
use crate::settings::Settings;
use crate::trial;

/// Sends a few requests over a path, to see that it leads to the receiver
/// before anything is measured on it. Where there are several receivers, enough
/// connections are made that hardly one of them is left out.
///
/// # Errors
///
/// What the agents say: refused, timed out, not answered.
pub fn reach(path: &dyn Path, interrupted: &AtomicBool) -> Result<(), TargetError> {
    let connections = match path.further_servers().len() as u32 {
        0 => 1,
        further => 8 * (further + 1),
    };
    let few = LoadExercise {
        workload: Workload {
            connections,
            ..Workload::of_kind(WorkloadKind::Rr)
        },
        timing: Timing {
            warm_up_ns: 0,
            measure_ns: 20_000_000,
            drain_ns: 1_000_000_000,
        },
    };
    let order = TrialOrder {
        seed: 1,
        idle: IdleSample::default(),
        settings: &Settings::anywhere(),
        interrupted,
        others: None,
        slices: None,
    };
    match trial::run(path, &few, order) {
        Ok((seen, _)) if seen.load().is_some_and(|it| it.load.completed > 0) => Ok(()),
        Ok(_) => Err(TargetError::Failed("no request was answered".to_owned())),
        Err(TrialError::Target(error)) => Err(error),
        Err(error) => Err(TargetError::Failed(error.to_string())),
    }
}
