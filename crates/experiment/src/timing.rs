//! The phases of a trial.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lengths of the phases of a trial, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Timing {
    /// Load that is sent but not recorded (L-11).
    pub warm_up_ns: u64,
    /// The window whose requests are recorded.
    pub measure_ns: u64,
    /// Longest wait for outstanding answers after the window; what is still
    /// missing then is recorded as at least that late (L-3).
    pub drain_ns: u64,
}

impl Timing {
    /// Warm-up and window. The drain is left out: it ends with the last
    /// answer, which on a healthy path comes within a millisecond.
    pub fn expected(self) -> Duration {
        Duration::from_nanos(self.warm_up_ns.saturating_add(self.measure_ns))
    }
}
