//! Why a comparison could not be made.

use std::io;
use std::net::SocketAddr;

use plumbline_lab::LabError;
use plumbline_sys::process::ProcessError;

/// Why nothing was asked for that could be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum OrderError {
    #[error("--pairs and --seconds must be at least 1")]
    Nothing,
    #[error("--only {name}: there is no such comparison; there are {}", known.join(", "))]
    Unknown {
        name: String,
        known: Vec<&'static str>,
    },
}

/// Why a comparison could not be made, or not be finished.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ValidationError {
    /// The path could not be built.
    #[error(transparent)]
    Lab(#[from] LabError),
    #[error("this process may run on no CPU at all; `taskset -p` shows its CPUs")]
    NoCpu,
    #[error("`{0}` is not installed; install it, or leave it out with --only")]
    NotInstalled(String),
    #[error("{command}: {source}")]
    Process {
        command: String,
        source: ProcessError,
    },
    #[error(
        "`{program}` did not listen on {address} within {seconds} s; is the machine overloaded?"
    )]
    NotListening {
        program: String,
        address: SocketAddr,
        seconds: u64,
    },
    #[error("`{program}` ended before it listened on {address}; start it by hand to see why")]
    EndedEarly {
        program: String,
        address: SocketAddr,
    },
    #[error(
        "`{tool}` gave no {key}: this version of it writes its results in another form; \
         use another version, or leave it out with --only"
    )]
    NoFigure { tool: String, key: String },
    #[error("`{tool}` wrote no JSON ({source}); use another version, or leave it out with --only")]
    NoJson {
        tool: String,
        source: serde_json::Error,
    },
    #[error(
        "`{command}` saw {errors} errors, so it did not measure what was asked for; does its server answer?"
    )]
    Errors { command: String, errors: u64 },
    #[error("the receiver saw messages that were not as they were sent; please report this")]
    Corrupt,
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
