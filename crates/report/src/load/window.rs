//! Counts of a load over its measured window.

use plumbline_record::LoadOutcome;

/// Length of the window, seconds.
pub(super) fn seconds(outcome: &LoadOutcome) -> f64 {
    outcome.result.window_ns as f64 / 1e9
}

/// How many per second of the window; 0 where none was measured.
pub(super) fn per_second(outcome: &LoadOutcome, count: u64) -> f64 {
    if outcome.result.window_ns == 0 {
        return 0.0;
    }
    count as f64 / seconds(outcome)
}
