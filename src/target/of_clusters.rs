//! What clusters take beside the flags of a target.

use std::path::PathBuf;

/// What clusters take beside the flags of a target.
#[cfg_attr(
    not(feature = "kubernetes"),
    expect(dead_code, reason = "without clusters nobody reads it")
)]
#[derive(Default)]
pub(crate) struct OfClusters {
    /// Whether packets are to be followed.
    pub(crate) tracing: bool,
    pub(crate) across_environments: bool,
    /// Pods that are there already.
    pub(crate) between: Option<[String; 2]>,
    /// Where what a command says that makes them is kept.
    pub(crate) logs: PathBuf,
}
