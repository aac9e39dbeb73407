//! The program that is copied to the hosts.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use plumbline_build::LinuxProgram;

use crate::error::HostsError;

/// As much of a file as holds its headers, and as much as is copied at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// A program, and what has to be known of it. The file stays open: what is
/// copied is the same program, whatever becomes of its name meanwhile.
pub struct Program {
    file: File,
    /// In bytes.
    pub(crate) size: u64,
    /// As `uname -m` says it.
    pub(crate) machine: &'static str,
    /// Whether it needs a loader and a C library where it runs.
    pub(crate) is_dynamic: bool,
}

impl Program {
    /// Opens a program.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or is no program for Linux on a machine
    /// that Plumbline is built for.
    pub fn open(path: &Path) -> Result<Self, HostsError> {
        let fail = |why: String| HostsError::Program {
            program: path.display().to_string(),
            why,
        };
        let unreadable = |error: io::Error| fail(error.to_string());
        let file = File::open(path).map_err(unreadable)?;
        let size = file.metadata().map_err(unreadable)?.len();
        let mut start = vec![0; CHUNK_BYTES];
        let length = file.read_at(&mut start, 0).map_err(unreadable)?;
        let read = LinuxProgram::read(&start[..length])
            .map_err(|why| fail(format!("{why}; give another one with --program")))?;
        Ok(Self {
            file,
            size,
            machine: read.architecture.uname(),
            is_dynamic: read.interpreter.is_some(),
        })
    }

    /// Writes all of it. Several may do so at once.
    ///
    /// # Errors
    ///
    /// A stream that takes no more, or a file that was cut off meanwhile.
    pub(crate) fn copy_to(&self, stream: &mut impl Write) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut at = 0;
        while at < self.size {
            let length = self.file.read_at(&mut chunk, at)?;
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            stream.write_all(&chunk[..length])?;
            at += length as u64;
        }
        stream.flush()
    }

    /// What to say beside a failure to start it.
    pub(crate) fn hint(&self) -> &'static str {
        if self.is_dynamic {
            "; this build needs the C library of the machine that it was built on: \
             use the static build (target *-linux-musl), or give it with --program"
        } else {
            ""
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_known() {
        let this = std::env::current_exe().unwrap();
        let program = Program::open(&this).unwrap();
        let mut copy = Vec::new();
        program.copy_to(&mut copy).unwrap();
        assert_eq!(copy, std::fs::read(&this).unwrap());
        assert_eq!(program.machine, std::env::consts::ARCH);
        assert_eq!(program.is_dynamic, !cfg!(target_feature = "crt-static"));
    }

    #[test]
    fn what_is_no_program_is_refused() {
        let error = Program::open(Path::new("/dev/null")).err().unwrap();
        assert!(error.to_string().contains("--program"), "{error}");
    }
}
