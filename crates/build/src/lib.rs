//! Which program this is: the hash of the sources of an agent, by which a controller knows
//! that both are one build, and of a file; for which machine a program is.

mod linux_program;
#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

use std::env;
use std::fs::File;
use std::io::{self, Read};

use plumbline_record::Build;
use sha2::{Digest as _, Sha256};

pub use linux_program::{Architecture, LinuxProgram, NoLinuxProgram};

/// Hash of the sources that an agent is made of: the same for a build for any
/// architecture, another one for another build of the same version.
pub const SOURCES: &str = env!("PLUMBLINE_SOURCES");

/// Bytes that are read at a time.
const PIECE: usize = 1 << 16;

/// The version of this program, and the hash of its file as it runs: what was
/// installed over it since does not count where there is a `/proc`.
///
/// # Errors
///
/// The program cannot be found, or not be read.
pub fn build() -> io::Result<Build> {
    Ok(Build {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        sha256: sha256(program()?)?,
    })
}

fn program() -> io::Result<File> {
    File::open("/proc/self/exe").or_else(|_| File::open(env::current_exe()?))
}

/// The SHA-256 of everything that `source` holds, in hexadecimal digits.
///
/// # Errors
///
/// The source cannot be read.
pub fn sha256(mut source: impl Read) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut piece = vec![0; PIECE];
    loop {
        match source.read(&mut piece)? {
            0 => break,
            length => digest.update(&piece[..length]),
        }
    }
    let bytes = digest.finalize();
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_by_its_file() {
        let one = build().unwrap();
        assert_eq!(one, build().unwrap());
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let whole: String = Sha256::digest(&program)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(one.sha256, whole);
    }
}
