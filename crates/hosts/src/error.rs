//! What can go wrong with two hosts.

use plumbline_harness::TargetError;
use plumbline_sys::process::ProcessError;

/// Why two hosts could not be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum HostsError {
    /// A value of a flag that makes no sense.
    #[error("{0}")]
    Options(String),
    /// The program that is to be copied.
    #[error("the program `{program}` cannot be copied to the hosts: {why}")]
    Program { program: String, why: String },
    /// `ssh` could not connect, or was cut off; in the middle of what, where nobody else says.
    #[error("ssh to {host}{stage}: {why}")]
    Ssh {
        host: String,
        stage: &'static str,
        why: String,
    },
    /// The login worked, but the program could not be put there or run.
    #[error("on {host}: {why}")]
    Host { host: String, why: String },
    /// The wanted network or server is not there.
    #[error("{what} is not supported here: {needs}")]
    Unsupported { what: String, needs: String },
    /// This machine gives no random name for ssh's socket.
    #[error("no random number could be read: {0}; is /dev/urandom there?")]
    Random(#[source] std::io::Error),
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
    /// A process of ours.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// What the agent on a host answered.
    #[error(transparent)]
    Target(#[from] TargetError),
}

impl HostsError {
    /// Something that failed on a host.
    pub(crate) fn on(host: &str, why: impl Into<String>) -> Self {
        Self::Host {
            host: host.to_owned(),
            why: why.into(),
        }
    }
}

impl From<HostsError> for TargetError {
    fn from(error: HostsError) -> Self {
        match error {
            HostsError::Unsupported { what, needs } => Self::Unsupported { what, needs },
            HostsError::Target(error) => error,
            other => Self::Failed(other.to_string()),
        }
    }
}
