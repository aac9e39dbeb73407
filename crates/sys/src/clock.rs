//! Reading and waiting for the monotonic clock.

/// The monotonic clock (CLOCK_MONOTONIC) in nanoseconds (L-16).
///
/// Comparable between threads and processes of one kernel, not between
/// machines. Costs some 20 ns where the clock source is `tsc`.
#[inline]
pub fn now_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a valid timespec for the call to fill in. The call
    // cannot fail: the clock always exists and the pointer is good.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Sleeps until [`now_ns`] reaches `deadline_ns`; returns at once when it has.
///
/// The thread wakes no earlier, and later by its timer slack
/// ([`cpu::set_timer_slack_ns`](crate::cpu::set_timer_slack_ns)) and by
/// however long the scheduler takes.
pub fn sleep_until_ns(deadline_ns: u64) {
    let deadline = libc::timespec {
        tv_sec: (deadline_ns / 1_000_000_000) as _,
        tv_nsec: (deadline_ns % 1_000_000_000) as libc::c_long,
    };
    loop {
        // SAFETY: `deadline` is a valid timespec; an absolute sleep does not
        // write the remainder, so a null pointer is allowed there.
        let code = unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &deadline,
                std::ptr::null_mut(),
            )
        };
        if code != libc::EINTR {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_does_not_go_back() {
        let mut last = now_ns();
        for _ in 0..10_000 {
            let now = now_ns();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn a_sleep_is_never_short() {
        let deadline = now_ns() + 2_000_000;
        sleep_until_ns(deadline);
        assert!(now_ns() >= deadline);
        sleep_until_ns(deadline - 1_000_000);
    }
}
