//! What the headers of a program tell: where it runs, and what it needs there.

use object::LittleEndian;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _};

/// A program for Linux, as its ELF headers tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinuxProgram {
    /// What it is compiled for.
    pub architecture: Architecture,
    /// The loader that it asks for, which looks for its libraries; a static program asks for none.
    pub interpreter: Option<String>,
}

/// A kind of processor that Plumbline is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// Intel's and AMD's, 64 bits wide.
    X86_64,
    /// Arm's, 64 bits wide.
    Aarch64,
}

impl Architecture {
    /// As `uname -m` says it.
    pub const fn uname(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// As images of containers say it.
    pub const fn in_images(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }
}

/// Why a file is no program that Plumbline could run elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLinuxProgram {
    /// No ELF file of 64 bits whose lowest byte comes first.
    #[error("it is no program for Linux on x86_64 or aarch64")]
    Format,
    /// The number of the processor in the ELF list.
    #[error(
        "it is for machine {0} of the ELF list, and neither for x86_64 (62) nor for aarch64 (183)"
    )]
    Architecture(u16),
    /// Its headers are not whole.
    #[error("it is cut off")]
    CutOff,
}

impl LinuxProgram {
    /// Reads the headers with which a program begins. As much of the file as holds them is enough.
    ///
    /// # Errors
    ///
    /// It is no program for Linux on a machine that Plumbline is built for.
    pub fn read(bytes: &[u8]) -> Result<Self, NoLinuxProgram> {
        let header =
            FileHeader64::<LittleEndian>::parse(bytes).map_err(|_| NoLinuxProgram::Format)?;
        let order = header.endian().map_err(|_| NoLinuxProgram::Format)?;
        let architecture = match header.e_machine(order) {
            elf::EM_X86_64 => Architecture::X86_64,
            elf::EM_AARCH64 => Architecture::Aarch64,
            other => return Err(NoLinuxProgram::Architecture(other)),
        };
        let segments = header.program_headers(order, bytes);
        let segments = segments.map_err(|_| NoLinuxProgram::CutOff)?;
        let loader = segments
            .iter()
            .find(|it| it.p_type(order) == elf::PT_INTERP);
        let interpreter = loader.map(|it| {
            let name = String::from_utf8_lossy(it.data(order, bytes).unwrap_or_default());
            name.trim_end_matches('\0').to_owned()
        });
        Ok(Self {
            architecture,
            interpreter,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::seed;

    #[test]
    fn this_program_is_known() {
        let this = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let read = LinuxProgram::read(&this).unwrap();
        assert_eq!(read.architecture.uname(), std::env::consts::ARCH);
        let is_static = cfg!(target_feature = "crt-static");
        assert_eq!(read.interpreter.is_none(), is_static, "{read:?}");
        assert_eq!(
            LinuxProgram::read(&this[..100]),
            Err(NoLinuxProgram::CutOff)
        );
    }

    #[test]
    fn fuzzing_begins_with_programs_of_each_kind() {
        let read = |name: &str| LinuxProgram::read(&seed(&format!("elf/{name}")));
        let known = |architecture, interpreter: Option<&str>| {
            let interpreter = interpreter.map(str::to_owned);
            Ok(LinuxProgram {
                architecture,
                interpreter,
            })
        };
        assert_eq!(read("static"), known(Architecture::X86_64, None));
        assert_eq!(read("arm64"), known(Architecture::Aarch64, None));
        let loader = Some("/lib64/ld-linux-x86-64.so.2");
        assert_eq!(read("dynamic"), known(Architecture::X86_64, loader));
        assert_eq!(read("big-endian"), Err(NoLinuxProgram::Format));
    }

    #[test]
    fn what_is_no_program_is_refused() {
        let script = LinuxProgram::read(b"#!/bin/sh\n");
        assert_eq!(script, Err(NoLinuxProgram::Format));
        let mut of_another = seed("elf/static");
        of_another[18] = 40;
        let read = LinuxProgram::read(&of_another);
        assert_eq!(read, Err(NoLinuxProgram::Architecture(40)));
    }
}
