//! What a run is asked for beside its experiment.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use plumbline_experiment::{Layout, Pairing};
use plumbline_harness::Target;

/// What a run is asked for beside its experiment.
#[derive(Clone, Debug)]
pub struct RunOptions<'a> {
    /// Directory in which a new run gets a directory of its own.
    pub out: &'a Path,
    /// Command line, for the record.
    pub command: Vec<String>,
    /// Record and show pseudonyms in place of names.
    pub anonymise: bool,
    /// How pairs are made of nodes; `None` for one pair.
    pub layout: Option<Layout>,
    /// Go on with a run although the environment is another.
    pub across_environments: bool,
    /// Go on with a run although another build began it.
    pub mix_builds: bool,
    /// Set when the run is to end early.
    pub interrupted: &'a AtomicBool,
}

impl RunOptions<'_> {
    /// The pairs of nodes that were asked for. Known when the target is prepared.
    pub(crate) fn pairing(&self, target: &dyn Target) -> Option<Pairing> {
        Some(Pairing {
            layout: self.layout?,
            nodes: target.nodes(),
        })
    }
}
