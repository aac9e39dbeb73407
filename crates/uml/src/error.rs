//! What can go wrong before and after a command inside.

use std::io;
use std::path::PathBuf;

/// Why a command could not be run inside User-mode Linux.
#[derive(Debug, thiserror::Error)]
pub enum UmlError {
    /// A package is not installed.
    #[error(
        "User-mode Linux is not installed here: {missing} is missing; on Debian: apt-get install user-mode-linux kmod"
    )]
    NotInstalled {
        /// What was looked for.
        missing: String,
    },
    /// A step before the kernel started.
    #[error(
        "cannot {action}: {source}; User-mode Linux needs a temporary directory, and permission to start programs"
    )]
    Prepare {
        /// What was tried.
        action: String,
        /// The cause.
        source: io::Error,
    },
    /// What was printed inside could not be passed on.
    #[error("cannot pass on what was printed inside User-mode Linux: {0}")]
    HandOn(#[from] io::Error),
    /// The kernel ended before the command did.
    #[error(
        "User-mode Linux ended by itself ({how}); it needs 512 MB of memory for its files in {memory}, and ptrace, which some containers forbid. Its last output:\n{console}",
        memory = memory.display()
    )]
    Died {
        /// How its process ended.
        how: String,
        /// Where its memory was.
        memory: PathBuf,
        /// The end of its console.
        console: String,
    },
}
