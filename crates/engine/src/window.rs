//! The phases of a load as moments of the monotonic clock.

use std::time::Duration;

/// How long answers may still come after a stop.
const LAST_CALL_NS: u64 = 30_000_000;

/// When the warm-up starts, the window opens and closes, and the drain ends,
/// in nanoseconds of [`now_ns`](plumbline_sys::clock::now_ns).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: u64,
    pub(crate) open: u64,
    pub(crate) close: u64,
    pub(crate) end: u64,
}

impl Window {
    /// Before a load has started: nothing belongs to the window yet.
    pub(crate) const NEVER: Self = Self {
        start: u64::MAX,
        open: u64::MAX,
        close: u64::MAX,
        end: u64::MAX,
    };

    /// The phases of a load that starts at `start`.
    pub(crate) fn starting(
        start: u64,
        warm_up: Duration,
        measure: Duration,
        drain: Duration,
    ) -> Self {
        let open = start + warm_up.as_nanos() as u64;
        let close = open + measure.as_nanos() as u64;
        Self {
            start,
            open,
            close,
            end: close + drain.as_nanos() as u64,
        }
    }

    /// Whether a request intended at `at` belongs to the window.
    #[inline]
    pub(crate) fn contains(&self, at: u64) -> bool {
        self.open <= at && at < self.close
    }

    /// Ends the load at `now`, because a stop was asked for. What was measured
    /// so far stays measured. Answers on their way may still arrive for a
    /// moment, so that a stop does not make punctual answers late.
    pub(crate) fn cut(&mut self, now: u64) {
        self.open = self.open.min(now);
        self.close = self.close.min(now);
        self.end = self.end.min(now + LAST_CALL_NS);
    }

    /// Length of the measured window in nanoseconds.
    pub(crate) fn length(&self) -> u64 {
        self.close - self.open
    }
}
