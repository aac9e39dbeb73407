//! Which program this is.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};

use plumbline_record::Build;
use sha2::{Digest as _, Sha256};

/// Bytes that are read of the program at a time.
const PIECE: usize = 1 << 16;

/// The version of this program, and the hash of its file as it runs: what was
/// installed over it since does not count.
///
/// # Errors
///
/// `/proc` is not mounted, or the program cannot be read.
pub fn build() -> io::Result<Build> {
    let mut program = File::open("/proc/self/exe")?;
    let mut digest = Sha256::new();
    let mut piece = vec![0; PIECE];
    loop {
        match program.read(&mut piece)? {
            0 => break,
            length => digest.update(&piece[..length]),
        }
    }
    let mut sha256 = String::with_capacity(64);
    for byte in digest.finalize() {
        write!(sha256, "{byte:02x}").expect("a string takes everything");
    }
    Ok(Build {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        sha256,
    })
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
