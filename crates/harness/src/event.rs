//! A command of the user's that does something to a path while traffic runs on it.

use std::os::fd::BorrowedFd;
use std::path::Path as FilePath;
use std::time::Duration;

use plumbline_sys::process::{Child, Collected, Command, ProcessError};

use crate::error::TargetError;

/// One word for any shell, whatever it holds.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A command of the user's, run by the shell. Whatever of it still runs when this is
/// dropped is killed, unless it has made a process group of its own.
#[derive(Debug)]
pub struct EventCommand {
    text: String,
    child: Child,
    /// Read, so that the command never waits for a reader.
    _output: Option<Collected>,
}

impl EventCommand {
    /// Starts it with these variables beside those of this process, in a namespace if one is
    /// given. It is killed when the thread that called this ends.
    ///
    /// # Errors
    ///
    /// A shell that does not start.
    pub fn start(
        text: &str,
        variables: &[(String, String)],
        namespace: Option<BorrowedFd<'_>>,
    ) -> Result<Self, TargetError> {
        let mut command = Command::new(FilePath::new("/bin/sh")).args(["-c", text]);
        for (name, value) in variables {
            command = command.env(name, value);
        }
        let started = match namespace {
            Some(namespace) => command.spawn_in(&namespace),
            None => command.spawn(),
        };
        let mut child = started
            .map_err(|error| TargetError::Failed(format!("`{text}` cannot be started: {error}")))?;
        // It has nothing to read.
        drop(child.take_stdin());
        let output = child.take_stdout().map(Collected::last);
        Ok(Self {
            text: text.to_owned(),
            child,
            _output: output,
        })
    }

    /// Whether it has ended well; waits for that at most so long.
    ///
    /// # Errors
    ///
    /// It ended badly: how, and the end of what it wrote to standard error.
    pub(crate) fn has_ended(&mut self, within: Duration) -> Result<bool, TargetError> {
        let text = &self.text;
        let failed = |what: String| Err(TargetError::Failed(format!("`{text}` {what}")));
        match self.child.wait(within) {
            Ok(()) => Ok(true),
            Err(ProcessError::StillRunning { .. }) => Ok(false),
            Err(ProcessError::Failed { status, stderr, .. }) => {
                let said = match stderr.trim() {
                    "" => "it said nothing".to_owned(),
                    said => format!("it said: {said}"),
                };
                failed(format!("ended with {status}; {said}"))
            }
            Err(error) => failed(format!("could not be waited for: {error}")),
        }
    }

    /// Waits until it has ended well.
    ///
    /// # Errors
    ///
    /// It ended badly: how, and the end of what it wrote to standard error; or it took longer than
    /// that.
    pub fn finish(mut self, limit: Duration) -> Result<(), TargetError> {
        match self.has_ended(limit)? {
            true => Ok(()),
            false => Err(self.took_too_long(limit)),
        }
    }

    /// Why it is not waited for any longer.
    pub(crate) fn took_too_long(&self, limit: Duration) -> TargetError {
        TargetError::Failed(format!(
            "`{}` had not ended after {:.1} s and was killed; give it a longer `limit` if it needs \
             that",
            self.text,
            limit.as_secs_f64()
        ))
    }
}

impl Drop for EventCommand {
    fn drop(&mut self) {
        self.child.kill_group();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Instant;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    fn start(text: &str) -> EventCommand {
        let told = [("PLUMBLINE_POD1".to_owned(), "here".to_owned())];
        EventCommand::start(text, &told, None).unwrap()
    }

    #[test]
    fn it_is_told_where_things_are_and_its_end_is_seen() {
        let mut command = start("test $PLUMBLINE_POD1 = here");
        assert!(command.has_ended(LONG).unwrap());
        let mut command = start("sleep 60");
        assert!(!command.has_ended(Duration::from_millis(20)).unwrap());
    }

    #[test]
    fn a_bad_end_is_told_with_what_it_said() {
        let error = start("echo no such pod >&2; exit 3").has_ended(LONG);
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("exit status: 3") && error.contains("no such pod"),
            "{error}"
        );
    }

    #[test]
    fn what_it_started_goes_with_it() {
        let scratch = tempfile::tempdir().unwrap();
        let pid = scratch.path().join("pid");
        let mut command = start(&format!("sleep 60 & echo $! > {}", pid.display()));
        assert!(command.has_ended(LONG).unwrap());
        let child = fs::read_to_string(&pid).unwrap();
        let process = FilePath::new("/proc").join(child.trim());
        assert!(process.exists(), "what it left to work goes on");
        drop(command);
        let since = Instant::now();
        // A process that has ended stays until somebody asks for it.
        let lives = || {
            let status = fs::read_to_string(process.join("stat")).unwrap_or_default();
            !status.is_empty() && !status.contains(") Z ")
        };
        while lives() {
            assert!(since.elapsed() < LONG, "{child} lives");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
