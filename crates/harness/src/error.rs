//! Why a target could not do what was asked.

/// Why a target could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The target, the kernel, the privileges or the cluster lack something. A
    /// value, not a fault: runs leave the network out and say so, tests count a
    /// skip.
    #[error("{what} is not supported here: {needs}")]
    Unsupported {
        /// The network or feature.
        what: String,
        /// What is missing, and how to get it.
        needs: String,
    },
    /// No packet gets through a path; why.
    #[error("{0}")]
    Unreached(String),
    /// Something that should have worked did not. The text holds what, on
    /// what, the probable cause and the remedy.
    #[error("{0}")]
    Failed(String),
}
