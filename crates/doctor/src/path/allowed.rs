//! What a user allows beside looking.

use clap::Args;

/// What may be done on a path beside looking.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct PathTrials {
    /// Switch offloads on the path off for a moment, to see whether one is broken
    #[arg(id = "try_offloads", long = "try-offloads", requires = "path")]
    pub offloads: bool,
    /// Run the commands of remedies and look whether what they are for is gone, in a lab
    #[arg(id = "try_remedies", long = "try-remedies", requires = "path")]
    pub remedies: bool,
    /// In a cluster, make a pod on each node that may load programs into the node's kernel, which
    /// see what it drops
    #[arg(id = "allow_tracing", long = "allow-tracing", requires = "path")]
    pub tracing: bool,
    /// Whether the path is of this machine's own kernel: then, as root, a program in it sees what
    /// it drops, and the maps of its programs are counted.
    #[arg(skip)]
    pub of_this_kernel: bool,
}
