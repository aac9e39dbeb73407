//! Locks of runs against a second writer, also for a writer in another kernel that sees
//! this machine's files: nobody outside of that kernel sees its own locks.

use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use super::error::IoContext as _;
use super::files::TRIALS_FILE;
use super::{RunDirectoryError, reading};

/// How often a run's parent is tried: another one who looks has it for a moment.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(20);

/// Held by a process of this machine for as long as a guest of its own writes to runs.
#[derive(Debug)]
pub struct GuestLock {
    _held: Flock<File>,
}

impl GuestLock {
    /// For a guest that goes on with a run.
    ///
    /// # Errors
    ///
    /// [`Locked`](RunDirectoryError::Locked) when another process is appending, or a
    /// guest is that began a run beside it.
    pub fn on_run(run: &Path) -> Result<Self, RunDirectoryError> {
        let path = run.join(TRIALS_FILE);
        let file = OpenOptions::new().write(true).open(&path);
        let file = file.map_err(|error| reading::missing(run, &path, error))?;
        let held = lock(file, &path)?;
        refuse_beside_guest(run)?;
        Ok(Self { _held: held })
    }

    /// For a guest that makes a run below `parent`, which is made where it is missing.
    /// Until it ends no run there can be gone on with: which one is the guest's is not
    /// known.
    ///
    /// # Errors
    ///
    /// [`Io`](RunDirectoryError::Io).
    pub fn on_new_run_below(parent: &Path) -> Result<Self, RunDirectoryError> {
        fs::create_dir_all(parent).because("make the directory", parent)?;
        let directory = File::open(parent).because("open", parent)?;
        let held = Flock::lock(directory, FlockArg::LockShared);
        let held = held.map_err(|(_, errno)| RunDirectoryError::io("lock", parent, errno.into()));
        held.map(|held| Self { _held: held })
    }
}

/// Refuses a run beside which a guest may be writing.
pub(super) fn refuse_beside_guest(run: &Path) -> Result<(), RunDirectoryError> {
    let parent = run.join("..");
    let mut directory = File::open(&parent).because("open", &parent)?;
    for _ in 0..TRIES {
        match Flock::lock(directory, FlockArg::LockExclusiveNonblock) {
            Ok(_) => return Ok(()),
            Err((back, Errno::EWOULDBLOCK)) => directory = back,
            // A file system without such locks: a guest could not hold one either.
            Err(_) => return Ok(()),
        }
        std::thread::sleep(PAUSE);
    }
    Err(RunDirectoryError::Guest {
        path: run.to_owned(),
    })
}

/// Locks the file of a run that this process writes to.
pub(super) fn lock(file: File, path: &Path) -> Result<Flock<File>, RunDirectoryError> {
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| {
        if errno == Errno::EWOULDBLOCK {
            RunDirectoryError::Locked {
                path: path.parent().unwrap_or(path).to_owned(),
            }
        } else {
            RunDirectoryError::io("lock", path, errno.into())
        }
    })
}
