//! The canonical test of coordinated omission (L-5), on the accounts alone.

use std::time::Duration;

use plumbline_experiment::Arrival;

use crate::flights::Flights;
use crate::recorder::Recorder;
use crate::schedule::Schedule;
use crate::window::Window;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// One connection, one request at a time: 100 s in which every answer takes
/// 1 ms, then a stall of 100 s, with a request due every 10 ms. The clock is
/// counted, not read, and the accounts are those of a real load: schedule,
/// flights, recorder.
///
/// Request `i` of the stall is due at `100 s + 10 ms × i` and answered, after
/// those before it, at `200 s + 1 ms × i`: its latency is
/// `100 s − 9 ms × i` (and 1 ms less for the first, which was being served).
fn stalled_load() -> Recorder {
    let start = SECOND;
    let window = Window::starting(
        start,
        Duration::ZERO,
        Duration::from_secs(200),
        Duration::from_secs(60),
    );
    let mut recorder = Recorder::new(window.length(), None);
    recorder.begin(window);
    let mut schedule =
        Schedule::new(Arrival::Constant { rate: 100.0 }, 0, 0, 1, start).expect("an open loop");
    let mut flights = Flights::new(1, 1, 0);
    let mut free = start;
    while schedule.next() < window.close {
        let intended = schedule.next();
        schedule.advance();
        recorder.planned(intended);
        let sent = intended.max(free);
        let seq = flights.book(0, intended, sent).expect("one at a time");
        recorder.sent(intended, sent, free, 64);
        let in_stall = (100 * SECOND..200 * SECOND).contains(&(sent - start));
        let received = if in_stall {
            start + 200 * SECOND
        } else {
            sent + MS
        };
        let flight = flights.take(0, seq).expect("it is out");
        recorder.completed(flight.intended, flight.sent, received, 100);
        free = received;
    }
    recorder
}

#[test]
fn half_of_the_requests_saw_the_stall() {
    let recorder = stalled_load();
    assert_eq!((recorder.planned, recorder.completed), (20_000, 20_000));
    let slow = recorder.latency.len() - recorder.latency.count_at_or_below(2 * MS);
    assert_eq!(slow, 10_000, "truth: half of them");
    // Request 5,000 of the stall: 100 s − 9 ms × 5,000.
    let p75 = recorder.latency.value_at(0.75) as f64 / SECOND as f64;
    assert!((p75 / 55.0 - 1.0).abs() < 0.002, "p75 is {p75} s");
    assert_eq!(recorder.latency.max(), 100 * SECOND);
    // Above 60 s a histogram only counts: 9 ms × i < 40 s.
    assert!(recorder.latency.overflow().abs_diff(4_444) <= 1);
}

#[test]
fn the_service_time_alone_would_have_hidden_it() {
    let recorder = stalled_load();
    let quick = recorder.service_time.count_at_or_below(MS + MS / 100);
    assert_eq!(quick, 19_999, "raw: all but the one that was being served");
    // The wait was the connection's, not the generator's.
    assert_eq!(recorder.waited, 9_999);
    assert_eq!(recorder.generator_lag.max(), 0);
    assert!(recorder.send_lag.max() > 99 * SECOND);
}
