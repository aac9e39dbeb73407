//! What fuzzing targets reach of this crate.

use crate::program::examine;
use crate::script::At;

/// Reads the first line of a host; whether it is that of our script, and tells an address.
///
/// # Panics
///
/// When a word of it was not said.
pub fn first_line(said: &str) -> Option<bool> {
    let at = At::parse(said)?;
    for word in [&at.system, &at.machine, &at.directory] {
        assert!(said.contains(word), "{word}");
    }
    assert!(!at.system.contains(' ') && !at.machine.contains(' '));
    Some(at.connected.is_some())
}

/// Reads the headers of a program that is to be copied: the machine that it is for, and
/// whether it asks for a loader.
pub fn program(bytes: &[u8]) -> Option<(&'static str, bool)> {
    examine(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::seed;

    #[test]
    fn first_lines_are_seeds() {
        let read = |name: &str| first_line(&String::from_utf8(seed(name)).unwrap());
        assert_eq!(read("handed_over/first-line-of-a-host"), Some(true));
        assert_eq!(read("handed_over/first-line-without-ssh"), Some(false));
        assert_eq!(read("handed_over/lines"), None);
    }

    #[test]
    fn programs_of_each_kind_are_seeds() {
        let read = |name: &str| program(&seed(name));
        assert_eq!(read("elf/static"), Some(("x86_64", false)));
        assert_eq!(read("elf/arm64"), Some(("aarch64", false)));
        assert_eq!(read("elf/dynamic"), Some(("x86_64", true)));
        assert_eq!(read("elf/big-endian"), None);
    }
}
