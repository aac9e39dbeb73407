//! What became of the NetworkPolicy of a run.

use std::collections::BTreeSet;
use std::net::IpAddr;

/// What became of the policy that a run wants.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RunPolicy {
    /// The user wants none, or nobody else is in the cluster.
    Unwanted,
    /// It is made before the first pod.
    Wanted,
    /// It stands, and also admits these addresses of nodes.
    Stands(BTreeSet<IpAddr>),
    /// The run goes on without, for this reason.
    Missing(String),
}
