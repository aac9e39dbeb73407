//! The system's own programs that write rules into the kernel.

use std::io;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use plumbline_sys::process::{Command, ProcessError};
use plumbline_sys::scratch::Scratch;

use crate::error::LabError;
use crate::place::Place;

/// Longest time for one text.
const LIMIT: Duration = Duration::from_secs(120);
/// Where such programs are, whatever the user's `PATH` says: that of an ordinary user
/// often lacks them.
const FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// A program that reads rules from a file and writes them into the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct RuleWriter {
    pub(super) program: &'static str,
    /// What stands before the name of the file.
    pub(super) arguments: &'static [&'static str],
    /// Debian's package.
    pub(super) package: &'static str,
}

/// Why rules could not be written, where nothing is missing.
#[derive(Debug, thiserror::Error)]
enum RuleWriterError {
    #[error(
        "rules for `{program}` cannot be put into a file in memory: {source}; the machine may be \
         out of memory"
    )]
    File {
        program: &'static str,
        source: io::Error,
    },
    #[error("`{program}` did not write its rules: {source}; use fewer, or try again")]
    Program {
        program: &'static str,
        source: ProcessError,
    },
}

impl RuleWriter {
    /// Has it write the same texts on each of some nodes, at the same time.
    ///
    /// # Errors
    ///
    /// [`LabError::Unsupported`] without the program, or where the kernel refuses what it
    /// writes.
    pub(super) fn write_on(&self, nodes: &[Arc<Place>], texts: &[String]) -> Result<(), LabError> {
        thread::scope(|scope| {
            let write = |node: &Arc<Place>| {
                let node = Arc::clone(node);
                scope.spawn(move || self.write(&node, texts))
            };
            // All are started before the first is waited for.
            let threads: Vec<_> = nodes.iter().map(write).collect();
            let ended = threads.into_iter().map(thread::ScopedJoinHandle::join);
            let written = ended.map(|it| it.unwrap_or_else(|panic| resume_unwind(panic)));
            written.collect::<Vec<_>>().into_iter().collect()
        })
    }

    fn write(&self, node: &Place, texts: &[String]) -> Result<(), LabError> {
        let program = self.find()?;
        let failed = |source| {
            LabError::network(RuleWriterError::File {
                program: self.program,
                source,
            })
        };
        let scratch = Scratch::create().map_err(failed)?;
        let file = scratch.path().join("rules");
        for text in texts {
            std::fs::write(&file, text).map_err(failed)?;
            let command = Command::new(&program)
                .args(self.arguments)
                .args([&file])
                // The machine's own lock is not for ordinary users, and of no use here.
                .env("XTABLES_LOCKFILE", scratch.path().join("lock"));
            let child = command.spawn_in(&node.namespace);
            let ended = child.and_then(|mut child| child.wait(LIMIT));
            ended.map_err(|error| self.refused(error))?;
        }
        Ok(())
    }

    fn find(&self) -> Result<PathBuf, LabError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).chain(FOLDERS.map(PathBuf::from));
        let mut programs = folders.map(|folder| folder.join(self.program));
        let found = programs.find(|program| Path::is_file(program));
        found.ok_or_else(|| LabError::Unsupported {
            what: format!("what `{}` writes", self.program),
            needs: format!(
                "needs that program; install Debian's package {}",
                self.package
            ),
        })
    }

    fn refused(&self, error: ProcessError) -> LabError {
        match error {
            ProcessError::Failed { stderr, .. } => LabError::Unsupported {
                what: format!("what `{}` writes", self.program),
                needs: format!("the kernel, or the program, refuses it: {}", stderr.trim()),
            },
            source => LabError::network(RuleWriterError::Program {
                program: self.program,
                source,
            }),
        }
    }
}
