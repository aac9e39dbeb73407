//! Waiting for a moment of the monotonic clock, and the clock by which the kernel dates
//! processes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};

use super::{now_ns, read};

/// Nanoseconds since the kernel began, sleep included (CLOCK_BOOTTIME): what it dates
/// processes by.
pub fn boot_ns() -> u64 {
    read(libc::CLOCK_BOOTTIME)
}

/// Sleeps until [`now_ns`] reaches `deadline_ns`; returns at once when it has.
///
/// The thread never wakes earlier. It wakes later by its timer slack
/// ([`cpu::set_timer_slack_ns`](crate::cpu::set_timer_slack_ns)) and by the
/// scheduler's delay.
pub fn sleep_until_ns(deadline_ns: u64) {
    let deadline = TimeSpec::from_duration(Duration::from_nanos(deadline_ns));
    let (clock, absolute) = (ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME);
    while clock_nanosleep(clock, absolute, &deadline) == Err(Errno::EINTR) {}
}

/// Longest time between two looks at a stop flag. Not shorter, because others may be
/// measured meanwhile.
const NAP_NS: u64 = 50_000_000;

/// As [`sleep_until_ns`], but looks every 50 ms whether `stop` has become true. False when
/// it had, before the deadline or at it.
pub fn sleep_unless(stop: &AtomicBool, deadline_ns: u64) -> bool {
    while !stop.load(Ordering::Relaxed) {
        let now = now_ns();
        if now >= deadline_ns {
            return true;
        }
        sleep_until_ns(deadline_ns.min(now + NAP_NS));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_ends_at_its_deadline_or_when_it_is_stopped() {
        let stop = AtomicBool::new(false);
        let deadline_ns = now_ns() + 1_000_000;
        assert!(sleep_unless(&stop, deadline_ns));
        assert!(now_ns() >= deadline_ns);
        let began_ns = now_ns();
        let (stop, never_ns) = (&stop, began_ns + 3_600_000_000_000);
        std::thread::scope(|scope| {
            let sleeps = scope.spawn(|| sleep_unless(stop, never_ns));
            stop.store(true, Ordering::Relaxed);
            assert!(!sleeps.join().unwrap());
        });
        assert!(now_ns() < never_ns);
    }

    #[test]
    fn a_sleep_is_never_short() {
        let deadline = now_ns() + 2_000_000;
        sleep_until_ns(deadline);
        assert!(now_ns() >= deadline);
        sleep_until_ns(deadline - 1_000_000);
    }
}
