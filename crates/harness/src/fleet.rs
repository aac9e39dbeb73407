//! A place with many nodes.

use std::time::Duration;

use plumbline_experiment::{Ends, Treatment};
use plumbline_record::IdleSample;

use crate::{Path, TargetError};

/// A place with many nodes, between which several trials run at the same time.
/// Nodes are known by their position in [`nodes`](Self::nodes), which does not
/// change after the place was validated.
pub trait Fleet: Sync {
    /// Their names.
    fn nodes(&self) -> Vec<String>;

    /// Whether all nodes are one kernel, as namespaces of one machine are. Known
    /// when a first path stands.
    fn is_one_kernel(&self) -> bool;

    /// Sees to it that these nodes can be used, before the trials of a round. By
    /// default there is nothing to see to.
    ///
    /// # Errors
    ///
    /// What no node can be used without.
    fn ready(&self, _nodes: &[usize]) -> Result<(), TargetError> {
        Ok(())
    }

    /// Makes the path of a treatment ready, from the first of two nodes to the
    /// second. Called from a thread for each pair; no node is asked for twice at
    /// the same time.
    ///
    /// # Errors
    ///
    /// As [`Target::path`](crate::Target::path).
    fn path_between(
        &self,
        treatment: &Treatment,
        ends: Ends,
    ) -> Result<Box<dyn Path + Send>, TargetError>;

    /// Measures a node without load, for `length`.
    ///
    /// # Errors
    ///
    /// A node that does not answer.
    fn rest(&self, node: usize, length: Duration) -> Result<IdleSample, TargetError>;
}
