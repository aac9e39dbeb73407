//! The run directory: `run.json`, written once, and `trials.jsonl`, to which
//! each finished trial is appended and fsynced. docs/run-directory.md describes
//! both.
//!
//! What is promised: a directory appears whole or not at all; a
//! trial whose [`append`](RunDirectory::append) returned is there after a crash
//! at any later moment; a crash while appending costs at most that trial; a line that
//! was damaged later costs what it held, and the run says so.

mod error;
mod files;
mod lock;
mod older;
mod reading;
mod seal;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::Flock;

use crate::file::{sync_directory, write_atomically};
use crate::{FORMAT_VERSION, Run, SearchRecord, Trial};
use error::IoContext as _;
pub use error::{NotARun, RunDirectoryError};
use files::{RUN_FILE, SEARCHES_FILE, TRIALS_FILE};
pub use lock::GuestLock;

/// Runs of one experiment that may start in the same second.
const MAX_SAME_SECOND: u32 = 1_000;

/// A run directory that is open for appending, locked against a second writer.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    trials: Flock<File>,
    /// Bytes of whole, acknowledged lines.
    length: u64,
    /// Whether bytes of a failed append may stand behind `length`.
    dirty: bool,
}

impl RunDirectory {
    /// Makes `<parent>/<time>-<experiment>/`, with `run.json` in it, and
    /// `parent` itself where it is missing. The time is UTC, such as
    /// `20260131T235959Z`; a second run within a second gets `-2` behind it.
    ///
    /// Everything is prepared under a hidden name and then renamed, so that a
    /// crash or a full disk leaves no directory that looks like a run.
    ///
    /// `searches` are those that the plan's loads are shares of, kept in
    /// `searches.jsonl`; without any there is no such file.
    ///
    /// # Errors
    ///
    /// [`Full`](RunDirectoryError::Full), [`Failing`](RunDirectoryError::Failing),
    /// [`Io`](RunDirectoryError::Io).
    pub fn create(
        parent: &Path,
        experiment: &str,
        run: &Run,
        searches: &[SearchRecord],
    ) -> Result<Self, RunDirectoryError> {
        fs::create_dir_all(parent).because("make the directory", parent)?;
        let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
        let name = format!("{time}-{experiment}");
        let partial = parent.join(format!(".{name}.{}.partial", std::process::id()));
        let made = Self::prepare(&partial, run, searches).and_then(|trials| {
            let path = publish(&partial, parent, &name)?;
            Ok(Self {
                path,
                trials,
                length: 0,
                dirty: false,
            })
        });
        if made.is_err() {
            // Best effort: the error that matters is on its way already.
            let _ = fs::remove_dir_all(&partial);
        }
        made
    }

    /// Keeps searches without a run, because one of them gave no maximum to run
    /// at: as one file `<parent>/<time>-<experiment>-<pid>-searches.jsonl`, written
    /// whole or not at all, in the format of `searches.jsonl`. Gives its path.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create).
    pub fn keep_searches(
        parent: &Path,
        experiment: &str,
        searches: &[SearchRecord],
    ) -> Result<PathBuf, RunDirectoryError> {
        fs::create_dir_all(parent).because("make the directory", parent)?;
        let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
        // Two that fail within a second must not overwrite each other.
        let id = std::process::id();
        let path = parent.join(format!("{time}-{experiment}-{id}-{SEARCHES_FILE}"));
        write_atomically(&path, &lines(searches, &path)?)?;
        Ok(path)
    }

    /// Fills a directory that nobody sees yet.
    fn prepare(
        partial: &Path,
        run: &Run,
        searches: &[SearchRecord],
    ) -> Result<Flock<File>, RunDirectoryError> {
        fs::create_dir(partial).because("make the directory", partial)?;
        let mut text = serde_json::to_vec_pretty(run)
            .map_err(io::Error::from)
            .because("write", &partial.join(RUN_FILE))?;
        text.push(b'\n');
        write_atomically(&partial.join(RUN_FILE), &text)?;
        if !searches.is_empty() {
            let path = partial.join(SEARCHES_FILE);
            write_atomically(&path, &lines(searches, &path)?)?;
        }
        let path = partial.join(TRIALS_FILE);
        let file = OpenOptions::new()
            .create_new(true)
            .write(true)
            .open(&path)
            .because("make", &path)?;
        let trials = lock::lock(file, &path)?;
        sync_directory(partial).because("write", partial)?;
        Ok(trials)
    }

