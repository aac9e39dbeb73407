//! Agents that are processes of this machine, and which of them still run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use plumbline_sys::process::{Child, ProcessError};

use crate::error::TargetError;
use crate::path::{AgentLink, AgentProcess};

/// The processes of agents. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Launched(Arc<Mutex<Vec<Weak<Mutex<Child>>>>>);

impl Launched {
    /// The agent that a process carries, which was just started; `explain` says what
    /// its end means.
    pub fn link(
        &self,
        mut child: Child,
        explain: impl Fn(ProcessError) -> TargetError + Send + 'static,
    ) -> AgentLink {
        let (Some(input), Some(output)) = (child.take_stdin(), child.take_stdout()) else {
            unreachable!("a command pipes both streams");
        };
        AgentLink {
            input: Box::new(input),
            output: Box::new(output),
            process: self.process(child, explain),
        }
    }

    /// As [`link`](Self::link), the process alone.
    pub fn process(
        &self,
        child: Child,
        explain: impl Fn(ProcessError) -> TargetError + Send + 'static,
    ) -> Box<dyn AgentProcess> {
        let child = Arc::new(Mutex::new(child));
        let mut running = lock(&self.0);
        running.retain(|other| other.strong_count() > 0);
        running.push(Arc::downgrade(&child));
        Box::new(LaunchedProcess { child, explain })
    }

    /// Kills every process that still runs, and waits for each at most `limit`. Without
    /// it an agent that a harness forgot would hold its place.
    pub fn end_all(&self, limit: Duration) {
        for child in lock(&self.0).drain(..).filter_map(|it| it.upgrade()) {
            let mut child = lock(&child);
            child.kill();
            // The status of a process that was just killed says nothing.
            let _ = child.wait(limit);
        }
    }
}

struct LaunchedProcess<F> {
    child: Arc<Mutex<Child>>,
    explain: F,
}

impl<F: Fn(ProcessError) -> TargetError + Send> AgentProcess for LaunchedProcess<F> {
    fn kill(&mut self) {
        lock(&self.child).kill();
    }

    fn wait(&mut self, limit: Duration) -> Result<(), TargetError> {
        lock(&self.child).wait(limit).map_err(&self.explain)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
