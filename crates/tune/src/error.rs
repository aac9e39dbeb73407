//! Why the machine was not tuned, or not put back.

use std::io;
use std::path::PathBuf;

/// Why the machine was not tuned, or not put back.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum TuneError {
    /// An ordinary user may look only.
    #[error(
        "only root may set the machine: run it with sudo; `plumbline tune --show` says what \
         would be set"
    )]
    NotRoot,
    /// Another process has the machine.
    #[error("another `plumbline tune` has set this machine; wait until its command has ended")]
    InUse,
    /// The journal or its directory could not be used.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// Others could have written the journal.
    #[error(
        "{} belongs to another user, or others may write to it: nothing is put back by it; look \
         at it, and remove it",
        path.display()
    )]
    Foreign { path: PathBuf },
    /// What is in the journal's place is none.
    #[error("{} is no journal of this program; look at it, and remove it: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        source: serde_json::Error,
    },
    /// Not one change was possible.
    #[error(
        "this machine lets none of its settings be changed: {first}; inside of a container, run \
         it outside"
    )]
    Refused { first: String },
    /// The command did not start, or could not be waited for.
    #[error("cannot run `{program}`: {source}")]
    Command { program: String, source: io::Error },
    /// The kernel did not take values back.
    #[error(
        "not everything could be put back, so the journal stays, and `plumbline tune --restore` \
         tries again: {}",
        failed.join("; ")
    )]
    Stuck { failed: Vec<String> },
}

/// Says what was done to which file when it failed.
pub(crate) trait Because<T> {
    fn because(self, action: &'static str, path: impl Into<PathBuf>) -> Result<T, TuneError>;
}

impl<T, E: Into<io::Error>> Because<T> for Result<T, E> {
    fn because(self, action: &'static str, path: impl Into<PathBuf>) -> Result<T, TuneError> {
        self.map_err(|error| TuneError::File {
            action,
            path: path.into(),
            source: error.into(),
        })
    }
}
