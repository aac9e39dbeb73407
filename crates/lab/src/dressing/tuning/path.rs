//! The path that settings are laid on, and why one may not be.

use std::sync::Arc;

use plumbline_experiment::{Family, Tuning};

use crate::error::LabError;
use crate::hop::Hop;
use crate::network::About;
use crate::place::Place;
use crate::topology::Topology;

/// What settings are laid on.
pub(super) struct TunedPath<'a> {
    pub(super) tuning: Tuning,
    pub(super) about: &'a About,
    pub(super) topology: &'a Topology,
    /// The devices of the path.
    pub(super) hops: &'a [Hop],
}

/// Why a setting could not be laid on a path.
pub(super) enum Refused {
    /// What it takes.
    Lacks(String),
    Failed(LabError),
}

impl From<LabError> for Refused {
    fn from(error: LabError) -> Self {
        Self::Failed(error)
    }
}

impl TunedPath<'_> {
    /// Where the endpoints are, each namespace once.
    pub(super) fn ends(&self) -> Vec<&Arc<Place>> {
        let first = self.hops.first().map(|hop| &hop.place);
        let last = self.hops.last().map(|hop| &hop.place);
        let mut ends: Vec<&Arc<Place>> = first.into_iter().chain(last).collect();
        ends.dedup_by(|one, other| Arc::ptr_eq(one, other));
        ends
    }

    /// The one for IPv4, or the one for IPv6.
    pub(super) fn of_family<T>(&self, [v4, v6]: [T; 2]) -> T {
        match self.topology.addressing.family() {
            Family::V4 => v4,
            Family::V6 => v6,
        }
    }
}

/// What a network would be given that it has.
pub(super) fn is_so_already() -> Refused {
    Refused::Lacks("it is so already, so that nothing would differ".to_owned())
}
