//! One combination of factor levels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Scene, Task, Timing};

/// Index of a treatment in [`Plan::treatments`](crate::Plan::treatments).
pub type TreatmentId = usize;

/// One combination of levels: what a trial runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Treatment {
    /// Position in the plan.
    pub id: TreatmentId,
    /// Unique name in tables, such as `vxlan`, or `vxlan same-node` where
    /// placement varies too, or `host-gw#2` for the second copy in an A/A
    /// experiment. Says nothing of the task: treatments of different tasks
    /// share labels; label and task's name together are unique.
    pub label: String,
    /// What the packets go through.
    #[serde(flatten)]
    pub scene: Scene,
    /// Which copy of the scene this is, from 1: an A/A experiment has several.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub copy: u32,
    /// What its trials do.
    #[serde(flatten)]
    pub task: Task,
    /// Phases of each trial.
    pub timing: Timing,
    /// The treatment that this one is compared with; `None` for a baseline itself.
    pub baseline: Option<TreatmentId>,
}

fn first() -> u32 {
    1
}

fn is_first(copy: &u32) -> bool {
    *copy == 1
}

impl Treatment {
    /// Its task as it is done in its scene: with what is planted there.
    pub fn performed(&self) -> Task {
        let mut task = self.task.clone();
        if let Some(load) = task.load_mut() {
            load.think_ns = load.think_ns.saturating_add(self.scene.planted_ns);
        }
        task
    }

    /// Whether two treatments are equal in all but the network under test, so
    /// that they may be compared.
    pub fn is_like(&self, other: &Self) -> bool {
        self.scene.but_network() == other.scene.but_network()
            && self.task == other.task
            && self.timing == other.timing
    }

    /// Whether another one is the same with less laid on the path.
    pub(crate) fn is_dressed_like(&self, bare: &Self) -> bool {
        self.scene.barer().contains(&bare.scene)
            && self.task == bare.task
            && self.timing == bare.timing
    }

    /// Whether two treatments of two networks are equal in all but that, and in who
    /// enforces their policies, as each network's own system does.
    pub(crate) fn is_like_of_own(&self, other: &Self) -> bool {
        let mut here = self.clone();
        here.scene.policies.enforcer = other.scene.policies.enforcer;
        self.scene.network != other.scene.network && here.is_like(other)
    }

    /// Whether the difference to another one is of one kind: the network's with its own
    /// system, or that of what is laid on the path.
    pub(crate) fn may_be_compared_with(&self, reference: &Self) -> bool {
        self.is_like(reference) || self.is_like_of_own(reference) || self.is_dressed_like(reference)
    }
}
