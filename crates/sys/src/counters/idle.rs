//! How long a CPU was idle, to the microsecond, from cpuidle.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::malformed;

/// The idle time of one CPU, as the kernel's cpuidle drivers count it.
///
/// The kernel adds to it when the CPU leaves an idle state, so it is up to date only
/// when the CPU that reads it is the CPU that it is about. Interrupts that meet an idle
/// CPU may be in it.
#[derive(Debug)]
pub struct IdleClock {
    states: Vec<File>,
}

impl IdleClock {
    /// Opens the clock of CPU number `cpu`.
    ///
    /// # Errors
    ///
    /// A kernel without cpuidle, or a `/sys` that is not mounted.
    pub fn of(cpu: u32) -> io::Result<Self> {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle");
        let mut states = Vec::new();
        loop {
            match File::open(format!("{path}/state{}/time", states.len())) {
                Ok(file) => states.push(file),
                Err(_) if !states.is_empty() => return Ok(Self { states }),
                Err(error) => {
                    return Err(io::Error::new(error.kind(), format!("{path}: {error}")));
                }
            }
        }
    }

    /// Idle time since boot, nanoseconds.
    ///
    /// # Errors
    ///
    /// A file that does not hold a number.
    pub fn read_ns(&self) -> io::Result<u64> {
        let mut idle_us: u64 = 0;
        for state in &self.states {
            let mut text = [0; 24];
            let length = state.read_at(&mut text, 0)?;
            let time_us = parse(&text[..length])
                .ok_or_else(|| malformed("cpuidle", "a `time` that is not a number"))?;
            idle_us = idle_us.saturating_add(time_us);
        }
        Ok(idle_us.saturating_mul(1_000))
    }
}

fn parse(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_number_is_a_time() {
        assert_eq!(parse(b"7122788038\n"), Some(7_122_788_038));
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"<not counted>\n"), None);
    }

    #[test]
    fn a_cpu_that_is_not_there_has_no_clock() {
        assert!(IdleClock::of(1_000_000).is_err());
    }
}