    /// Opens a run to go on with it: gives what it holds, and the directory
    /// locked and ready to append to. A torn last line is cut off.
    ///
    /// To read only, use [`read`](Self::read).
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), [`Older`](RunDirectoryError::Older) for a run whose
    /// lines are of another shape, and [`Locked`](RunDirectoryError::Locked) or
    /// [`Guest`](RunDirectoryError::Guest) when another process is appending.
    pub fn open(path: &Path) -> Result<(Run, Vec<Trial>, Self), RunDirectoryError> {
        let mut run = reading::run(path)?;
        if run.format != FORMAT_VERSION {
            return Err(RunDirectoryError::Older {
                path: path.to_owned(),
                format: run.format,
                known: FORMAT_VERSION,
            });
        }
        let trials_path = path.join(TRIALS_FILE);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&trials_path)
            .map_err(|e| reading::missing(path, &trials_path, e))?;
        // Locked before it is read, or another writer could append in between.
        let file = lock::lock(file, &trials_path)?;
        lock::refuse_beside_guest(path)?;
        let reading::Lines {
            trials,
            damaged,
            length,
        } = reading::trials(&file, &trials_path, &run)?;
        run.damaged_lines = damaged;
        let torn = file.metadata().because("read", &trials_path)?.len() > length;
        if torn {
            file.set_len(length)
                .because("cut the torn line off", &trials_path)?;
            file.sync_all().because("write", &trials_path)?;
        }
        let directory = Self {
            path: path.to_owned(),
            trials: file,
            length,
            dirty: false,
        };
        Ok((run, trials, directory))
    }

    /// Reads a run without changing or locking anything, also while it goes on.
    /// A torn last line is left out, and so is every damaged one, which
    /// [`Run::damaged_lines`] counts.
    ///
    /// # Errors
    ///
    /// [`NotARun`](RunDirectoryError::NotARun),
    /// [`Newer`](RunDirectoryError::Newer), and
    /// [`Broken`](RunDirectoryError::Broken) for a `run.json` that is no plan.
    pub fn read(path: &Path) -> Result<(Run, Vec<Trial>), RunDirectoryError> {
        let mut run = reading::run(path)?;
        let trials_path = path.join(TRIALS_FILE);
        let file = File::open(&trials_path).map_err(|e| reading::missing(path, &trials_path, e))?;
        let read = reading::trials(&file, &trials_path, &run)?;
        run.damaged_lines = read.damaged;
        Ok((run, read.trials))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a trial and returns when it is on disk.
    ///
    /// # Errors
    ///
    /// [`Full`](RunDirectoryError::Full), [`Failing`](RunDirectoryError::Failing),
    /// [`Io`](RunDirectoryError::Io): the trial is not kept, all earlier ones are, and a
    /// later append may succeed.
    /// [`Unreadable`](RunDirectoryError::Unreadable) for a trial that could
    /// not be read back, such as one with a number that is not finite.
    pub fn append(&mut self, trial: &Trial) -> Result<(), RunDirectoryError> {
        let path = self.path.join(TRIALS_FILE);
        let line = encode(trial, &path)?;
        if self.dirty {
            self.trials.set_len(self.length).because("write", &path)?;
        }
        self.dirty = true;
        let written = self
            .trials
            .write_all_at(&line, self.length)
            .and_then(|()| self.trials.sync_data());
        if let Err(error) = written {
            // Half a line must not stay; if even that fails, the next append
            // or the next reader deals with it.
            self.dirty = self.trials.set_len(self.length).is_err();
            return Err(error).because("append a trial to", &path);
        }
        self.dirty = false;
        self.length += line.len() as u64;
        Ok(())
    }
}

/// One line for each search.
fn lines(searches: &[SearchRecord], path: &Path) -> Result<Vec<u8>, RunDirectoryError> {
    let mut text = Vec::new();
    for search in searches {
        serde_json::to_writer(&mut text, search)
            .map_err(io::Error::from)
            .because("write", path)?;
        text.push(b'\n');
    }
    Ok(text)
}

/// The line of a trial, known to be readable, with its checksum.
fn encode(trial: &Trial, path: &Path) -> Result<Vec<u8>, RunDirectoryError> {
    let unreadable = |error: serde_json::Error| RunDirectoryError::Unreadable {
        path: path.to_owned(),
        problem: error.to_string(),
    };
    let mut line = serde_json::to_vec(trial).map_err(unreadable)?;
    serde_json::from_slice::<Trial>(&line).map_err(unreadable)?;
    seal::close(&mut line);
    line.push(b'\n');
    if line.len() > reading::MAX_LINE_BYTES {
        return Err(RunDirectoryError::Unreadable {
            path: path.to_owned(),
            problem: format!("its line has {} bytes", line.len()),
        });
    }
    Ok(line)
}

/// Gives a prepared directory its name: the first that is free.
fn publish(partial: &Path, parent: &Path, name: &str) -> Result<PathBuf, RunDirectoryError> {
    for attempt in 1..=MAX_SAME_SECOND {
        let path = match attempt {
            1 => parent.join(name),
            _ => parent.join(format!("{name}-{attempt}")),
        };
        // A rename replaces an empty directory but no run, which has files.
        match fs::rename(partial, &path) {
            Ok(()) => {
                sync_directory(parent).because("write", parent)?;
                return Ok(path);
            }
            Err(e) if is_taken(&e) => {}
            Err(e) => return Err(RunDirectoryError::io("name the run", &path, e)),
        }
    }
    Err(RunDirectoryError::NotARun(NotARun::NoFreeName {
        path: parent.join(name),
    }))
}

fn is_taken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::DirectoryNotEmpty
            | io::ErrorKind::AlreadyExists
            | io::ErrorKind::NotADirectory
    )
}
