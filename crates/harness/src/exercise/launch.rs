//! Pods that are launched on the nodes of a path. The target does it, and says what became
//! of each.

use std::sync::atomic::Ordering;

use plumbline_experiment::Launch;
use plumbline_record::{Common, GateFailure, Observation, PodLaunch, ProcessCpu, Warning, What};

use super::order::{Done, Exercise, TrialOrder};
use crate::agent::TrialError;
use crate::path::Path;
use crate::proof::Least;
use crate::settings::Settings;

/// How many of 100 pods have to have their network: a trial that lacks more says nothing of
/// their quantiles.
const LEAST_UP_OF_100: usize = 99;

/// A launch of pods.
pub(crate) struct LaunchExercise {
    pub(crate) task: Launch,
}

impl Exercise for LaunchExercise {
    /// What comes together with it does not wait for it. The packets of its pods cross
    /// devices of their own, so none are held against those of the path.
    fn run(&self, path: &dyn Path, mut order: TrialOrder<'_>) -> Result<Done, TrialError> {
        drop(order.others.take());
        let launcher = path.launch(&self.task, order.interrupted);
        let seen = launcher.and_then(|launch| launch());
        if order.interrupted.load(Ordering::SeqCst) {
            return Err(TrialError::Interrupted);
        }
        Ok(Done {
            seen: Observation {
                common: Common::default(),
                what: What::Launch(Box::new(seen?)),
            },
            least: Least::default(),
            counted: None,
        })
    }

    fn judge(&self, seen: &Observation, _: &Settings) -> Vec<GateFailure> {
        let Some(seen) = seen.launch() else {
            return Vec::new();
        };
        let (up, launched) = (seen.up(), seen.pods.len());
        if up > 0 && up * 100 >= launched * LEAST_UP_OF_100 {
            return Vec::new();
        }
        let first = seen.pods.iter().find(|it| it.up_ns().is_none());
        vec![GateFailure::NoNetwork {
            pods: (launched - up) as u64,
            launched: launched as u64,
            detail: first.map_or_else(|| "nothing was launched".to_owned(), what_it_met),
        }]
    }

    fn distrust(&self, _: &Observation, _: &Settings) -> Vec<Warning> {
        Vec::new()
    }

    fn own_cpu(&self, _: &Observation) -> ProcessCpu {
        ProcessCpu::default()
    }
}

/// Why a pod has no network.
fn what_it_met(pod: &PodLaunch) -> String {
    let silent = match (pod.first_out_ns, pod.first_in_ns) {
        (None, None) => "no packet passed either way",
        (None, Some(_)) => "no packet came out of it",
        (_, None) => "no packet reached it",
        (Some(_), Some(_)) => "packets passed",
    };
    pod.error.clone().unwrap_or_else(|| silent.to_owned())
}

#[cfg(test)]
mod tests;
