//! From stamps on two clocks to spans on one.

use plumbline_sys::clock::ClockPair;

/// All that is known about one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    /// On the monotonic clock, before the send call.
    pub(super) sent: u64,
    /// On the wall clock: `TX_SCHED`, `TX_SOFTWARE`, `RX_SOFTWARE`.
    pub(super) queued: u64,
    pub(super) handed: u64,
    pub(super) arrived: u64,
    /// On the monotonic clock, after the receive call.
    pub(super) received: u64,
    /// Both clocks, right after each of the two calls.
    pub(super) departure: ClockPair,
    pub(super) arrival: ClockPair,
}

/// The spans of one request in nanoseconds; they add up to its service time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) protocol: u64,
    pub(super) queue: u64,
    pub(super) network_and_server: u64,
    pub(super) wake_up: u64,
    /// How far a boundary between two of them may be off.
    pub(super) error: u64,
}

/// Puts the stamps on the monotonic clock, each by the pair of clocks nearest to it.
/// `None` when the wall clock was set in between: then no stamp can be placed.
pub(super) fn split(passage: &Passage) -> Option<Cut> {
    let Passage {
        departure, arrival, ..
    } = *passage;
    let error = arrival.error_since(&departure)?;
    let boundaries = [
        departure.to_monotonic(passage.queued),
        departure.to_monotonic(passage.handed),
        arrival.to_monotonic(passage.arrived),
    ];
    let mut last = passage.sent;
    let mut spans = [0; 3];
    for (span, boundary) in spans.iter_mut().zip(boundaries) {
        // Never before the previous one: a difference within the error is
        // corrected, and one beyond it means that the clock was set and set
        // back.
        if boundary + error < last || boundary > passage.received + error {
            return None;
        }
        let boundary = boundary.clamp(last, passage.received);
        *span = boundary - last;
        last = boundary;
    }
    Some(Cut {
        protocol: spans[0],
        queue: spans[1],
        network_and_server: spans[2],
        wake_up: passage.received - last,
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wall clock that is a day ahead.
    const AHEAD: u64 = 86_400_000_000_000;

    fn bracket(monotonic_ns: u64, error_ns: u64) -> ClockPair {
        ClockPair {
            monotonic_ns,
            realtime_ns: monotonic_ns + AHEAD,
            error_ns,
        }
    }

    fn passage() -> Passage {
        Passage {
            sent: 1_000_000,
            queued: 1_002_000 + AHEAD,
            handed: 1_002_500 + AHEAD,
            arrived: 1_042_500 + AHEAD,
            received: 1_050_000,
            departure: bracket(1_004_000, 30),
            arrival: bracket(1_050_100, 30),
        }
    }

    #[test]
    fn spans_are_cut_where_the_stamps_say() {
        let cut = split(&passage()).unwrap();
        let spans = [cut.protocol, cut.queue, cut.network_and_server, cut.wake_up];
        assert_eq!(spans, [2_000, 500, 40_000, 7_500]);
        assert_eq!(spans.iter().sum::<u64>(), 50_000);
        assert_eq!(cut.error, 30 + 30 + 46);
    }

    #[test]
    fn a_clock_that_was_set_is_seen_and_one_that_is_slewed_is_not_blamed() {
        let mut set = passage();
        set.arrival.realtime_ns += 5_000_000;
        set.arrived += 5_000_000;
        assert_eq!(split(&set), None);
        let mut slewed = passage();
        slewed.arrival.realtime_ns += 40;
        slewed.arrived += 40;
        assert_eq!(split(&slewed).unwrap().wake_up, 7_500);
        let mut back = passage();
        back.queued -= 5_000;
        assert_eq!(split(&back), None, "stamped before it was sent");
    }

    #[test]
    fn what_lies_within_the_error_is_put_right_and_still_adds_up() {
        let mut close = passage();
        close.queued = close.sent - 20 + AHEAD;
        close.arrived = close.received + 20 + AHEAD;
        let cut = split(&close).unwrap();
        assert_eq!((cut.protocol, cut.wake_up), (0, 0));
        assert_eq!(cut.queue + cut.network_and_server, 50_000);
    }
}
