//! Why there is no run, or only a part of one.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use plumbline_experiment::SpecError;
use plumbline_harness::{HarnessError, SearchFailure, TargetError};
use plumbline_record::{AnonymityError, RunDirectoryError};
use plumbline_report::compare::CompareError;

/// Why there is no run, or only a part of one.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The experiment is wrong, or asks for what the target does not have.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A contradictory or meaningless request; the text says the remedy.
    #[error("{0}")]
    Usage(String),
    /// The target could not be prepared or looked at.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// Packets do not get through what everything is compared with, or through anything.
    #[error("{}; there is nothing left to compare", .0.join("; "))]
    CarriesNothing(Vec<String>),
    /// A maximum that loads are shares of was not found.
    #[error("{failure}; {}", kept_at(.kept))]
    Search {
        /// Why.
        failure: SearchFailure,
        /// Where the trials of the search are, or why they could not be kept;
        /// `None` when there were none.
        kept: Option<Box<Result<PathBuf, RunDirectoryError>>>,
    },
    /// The run directory could not be made, read or written.
    #[error(transparent)]
    Directory(#[from] RunDirectoryError),
    /// The environment is not the one that the run began in.
    #[error(transparent)]
    Environment(#[from] CompareError),
    /// The program cannot find out which build it is.
    #[error("this program cannot be read, so its records could not say which build made them")]
    Build(#[source] io::Error),
    /// The record could not be written without names.
    #[error(transparent)]
    Anonymity(#[from] AnonymityError),
    /// What belongs to the target could not be put into the run directory.
    #[error("the run directory could not take what the target keeps there")]
    Logs(#[source] io::Error),
    /// The run could not go on.
    #[error(transparent)]
    Harness(#[from] HarnessError),
    /// The target could not be taken down.
    #[error(transparent)]
    LeftBehind(#[from] LeftBehind),
    /// Something went wrong, and then the target could not be taken down either.
    #[error("{}; and {left}", with_causes(.first))]
    Both {
        /// What went wrong first. It is told within the sentence, so it is no source.
        first: Box<SessionError>,
        /// What is left.
        left: LeftBehind,
    },
}

impl SessionError {
    /// Whether the command line or the experiment is at fault, and not the machine.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Spec(_) | Self::Usage(_) => true,
            Self::Both { first, .. } => first.is_usage(),
            _ => false,
        }
    }
}

/// An error with its causes, the outermost first. Many say theirs themselves, which is not told
/// again.
pub fn with_causes(error: &dyn Error) -> String {
    let chain = std::iter::successors(Some(error), |&it| it.source());
    let told = (chain.map(ToString::to_string)).reduce(|told, cause| match &*cause {
        cause if told.contains(cause) => told,
        cause => format!("{told}: {cause}"),
    });
    told.unwrap_or_default()
}

/// What could not be undone.
#[derive(Debug, thiserror::Error)]
#[error("the {target} could not be taken down cleanly: {}", list(.errors))]
pub struct LeftBehind {
    pub(crate) target: &'static str,
    pub(crate) errors: Vec<TargetError>,
}

/// Each once, however many things it kept.
fn list(errors: &[TargetError]) -> String {
    let mut all: Vec<String> = Vec::new();
    for error in errors.iter().map(ToString::to_string) {
        if !all.contains(&error) {
            all.push(error);
        }
    }
    all.join("; ")
}

fn kept_at(kept: &Option<Box<Result<PathBuf, RunDirectoryError>>>) -> String {
    match kept.as_deref() {
        None => "it had no trials".to_owned(),
        Some(Ok(path)) => format!("its trials are in {}", path.display()),
        Some(Err(error)) => format!("its trials could not be kept: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the program tells errors: with all that they came from.
    #[test]
    fn what_went_wrong_first_is_told_once_and_as_a_whole() {
        let first = Box::new(SessionError::Logs(io::Error::other("the disk is full")));
        let left = LeftBehind {
            target: "hosts",
            errors: vec![TargetError::Failed("ssh to b".to_owned())],
        };
        let told = with_causes(&SessionError::Both { first, left });
        for part in ["the run directory", "the disk is full", "ssh to b"] {
            assert_eq!(told.matches(part).count(), 1, "{part}: {told}");
        }
    }

    #[test]
    fn a_cause_that_an_error_tells_itself_is_not_told_again() {
        #[derive(Debug, thiserror::Error)]
        #[error("line 3: {0}")]
        struct TellsIt(#[source] io::Error);

        #[derive(Debug, thiserror::Error)]
        #[error("the file")]
        struct DoesNot(#[source] TellsIt);

        let error = DoesNot(TellsIt(io::Error::other("torn")));
        assert_eq!(with_causes(&error), "the file: line 3: torn");
    }
}
