//! Reading the monotonic clock, and waiting for it.

#[cfg(target_os = "linux")]
mod wait;

#[cfg(target_os = "linux")]
pub use wait::{boot_ns, sleep_unless, sleep_until_ns};

/// The monotonic clock (CLOCK_MONOTONIC) in nanoseconds (L-16).
///
/// Comparable between threads and processes of one kernel, not between
/// machines. Costs some 20 ns where the clock source is `tsc`.
#[inline]
pub fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a valid timespec for the call to fill in. The call
    // cannot fail: the clocks asked for always exist and the pointer is good.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Both clocks at one moment: the wall clock read between two readings of the
/// monotonic one. It converts kernel time stamps, which are wall-clock times
/// (L-17).
///
/// The wall clock may be set or slewed, so a pair converts only what lies
/// near it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockPair {
    /// Middle of the two readings of [`now_ns`].
    pub monotonic_ns: u64,
    /// The wall clock (CLOCK_REALTIME), nanoseconds since 1970.
    pub realtime_ns: u64,
    /// How far from that middle the wall clock may have been read.
    pub error_ns: u64,
}

impl ClockPair {
    /// Attempts before an interrupted reading is accepted.
    const TRIES: usize = 3;
    /// A pair this close is good enough.
    const CLOSE_NS: u64 = 200;
    /// How fast the wall clock may drift against the monotonic one: the kernel adjusts both by
    /// NTP, and the wall clock by `adjtime` at 500 ppm besides.
    const SLEW: u64 = 1_000;

    /// Reads both clocks, and again after an interruption.
    pub fn now() -> Self {
        let mut best = Self {
            error_ns: u64::MAX,
            ..Self::default()
        };
        for _ in 0..Self::TRIES {
            let before = now_ns();
            let realtime_ns = read(libc::CLOCK_REALTIME);
            let width = now_ns() - before;
            // Half of it, and the nanosecond that halving may lose.
            let error_ns = width.div_ceil(2);
            if error_ns < best.error_ns {
                best = Self {
                    monotonic_ns: before + width / 2,
                    realtime_ns,
                    error_ns,
                };
            }
            if best.error_ns <= Self::CLOSE_NS {
                break;
            }
        }
        best
    }

    /// A wall clock time near this pair, on the clock of [`now_ns`].
    pub fn to_monotonic(&self, realtime_ns: u64) -> u64 {
        self.monotonic_ns
            .wrapping_add(realtime_ns.wrapping_sub(self.realtime_ns))
    }

    /// How far off a time between an earlier pair and this one may be converted, nanoseconds;
    /// `None` where the wall clock was set in between, so that none can be.
    pub fn error_since(&self, earlier: &Self) -> Option<u64> {
        let slewed = self.monotonic_ns.saturating_sub(earlier.monotonic_ns) / Self::SLEW;
        let error = earlier.error_ns + self.error_ns + slewed;
        // How much further the wall clock went than the monotonic one.
        let drift = earlier
            .to_monotonic(self.realtime_ns)
            .abs_diff(self.monotonic_ns);
        (drift <= error).then_some(error)
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
    fn a_pair_converts_both_ways_from_its_moment() {
        let before = now_ns();
        let pair = ClockPair::now();
        let after = now_ns();
        assert!((before..=after).contains(&pair.monotonic_ns));
        assert!(pair.error_ns <= (after - before).div_ceil(2));
        let at = pair.realtime_ns;
        assert_eq!(pair.to_monotonic(at + 700), pair.monotonic_ns + 700);
        assert_eq!(pair.to_monotonic(at - 700), pair.monotonic_ns - 700);
    }

    #[test]
    fn a_wall_clock_that_was_set_is_told_from_one_that_is_slewed() {
        let earlier = ClockPair {
            monotonic_ns: 1_000_000,
            realtime_ns: 1_700_000_000_000_000_000,
            error_ns: 30,
        };
        let later = |further_ns: i64| ClockPair {
            monotonic_ns: earlier.monotonic_ns + 50_000,
            realtime_ns: (earlier.realtime_ns + 50_000).wrapping_add_signed(further_ns),
            error_ns: 20,
        };
        for further_ns in [0, 100, -100] {
            assert_eq!(later(further_ns).error_since(&earlier), Some(100));
        }
        for further_ns in [101, -101, 3_600_000_000_000, -3_600_000_000_000] {
            assert_eq!(later(further_ns).error_since(&earlier), None);
        }
    }
}
