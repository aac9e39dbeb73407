//! When a stream has written enough for the slice that it is in.
//!
//! What the kernel holds when a slice ends goes on into the next one, which is
//! another treatment's: several megabytes, which a slow path carries for tens of
//! milliseconds. So a stream stops writing as soon as what it has written fills the
//! rest of its slice.

/// How long the rest may take after the end of a slice, nanoseconds: less than the
/// part of the next one that is not recorded.
const OVERHANG_NS: u64 = 1_500_000;
/// From one look at the connections to the next, nanoseconds.
const LOOK_NS: u64 = 250_000;

/// What is known of the pace of a path, and whether the slice is filled.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// When the slice began, and the bytes that were acknowledged then; `None` between
    /// slices.
    begun: Option<(u64, u64)>,
    /// Bytes a nanosecond in the slice before; 0 in the first one, which has no limit.
    pace: f64,
    next_look: u64,
    is_enough: bool,
}

impl Backlog {
    /// A slice begins at `now`, when `acked` bytes have been acknowledged.
    pub(super) fn begins(&mut self, now: u64, acked: u64) {
        self.begun = Some((now, acked));
        self.next_look = now;
        self.is_enough = false;
    }

    /// Whether a slice has begun whose end was not told yet.
    pub(super) fn is_in_slice(&self) -> bool {
        self.begun.is_some()
    }

    /// The slice is over.
    pub(super) fn ends(&mut self, now: u64, acked: u64) {
        if let Some((begun, before)) = self.begun.take() {
            self.pace =
                acked.saturating_sub(before) as f64 / now.saturating_sub(begun).max(1) as f64;
        }
    }

    /// Whether it is time to [`look`](Self::look).
    pub(super) fn is_due(&self, now: u64) -> bool {
        self.pace > 0.0 && !self.is_enough && now >= self.next_look
    }

    /// Told that `queued` bytes have been written and are not acknowledged, `left`
    /// nanoseconds before the end of the slice.
    pub(super) fn look(&mut self, now: u64, queued: u64, left: u64) {
        self.next_look = now + LOOK_NS;
        self.is_enough = queued as f64 >= self.pace * (left + OVERHANG_NS) as f64;
    }

    /// Whether nothing more is to be written in this slice.
    pub(super) fn is_enough(&self) -> bool {
        self.is_enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_first_slice_has_no_limit() {
        let mut backlog = Backlog::default();
        backlog.begins(0, 0);
        assert!(backlog.is_in_slice() && !backlog.is_due(24 * MS));
        assert!(!backlog.is_enough());
    }

    #[test]
    fn a_slow_path_stops_as_soon_as_the_rest_of_its_slice_is_filled() {
        let mut backlog = Backlog::default();
        backlog.begins(0, 0);
        // A byte a nanosecond.
        backlog.ends(25 * MS, 25 * MS);
        assert!(!backlog.is_in_slice());
        backlog.begins(100 * MS, 30 * MS);
        assert!(backlog.is_due(100 * MS));
        backlog.look(102 * MS, 4 * MS, 23 * MS);
        assert!(!backlog.is_enough() && !backlog.is_due(102 * MS + LOOK_NS - 1));
        backlog.look(121 * MS, 4 * MS, 4 * MS);
        assert!(!backlog.is_enough(), "the overhang may be used");
        backlog.look(123 * MS, 4 * MS, 2 * MS);
        assert!(backlog.is_enough() && !backlog.is_due(124 * MS));
        // The next slice is written to again.
        backlog.ends(125 * MS, 55 * MS);
        backlog.begins(200 * MS, 57 * MS);
        assert!(!backlog.is_enough());
    }
}
