//! Agents: one process per endpoint, started in its namespace.

use std::path::PathBuf;
use std::time::Duration;

use plumbline_harness::{AgentLink, Launched, TargetError};
use plumbline_sys::process::Command;

use crate::error::LabError;
use crate::place::Place;

/// How agents are started, and which ones still run.
#[derive(Clone, Debug)]
pub struct Launcher {
    program: PathBuf,
    arguments: Vec<String>,
    running: Launched,
}

impl Launcher {
    /// Agents are `program` with `arguments`.
    pub fn new(program: PathBuf, arguments: Vec<String>) -> Self {
        Self {
            program,
            arguments,
            running: Launched::default(),
        }
    }

    /// Whether the program is there.
    pub(crate) fn check(&self) -> Result<(), LabError> {
        match std::fs::metadata(&self.program) {
            Ok(_) => Ok(()),
            Err(source) => Err(LabError::Agent {
                program: self.program.display().to_string(),
                source,
            }),
        }
    }

    /// Starts an agent in `place`. It dies with the calling thread (see
    /// [`Command::spawn_in`]).
    pub(crate) fn start(&self, place: &Place) -> Result<AgentLink, TargetError> {
        let command = Command::new(&self.program).args(&self.arguments);
        let child = command.spawn_in(&place.namespace).map_err(LabError::from)?;
        let explain = |error| LabError::from(error).into();
        Ok(self.running.link(child, explain))
    }

    /// Kills and reaps every agent that still runs.
    pub(crate) fn end_all(&self) {
        self.running.end_all(Duration::from_secs(1));
    }
}
