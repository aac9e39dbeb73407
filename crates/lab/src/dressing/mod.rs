//! What is laid on a path that stands, and taken off by its journal: rules on the nodes,
//! as other systems write them.

mod dressed;
mod listener;
mod policies;
mod rule_writer;
mod services;

use plumbline_experiment::{Policies, Scene, Selected, Services};

use crate::error::LabError;
use crate::journal::Journal;
pub(crate) use dressed::{BarePath, Dressed};

/// What is laid on a path. Nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dressing {
    /// Services on every node.
    pub services: Services,
    /// Policies on the nodes of pods.
    pub policies: Policies,
}

impl Dressing {
    /// That of a scene.
    pub(crate) fn of(scene: &Scene) -> Self {
        Self {
            services: scene.services,
            policies: scene.policies,
        }
    }

    /// Pods that have to stand beside the receiver.
    pub(crate) fn neighbours(self) -> usize {
        usize::from(self.policies.selects == Selected::Others)
    }

    /// Lays it on a path, and waits until it acts.
    ///
    /// # Errors
    ///
    /// [`LabError::Unsupported`] where a program or the kernel lacks something, or the
    /// packets of the network do not meet the rules.
    pub(crate) fn put_on(
        self,
        path: BarePath<'_>,
        journal: &mut Journal,
    ) -> Result<Dressed, LabError> {
        let dressed = match self.services.is_none() {
            true => Dressed::default(),
            false => services::put_on(self.services, path, journal)?,
        };
        match self.policies.is_none() {
            true => Ok(dressed),
            false => policies::put_on(self.policies, path, dressed, journal),
        }
    }
}
