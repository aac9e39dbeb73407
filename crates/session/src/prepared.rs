//! A run before its next trial.

use plumbline_harness::Settings;
use plumbline_record::{Build, Run, RunDirectory, Trial};

use crate::anonymous::Anonymous;

/// A run with its directory, and how its trials are run.
pub(crate) struct Prepared {
    pub(crate) directory: RunDirectory,
    /// What is recorded and shown in place of `run` and `trials`, where names stay out.
    pub(crate) anonymous: Option<Anonymous>,
    pub(crate) run: Run,
    /// All that were kept so far.
    pub(crate) trials: Vec<Trial>,
    /// This program, where it is not the one that began the run.
    pub(crate) build: Option<Build>,
    pub(crate) settings: Settings,
}
