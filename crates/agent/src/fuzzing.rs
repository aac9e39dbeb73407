//! What fuzzing targets reach of the readers of `/proc` here.

use crate::launched::started_ns;
use crate::machine::{cpuinfo_value, kernel_command_line, memory_bytes};

/// Reads a text as each of the files that there are.
///
/// # Panics
///
/// When what is read is impossible.
pub fn files(text: &str) {
    let of_line = |read: &str| text.lines().any(|line| line.contains(read));
    for key in ["model name", "microcode", "MemTotal"] {
        let value = cpuinfo_value(text, key);
        assert!(value.is_none_or(|it| of_line(&it)), "{key}");
    }
    let memory = memory_bytes(text);
    assert!(memory == u64::MAX || memory.is_multiple_of(1024));
    let words = kernel_command_line(text);
    assert!(words.len() <= text.len() && !words.starts_with("init="));
    // No process begins before its kernel.
    assert!(started_ns(text).is_none_or(|it| it > 0));
}
