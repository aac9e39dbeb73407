//! How long a CPU was idle, to the microsecond, from cpuidle, and what spun there meanwhile.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::malformed;
use crate::awake::SpinnerClocks;
use crate::cpu::ProcessClock;

/// Seconds since boot, and the idle seconds of all CPUs.
const UPTIME: &str = "/proc/uptime";

/// The idle time of one CPU, as the kernel's cpuidle drivers count it, with the CPU time of
/// what kept it from halting.
///
/// The kernel adds to the former when the CPU leaves an idle state, so it is up to date only
/// when the CPU that reads it is the CPU that it is about. Interrupts that meet an idle
/// CPU may be in it.
#[derive(Debug)]
pub struct IdleClock {
    states: Vec<File>,
    spinners: Vec<ProcessClock>,
}

impl IdleClock {
    /// Opens the clock of CPU number `cpu`.
    ///
    /// # Errors
    ///
    /// A kernel without cpuidle, or a `/sys` that is not mounted, where nothing spins on this
    /// CPU.
    pub fn of(cpu: u32, spinners: &SpinnerClocks) -> io::Result<Self> {
        let spinners: Vec<ProcessClock> = spinners.on(cpu).collect();
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle");
        let mut states = Vec::new();
        loop {
            match File::open(format!("{path}/state{}/time", states.len())) {
                Ok(file) => states.push(file),
                Err(_) if !states.is_empty() || !spinners.is_empty() => {
                    return Ok(Self { states, spinners });
                }
                Err(error) => {
                    return Err(io::Error::new(error.kind(), format!("{path}: {error}")));
                }
            }
        }
    }

    /// Idle time since boot, nanoseconds, and what spun here since it was started.
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
        let spun_ns: u64 = self.spinners.iter().map(|it| it.read_ns()).sum();
        Ok(idle_us.saturating_mul(1_000).saturating_add(spun_ns))
    }
}

/// The idle time of all CPUs together, in steps.
///
/// The kernel keeps it to the microsecond, for CPUs that are idle at the moment too, and
/// shows it in whole steps. Time in which an idle CPU waits for a disk is not in it.
#[derive(Debug)]
pub struct IdleCounter {
    uptime: File,
}

impl IdleCounter {
    /// What the counter moves by, nanoseconds.
    pub const STEP_NS: u64 = 10_000_000;

    /// Opens the counter.
    ///
    /// # Errors
    ///
    /// A `/proc` that is not mounted.
    pub fn open() -> io::Result<Self> {
        let uptime = File::open(UPTIME)
            .map_err(|error| io::Error::new(error.kind(), format!("{UPTIME}: {error}")))?;
        Ok(Self { uptime })
    }

    /// Idle time since boot, nanoseconds: rounded down to a step.
    ///
    /// # Errors
    ///
    /// A file of another form.
    pub fn read_ns(&self) -> io::Result<u64> {
        let mut text = [0; 64];
        let length = self.uptime.read_at(&mut text, 0)?;
        parse_uptime(&text[..length])
            .ok_or_else(|| malformed(UPTIME, "a second figure that is not seconds and hundredths"))
    }
}

/// The second figure, in nanoseconds: seconds, a point, hundredths.
pub(super) fn parse_uptime(text: &[u8]) -> Option<u64> {
    let idle = std::str::from_utf8(text).ok()?.split_whitespace().nth(1)?;
    let (seconds, hundredths) = idle.split_once('.')?;
    let hundredths = match hundredths.len() {
        2 => hundredths.parse::<u64>().ok()?,
        _ => return None,
    };
    let steps = seconds.parse::<u64>().ok()?.checked_mul(100)? + hundredths;
    steps.checked_mul(IdleCounter::STEP_NS)
}

pub(super) fn parse(text: &[u8]) -> Option<u64> {
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
    fn idle_seconds_are_the_second_figure_of_the_uptime() {
        assert_eq!(parse_uptime(b"269.82 228.26\n"), Some(228_260_000_000));
        for wrong in ["", "269.82", "269.82 228", "269.82 228.2", "1.00 x.00"] {
            assert_eq!(parse_uptime(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn the_counter_of_all_cpus_moves_in_steps() {
        let counter = IdleCounter::open().unwrap();
        let first = counter.read_ns().unwrap();
        assert_eq!(first % IdleCounter::STEP_NS, 0);
        assert!(counter.read_ns().unwrap() >= first);
    }

    #[test]
    fn a_cpu_that_is_not_there_has_no_clock() {
        assert!(IdleClock::of(1_000_000, &SpinnerClocks::default()).is_err());
    }
}
