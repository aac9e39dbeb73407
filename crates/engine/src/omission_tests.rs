//! The canonical test of coordinated omission (L-5), on the accounts alone.

use std::ops::Range;

use plumbline_experiment::{Arrival, Slice};

use crate::flights::Flights;
use crate::recorder::Recorder;
use crate::schedule::Schedule;
use crate::window::{Window, whole};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const START: u64 = SECOND;

/// One connection, one request at a time, with a request due every 10 ms. Every
/// answer takes 1 ms, but from `stall.start` to `stall.end` after the start there is
/// none. The clock is counted, not read, and the accounts are those of a real load:
/// schedule, flights, recorder.
fn load(window: Window, stall: Range<u64>) -> Recorder {
    let mut recorder = Recorder::new(window.length(), None);
    recorder.window = window.clone();
    let mut schedule = Schedule::new(Arrival::Constant { rate: 100.0 }, 0, 0, 1, window.clone())
        .expect("an open loop");
    let mut flights = Flights::new(1, 1, 0);
    let mut free = START;
    while schedule.next() < window.close() {
        let intended = schedule.next();
        schedule.advance();
        recorder.planned(intended);
        let sent = intended.max(free);
        let seq = flights.book(0, intended, sent).expect("one at a time");
        recorder.sent(intended, sent, free, 64);
        let received = if stall.contains(&(sent - START)) {
            START + stall.end
        } else {
            sent + MS
        };
        let flight = flights.take(0, seq).expect("it is out");
        recorder.completed(flight.intended, flight.sent, received, 100);
        free = received;
    }
    recorder
}

/// 100 s, then a stall of 100 s. Request `i` of the stall is due at
/// `100 s + 10 ms × i` and answered, after those before it, at `200 s + 1 ms × i`: its
/// latency is `100 s − 9 ms × i` (and 1 ms less for the first, which was being
/// served).
fn stalled_load() -> Recorder {
    let window = whole(START, 200 * SECOND, 60 * SECOND);
    load(window, 100 * SECOND..200 * SECOND)
}

/// Runs from 0 to 100 s and from 150 to 250 s, with a stall from 50 to 200 s. Request
/// `i` of the stall in the first slice is due at `50 s + 10 ms × i` and answered at
/// `200 s + 1 ms × i`: `150 s − 9 ms × i` late, for 5,000 requests. Request `j` of the
/// second slice waits for those: it is due at `150 s + 10 ms × j` and answered at
/// `205 s + 1 ms × j`, that is `55 s − 9 ms × j`, until nothing waits any more.
#[test]
fn a_stall_that_reaches_over_a_pause_is_charged_to_all_that_were_due() {
    let slice = |begin, end| Slice {
        begin_ns: begin * SECOND,
        open_ns: begin * SECOND,
        end_ns: end * SECOND,
    };
    let window = Window::starting(START, &[slice(0, 100), slice(150, 250)], 60 * SECOND);
    let recorder = load(window, 50 * SECOND..200 * SECOND);
    assert_eq!(
        (recorder.seen.planned, recorder.seen.completed),
        (20_000, 20_000)
    );
    let late = |ns| recorder.seen.latency.len() - recorder.seen.latency.count_at_or_below(ns);
    assert_eq!(late(2 * MS), 5_000 + 6_111);
    // Of the second slice all below `j = 5,000`; the value lies between two buckets.
    assert!(
        late(10 * SECOND).abs_diff(10_000) <= 20,
        "{}",
        late(10 * SECOND)
    );
    assert_eq!(recorder.seen.latency.max(), 150 * SECOND);
    assert_eq!(recorder.seen.generator_lag.max(), 0);
}

#[test]
fn half_of_the_requests_saw_the_stall() {
    let recorder = stalled_load();
    assert_eq!(
        (recorder.seen.planned, recorder.seen.completed),
        (20_000, 20_000)
    );
    let slow = recorder.seen.latency.len() - recorder.seen.latency.count_at_or_below(2 * MS);
    assert_eq!(slow, 10_000, "truth: half of them");
    // Request 5,000 of the stall: 100 s − 9 ms × 5,000.
    let p75 = recorder.seen.latency.value_at(0.75) as f64 / SECOND as f64;
    assert!((p75 / 55.0 - 1.0).abs() < 0.002, "p75 is {p75} s");
    assert_eq!(recorder.seen.latency.max(), 100 * SECOND);
    // Above 60 s a histogram only counts: 9 ms × i < 40 s.
    assert!(recorder.seen.latency.overflow().abs_diff(4_444) <= 1);
}

#[test]
fn the_service_time_alone_would_have_hidden_it() {
    let recorder = stalled_load();
    let quick = recorder.seen.service_time.count_at_or_below(MS + MS / 100);
    assert_eq!(quick, 19_999, "raw: all but the one that was being served");
    // The wait was the connection's, not the generator's.
    assert_eq!(recorder.seen.waited_for_connection, 9_999);
    assert_eq!(recorder.seen.generator_lag.max(), 0);
    assert!(recorder.seen.send_lag.max() > 99 * SECOND);
}
