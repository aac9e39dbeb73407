//! Why a comparison could not be made.

use std::io;
use std::net::SocketAddr;

use plumbline_lab::LabError;
use plumbline_sys::process::ProcessError;

/// Why nothing was asked for that could be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum OrderError {
    /// Nothing would be measured.
    #[error("--pairs and --seconds must be at least 1")]
    Nothing,
    /// There is no comparison of that name.
    #[error("--only {name}: there is no such comparison; there are {}", known.join(", "))]
    Unknown {
        name: String,
        known: Vec<&'static str>,
    },
}

/// Why a comparison could not be made, or not be finished.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ValidationError {
    /// The path could not be built.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// This process may not run anywhere.
    #[error("this process may run on no CPU at all; `taskset -p` shows its CPUs")]
    NoCpu,
    /// A program is missing.
    #[error("`{0}` is not installed; install it, or leave it out with --only")]
    NotInstalled(String),
    /// A program could not be started, or ended badly.
    #[error("{command}: {source}")]
    Process {
        command: String,
        source: ProcessError,
    },
    /// A server that nobody can reach.
    #[error(
        "`{program}` did not listen on {address} within {seconds} s; is the machine overloaded?"
    )]
    NotListening {
        program: String,
        address: SocketAddr,
        seconds: u64,
    },
    /// A server that ended before it listened.
    #[error("`{program}` ended before it listened on {address}; start it by hand to see why")]
    EndedEarly {
        program: String,
        address: SocketAddr,
    },
    /// A tool writes otherwise than the version that is understood here.
    #[error(
        "`{tool}` gave no {key}: this version of it writes its results in another way; \
         use another version, or leave it out with --only"
    )]
    NoFigure { tool: String, key: String },
    /// A tool wrote no JSON.
    #[error("`{tool}` wrote no JSON ({source}); use another version, or leave it out with --only")]
    NoJson {
        tool: String,
        source: serde_json::Error,
    },
    /// Requests failed.
    #[error("`{command}` saw {errors} errors, so that what it measured is not what was asked for")]
    Errors { command: String, errors: u64 },
    /// The receiver of messages saw others than were sent.
    #[error("the receiver saw messages that were not as they were sent; please report this")]
    Corrupt,
    /// No rate without loss was found.
    #[error("messages were lost at every rate that was tried; is the machine overloaded?")]
    Lossy,
    /// Two loads that were to be equal were not (D3).
    #[error(
        "{connections} connections were to carry {asked:.0}/s and carried {carried:.0}/s; \
         is the machine overloaded?"
    )]
    Unequal {
        connections: u32,
        asked: f64,
        carried: f64,
    },
    /// The system refused.
    #[error("cannot {doing}: {source}")]
    System {
        doing: &'static str,
        source: io::Error,
    },
}

/// Says what was being done when the system refused.
pub(crate) trait Doing<T> {
    fn when(self, doing: &'static str) -> Result<T, ValidationError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn when(self, doing: &'static str) -> Result<T, ValidationError> {
        self.map_err(|source| ValidationError::System { doing, source })
    }
}
