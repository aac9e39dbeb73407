//! Reading and waiting for the monotonic clock.

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC (L-16).
#[inline]
pub fn now_ns() -> u64 {
    // Fails only for a clock that does not exist, and this one always does.
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map(|t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
        .unwrap_or_default()
}
