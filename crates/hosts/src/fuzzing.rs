//! What fuzzing targets reach of this crate.

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
}
