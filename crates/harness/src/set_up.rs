//! What a target set up to be ready, such as a cluster that is made for the run.
//!
//! That is no exercise: no treatment asks for it, and there is no path yet. It is
//! recorded in a line of its own, before the trial that it was done for.

use plumbline_record::{Common, Observation, TrialStatus, What};

use crate::target::Target;

/// A set-up as it is recorded.
pub(crate) struct Recorded {
    pub(crate) took_ns: u64,
    pub(crate) status: TrialStatus,
    pub(crate) seen: Observation,
}

/// What the target set up to be ready, if anything; `fault` is why it is not.
pub(crate) fn recorded(target: &mut dyn Target, fault: Option<&str>) -> Option<Recorded> {
    let set_up = target.set_up()?;
    let status = if set_up.came_up {
        TrialStatus::Valid
    } else {
        let unsaid = || format!("the network {} did not come up", set_up.network);
        TrialStatus::Failed {
            error: fault.map_or_else(unsaid, str::to_owned),
        }
    };
    Some(Recorded {
        took_ns: set_up.took_ns.saturating_add(set_up.paths_ns.unwrap_or(0)),
        status,
        seen: Observation {
            common: Common::default(),
            what: What::SetUp(Box::new(set_up)),
        },
    })
}
