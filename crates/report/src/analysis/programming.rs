//! How long changes took until they acted.

use plumbline_record::{Observation, ProgrammingObservation};

/// From the API server's answer until the last connection was sent that ended as before the
/// change, nanoseconds.
pub(crate) fn last_wrong_ns(observation: &Observation) -> Option<f64> {
    let seen = observation.programming()?;
    Some(at_least(seen, seen.last_wrong_ns()?))
}

/// From there until the first was sent that ended as it should after it, nanoseconds.
pub(crate) fn first_right_ns(observation: &Observation) -> Option<f64> {
    let seen = observation.programming()?;
    Some(at_least(seen, seen.first_right_ns()?))
}

/// A time no shorter than the trial can tell from none: one that is below may be below 0
/// too, and has no ratio.
fn at_least(seen: &ProgrammingObservation, ns: i64) -> f64 {
    (ns as f64).max(seen.resolution_ns() as f64)
}
