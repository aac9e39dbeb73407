//! Why a load is refused, or does not begin.

use std::net::SocketAddr;

use plumbline_engine::EngineError;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum GeneratorError {
    /// The engine refuses the load, or cannot run it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("{target} {what}; {remedy}")]
    Misunderstood {
        target: SocketAddr,
        what: &'static str,
        remedy: String,
    },
    /// Flags that cannot be meant; the text says the remedy.
    #[error("{0}")]
    Refused(String),
    #[error("--find-max: {0}")]
    Search(String),
}

impl GeneratorError {
    /// Whether the request is at fault, and not the machine or the network.
    pub fn is_bad_usage(&self) -> bool {
        match self {
            Self::Engine(error) => error.is_bad_usage(),
            Self::Misunderstood { .. } => false,
            Self::Refused(_) | Self::Search(_) => true,
        }
    }
}
