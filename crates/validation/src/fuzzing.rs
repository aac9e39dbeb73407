//! What fuzzing targets reach of this crate.

use crate::process::resident_in;

/// Reads what `/proc` says of a process; whether it is in memory.
///
/// # Panics
///
/// When what is read is impossible.
pub fn status(text: &str) -> bool {
    let resident = resident_in(text);
    assert!(resident.is_none_or(|it| it.is_multiple_of(1024)));
    resident.is_some()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_seed_is_of_a_process_in_memory() {
        let text = String::from_utf8(crate::seeds::seed("proc/proc-self-status")).unwrap();
        assert!(super::status(&text));
        // More than a number of bytes can be.
        assert!(!super::status("VmRSS: 18446744073709551615 kB"));
    }
}
