//! The program that is copied to the hosts.

use std::fs;
use std::path::Path;

use crate::error::HostsError;

/// Sizes and places in an ELF file (elf(5)).
const HEADER_BYTES: usize = 64;
const CLASS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
const PT_INTERP: u32 = 3;

/// A program, read into memory once, and what has to be known of it.
pub struct Program {
    pub(crate) bytes: Vec<u8>,
    /// As `uname -m` says it.
    pub(crate) machine: &'static str,
    /// Whether it needs a loader and a C library where it runs.
    pub(crate) is_dynamic: bool,
}

impl Program {
    /// Reads a program.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or is no program for Linux on a machine
    /// that Plumbline is built for.
    pub fn read(path: &Path) -> Result<Self, HostsError> {
        let fail = |why: String| HostsError::Program {
            program: path.display().to_string(),
            why,
        };
        let bytes = fs::read(path).map_err(|error| fail(error.to_string()))?;
        let (machine, is_dynamic) = examine(&bytes).ok_or_else(|| {
            fail("it is no Linux program for x86_64 or aarch64; give one with --program".into())
        })?;
        Ok(Self {
            bytes,
            machine,
            is_dynamic,
        })
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

/// The machine, and whether the program asks for a loader; `None` when it is
/// no ELF file of a known machine, or one that is cut off.
fn examine(bytes: &[u8]) -> Option<(&'static str, bool)> {
    let header = bytes.get(..HEADER_BYTES)?;
    if header[..4] != *b"\x7fELF" || header[4] != CLASS_64 || header[5] != LITTLE_ENDIAN {
        return None;
    }
    let short = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let machine = match short(18)? {
        62 => "x86_64",
        183 => "aarch64",
        _ => return None,
    };
    let table = u64::from_le_bytes(bytes.get(32..40)?.try_into().ok()?);
    let (entry, entries) = (usize::from(short(54)?), usize::from(short(56)?));
    let mut is_dynamic = false;
    for number in 0..entries {
        let at = usize::try_from(table).ok()?.checked_add(number * entry)?;
        let kind = bytes.get(at..at.checked_add(4)?)?;
        is_dynamic |= u32::from_le_bytes(kind.try_into().ok()?) == PT_INTERP;
    }
    Some((machine, is_dynamic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_known() {
        let this = std::env::current_exe().unwrap();
        let program = Program::read(&this).unwrap();
        assert_eq!(program.machine, std::env::consts::ARCH);
        assert_eq!(program.is_dynamic, !cfg!(target_feature = "crt-static"));
    }

    #[test]
    fn what_is_no_program_is_refused() {
        assert_eq!(examine(b"#!/bin/sh\n"), None);
        let this = fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(examine(&this[..100]), None, "cut off");
        let error = Program::read(Path::new("/dev/null")).err().unwrap();
        assert!(error.to_string().contains("--program"), "{error}");
    }

    #[test]
    fn another_machine_is_told() {
        let mut this = fs::read(std::env::current_exe().unwrap()).unwrap();
        this[18] = 183;
        assert_eq!(examine(&this).unwrap().0, "aarch64");
    }
}
