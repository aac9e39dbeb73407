//! What can go wrong before and after a command inside.

use std::io;
use std::path::PathBuf;

/// Why a command could not be run inside User-mode Linux.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum UmlError {
    /// A package is not installed.
    #[error(
        "User-mode Linux is not installed here: {missing} is missing; on Debian: apt-get install user-mode-linux kmod"
    )]
    NotInstalled { missing: String },
    /// A step before the kernel started.
    #[error(
        "cannot {action}: {source}; User-mode Linux needs a temporary directory, and permission to start programs"
    )]
    Prepare { action: String, source: io::Error },
    /// What was printed inside could not be passed on.
    #[error("cannot pass on what was printed inside User-mode Linux: {0}")]
    HandOn(#[from] io::Error),
    /// The kernel cannot hold the registers of this processor.
    #[error(
        "User-mode Linux cannot run on this processor: its registers (AMX, more than 10 KB for each process) are more than this kernel can restore; use a machine without AMX, or a newer User-mode Linux"
    )]
    Processor,
    /// The kernel ended before the command did.
    #[error(
        "User-mode Linux ended by itself ({how}); it needs 512 MB of memory for its files in {memory}, and ptrace, which some containers forbid. Its last output:\n{console}",
        memory = memory.display()
    )]
    Died {
        how: String,
        memory: PathBuf,
        console: String,
    },
}

/// What a kernel says of itself before it panics, where the host's register state
/// is larger than its own buffer: the host refuses to restore half of it (EFAULT).
const REGISTERS: &str = "ptrace set fp regs failed";

impl UmlError {
    /// Why a kernel ended by itself, by the end of its console.
    pub(crate) fn died(how: String, memory: PathBuf, console: &[u8]) -> Self {
        let console = String::from_utf8_lossy(console).trim().to_owned();
        if console.contains(REGISTERS) {
            return Self::Processor;
        }
        Self::Died {
            how,
            memory,
            console,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_that_is_too_large_is_told_from_other_ends() {
        let died = |console: &[u8]| UmlError::died("exit status: 99".into(), "/m".into(), console);
        let panic =
            b"userspace - ptrace set fp regs failed, errno = 14\nKernel panic - not syncing";
        assert!(matches!(died(panic), UmlError::Processor));
        assert!(matches!(died(b"Kernel panic"), UmlError::Died { .. }));
    }
}
