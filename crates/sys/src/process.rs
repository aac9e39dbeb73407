//! Starting processes, on Linux also inside namespaces.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

/// The last bytes of standard error that are kept.
const TAIL_BYTES: usize = 8 * 1024;
/// How long the streams of a process that has ended are waited for. What it started
/// and left behind may hold them for ever.
const CLOSING: Duration = Duration::from_secs(1);

/// Why a process could not be started or did not end well.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ProcessError {
    /// The program could not be started.
    #[error(
        "cannot start `{}`: {source}; does the file exist, and may it be executed?",
        program.display()
    )]
    Start { program: PathBuf, source: io::Error },
    /// Waiting failed.
    #[error("cannot wait for process {pid}: {source}")]
    Wait { pid: u32, source: io::Error },
    /// It still runs.
    #[error("process {pid} has not ended within {} ms", limit.as_millis())]
    StillRunning { pid: u32, limit: Duration },
    /// It ended with an error.
    #[error("process {pid} ended with {status}{}", stderr_text(stderr))]
    Failed {
        pid: u32,
        status: ExitStatus,
        stderr: String,
    },
}

fn stderr_text(stderr: &str) -> String {
    if stderr.trim().is_empty() {
        String::new()
    } else {
        format!(": {}", stderr.trim())
    }
}

/// A process to be started.
#[derive(Debug)]
pub struct Command {
    program: PathBuf,
    inner: std::process::Command,
}

impl Command {
    /// Prepares `program`, its standard input and output piped, its standard
    /// error kept for the error message.
    ///
    /// It gets a process group of its own, so that Ctrl-C reaches only the
    /// parent, which then ends it in an orderly way.
    pub fn new(program: &Path) -> Self {
        let mut inner = std::process::Command::new(program);
        inner
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        Self {
            program: program.into(),
            inner,
        }
    }

