//! Agents: one process per endpoint, started in its namespace.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use plumbline_harness::{AgentLink, AgentProcess, TargetError};
use plumbline_sys::process::{Child, Command};

use crate::error::LabError;
use crate::place::Place;

/// How agents are started, and which ones still run.
#[derive(Clone, Debug)]
pub struct Launcher {
    program: PathBuf,
    arguments: Vec<String>,
    running: Arc<Mutex<Vec<Weak<Mutex<Child>>>>>,
}

impl Launcher {
    /// Agents are `program` with `arguments`.
    pub fn new(program: PathBuf, arguments: Vec<String>) -> Self {
        Self {
            program,
            arguments,
            running: Arc::default(),
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
        let mut child = command.spawn_in(&place.namespace).map_err(LabError::from)?;
        let (Some(input), Some(output)) = (child.take_stdin(), child.take_stdout()) else {
            unreachable!("a command pipes both streams");
        };
        let child = Arc::new(Mutex::new(child));
        let mut running = lock(&self.running);
        running.retain(|other| other.strong_count() > 0);
        running.push(Arc::downgrade(&child));
        Ok(AgentLink {
            input: Box::new(input),
            output: Box::new(output),
            process: Box::new(AgentChild(child)),
        })
    }

    /// Kills and reaps every agent that still runs. Without it an agent that a
    /// harness forgot would hold its namespace.
    pub(crate) fn end_all(&self) {
        for child in lock(&self.running).drain(..).filter_map(|it| it.upgrade()) {
            let mut child = lock(&child);
            child.kill();
            // The status of a process that was just killed says nothing.
            let _ = child.wait(Duration::from_secs(1));
        }
    }
}

struct AgentChild(Arc<Mutex<Child>>);

impl AgentProcess for AgentChild {
    fn kill(&mut self) {
        lock(&self.0).kill();
    }

    fn wait(&mut self, limit: Duration) -> Result<(), TargetError> {
        lock(&self.0)
            .wait(limit)
            .map_err(|error| LabError::from(error).into())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
