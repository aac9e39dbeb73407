//! What can go wrong with a run directory, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use plumbline_experiment::PlanError;

use crate::file::WriteError;

/// Why a run could not be written or read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RunDirectoryError {
    #[error("cannot {doing} {}: no space is left ({source}); make room or use --out on another disk, then go on with `run --resume`; finished trials are kept", path.display())]
    Full {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The disk cannot do what it should (EIO).
    #[error("cannot {doing} {}: {source}; the disk, or what connects it, is failing (`dmesg` says more): use --out on another one, or go on there with a copy of the run", path.display())]
    Failing {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("cannot {doing} {}: {source}; check that the path exists and that you may write there", path.display())]
    Io {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The directory holds no run.
    #[error(transparent)]
    NotARun(#[from] NotARun),
    #[error("{} has format {format}, and this Plumbline reads up to {known}; use the version that wrote it, or a newer one", path.display())]
    Newer {
        path: PathBuf,
        format: u64,
        known: u32,
    },
    #[error("{} has format {format}, and this Plumbline adds trials to format {known} only; it can be reported and compared as it is, but only the version that began it can resume it", path.display())]
    Older {
        path: PathBuf,
        format: u32,
        known: u32,
    },
    #[error("{} is in use by another `plumbline run`; wait for it, or stop it", path.display())]
    Locked { path: PathBuf },
    #[error("{}: a run with --kernel uml goes on beside it, and it may be this one; wait for that run, or stop it", path.display())]
    Guest { path: PathBuf },
    #[error("{}, line {line}: {problem}; the file was changed or damaged, restore it from a copy", path.display())]
    Broken {
        path: PathBuf,
        line: usize,
        problem: String,
    },
    #[error("{}: {source}", path.display())]
    Plan { path: PathBuf, source: PlanError },
    #[error("a trial for {} cannot be written so that it can be read again: {problem}; please report this", path.display())]
    Unreadable { path: PathBuf, problem: String },
}

/// Why a path is not a run directory, or cannot become one.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum NotARun {
    #[error("{} does not exist; runs are in `runs/` unless --out said otherwise", path.display())]
    Missing { path: PathBuf },
    #[error("{} is not a run directory: it has no {file}; give the directory that `plumbline run` named at its end", path.display())]
    NoFile { path: PathBuf, file: &'static str },
    #[error("{} and all names after it are taken; use another --out", path.display())]
    NoFreeName { path: PathBuf },
}

impl RunDirectoryError {
    /// An error of the file system; a full disk and one that fails have their own variants.
    pub(super) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        if source.raw_os_error() == Some(Errno::EIO as i32) {
            return Self::Failing {
                doing,
                path,
                source,
            };
        }
        match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::Full {
                doing,
                path,
                source,
            },
            _ => Self::Io {
                doing,
                path,
                source,
            },
        }
    }
}

impl From<WriteError> for RunDirectoryError {
    fn from(error: WriteError) -> Self {
        Self::io("write", &error.path, error.source)
    }
}

/// Says what was being done when the file system refused.
pub(super) trait IoContext<T> {
    fn because(self, doing: &'static str, path: &Path) -> Result<T, RunDirectoryError>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn because(self, doing: &'static str, path: &Path) -> Result<T, RunDirectoryError> {
        self.map_err(|source| RunDirectoryError::io(doing, path, source))
    }
}