    /// Adds arguments.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.inner.args(arguments);
        self
    }

    /// Sets an environment variable. The others are the parent's.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.inner.env(name, value);
        self
    }

    /// Starts it in the caller's namespaces; otherwise as
    /// [`spawn_in`](Self::spawn_in). On other systems than Linux nothing kills it: it
    /// learns of the end of this process from its standard input.
    pub fn spawn(self) -> Result<Child, ProcessError> {
        self.tied(None)?.start()
    }

    /// Starts it in the caller's namespaces, not tied to the calling thread: it
    /// may outlive that thread, and learns of the end of this process from its
    /// standard input.
    pub fn spawn_untied(self) -> Result<Child, ProcessError> {
        self.start()
    }

    /// Starts it, inside `namespace`.
    ///
    /// The kernel kills it when **the thread that called this** ends, not only
    /// when the process does (PR_SET_PDEATHSIG(2const)): call it from a thread
    /// that outlives the child, such as the main thread. Everything but the
    /// three streams is closed in the child, so it keeps no namespace alive
    /// but its own.
    ///
    /// # Errors
    ///
    /// Also on every other system: only Linux has namespaces.
    pub fn spawn_in(self, namespace: &impl AsFd) -> Result<Child, ProcessError> {
        match namespace.as_fd().try_clone_to_owned() {
            Ok(namespace) => self.tied(Some(namespace))?.start(),
            Err(source) => Err(self.failure(source)),
        }
    }

    fn failure(&self, source: io::Error) -> ProcessError {
        ProcessError::Start {
            program: self.program.clone(),
            source,
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn tied(self, namespace: Option<OwnedFd>) -> Result<Self, ProcessError> {
        match namespace {
            None => Ok(self),
            Some(_) => Err(self.failure(io::ErrorKind::Unsupported.into())),
        }
    }

    /// Makes it die with the calling thread; inside `namespace` where one is given.
    #[cfg(target_os = "linux")]
    fn tied(mut self, namespace: Option<OwnedFd>) -> Result<Self, ProcessError> {
        use nix::sched::{CloneFlags, setns};

        let parent = std::process::id();
        let enter = move || {
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
            // The parent may have died before the line above took effect.
            if nix::unistd::getppid().as_raw() as u32 != parent {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            if let Some(namespace) = &namespace {
                setns(namespace, CloneFlags::CLONE_NEWNET)?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec, `enter` makes at most three system calls on a
        // descriptor it owns; it takes no lock and does not allocate (an
        // `io::Error` of a kind or an error number is a plain value).
        unsafe { self.inner.pre_exec(enter) };
        Ok(self)
    }

    fn start(mut self) -> Result<Child, ProcessError> {
        let mut inner = self.inner.spawn().map_err(|source| self.failure(source))?;
        let stderr = inner.stderr.take().map(Collected::last);
        Ok(Child { inner, stderr })
    }
}

/// A process that was started. It is killed and reaped when dropped.
#[derive(Debug)]
pub struct Child {
    inner: std::process::Child,
    stderr: Option<Collected>,
}

impl Child {
    /// Process number.
    pub fn pid(&self) -> u32 {
        self.inner.id()
    }

    /// Its standard input, once.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.inner.stdin.take()
    }

    /// Its standard output, once.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.inner.stdout.take()
    }

    /// Asks it to end as Ctrl-C would. Does nothing when it has ended.
    pub fn interrupt(&self) {
        let pid = nix::unistd::Pid::from_raw(self.inner.id() as i32);
        // Its number cannot be reused before it has been waited for, so the
        // only error is that it has ended.
        let _ = nix::sys::signal::kill(pid, Signal::SIGINT);
    }

    /// Kills it. Does nothing when it has ended.
    pub fn kill(&mut self) {
        // The only error is that it has ended.
        let _ = self.inner.kill();
    }

    /// Kills it and whatever it has started, unless that made a process group
    /// of its own. Does nothing when all have ended.
    pub fn kill_group(&self) {
        let group = nix::unistd::Pid::from_raw(self.inner.id() as i32);
        // The number belongs to the group as long as one of its processes
        // lives, and is not reused before all other numbers have been. So the
        // only error is that all have ended.
        let _ = nix::sys::signal::killpg(group, Signal::SIGKILL);
    }

    /// Waits until it has ended, at most `limit`.
    pub fn wait(&mut self, limit: Duration) -> Result<(), ProcessError> {
        let pid = self.pid();
        let deadline = Instant::now() + limit;
        let mut pause = Duration::from_micros(50);
        let status = loop {
            match self.inner.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => {}
                Err(source) => return Err(ProcessError::Wait { pid, source }),
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ProcessError::StillRunning { pid, limit });
            }
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(Duration::from_millis(5));
        };
        if status.success() {
            return Ok(());
        }
        Err(ProcessError::Failed {
            pid,
            status,
            stderr: self.take_stderr(),
        })
    }

    /// The end of what it wrote to standard error, once. Waits until that is closed, or
    /// for a second.
    pub fn take_stderr(&mut self) -> String {
        let tail = self.stderr.take().map(Collected::take).unwrap_or_default();
        String::from_utf8_lossy(&tail).into_owned()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
        // Reaps it; a process that was killed ends at once.
        let _ = self.inner.wait();
    }
}

/// What comes from a stream of a process. It is read as it comes, so that the process
/// never blocks on it.
#[derive(Debug)]
pub struct Collected {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Gets nothing, and loses its sender at the end of the stream.
    end: Receiver<()>,
}

impl Collected {
    /// The first `most` bytes; then the stream is closed.
    pub fn first(stream: impl Read + Send + 'static, most: usize) -> Self {
        Self::of(stream, move |bytes| {
            bytes.truncate(most);
            bytes.len() < most
        })
    }

    /// The last bytes, some 8 KiB of them; all are read.
    pub fn last(stream: impl Read + Send + 'static) -> Self {
        Self::of(stream, |bytes| {
            let surplus = bytes.len().saturating_sub(TAIL_BYTES);
            bytes.drain(..surplus);
            true
        })
    }

    /// `keep` cuts what has come, and says whether more is to be read.
    fn of(
        mut stream: impl Read + Send + 'static,
        keep: impl Fn(&mut Vec<u8>) -> bool + Send + 'static,
    ) -> Self {
        let (sender, end) = channel();
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bytes);
        std::thread::spawn(move || {
            let _until_the_end = sender;
            let mut buffer = [0; 1024];
            while let Ok(length @ 1..) = stream.read(&mut buffer) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&buffer[..length]);
                if !keep(&mut kept) {
                    return;
                }
            }
        });
        Self { bytes, end }
    }

    /// What has come until the stream was closed, or within a second from now.
    pub fn take(self) -> Vec<u8> {
        // An error either way: the sender never sends.
        let _ = self.end.recv_timeout(CLOSING);
        std::mem::take(&mut *self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
