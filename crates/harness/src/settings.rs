//! How trials are run, beside what the plan says.

use std::time::Duration;

use crate::target::Cpus;
use crate::thresholds::Thresholds;

/// How trials are run, beside what the plan says.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the endpoints run.
    pub cpus: Cpus,
    /// What the validity gates allow.
    pub thresholds: Thresholds,
    /// Length of the idle sample at the head of each round.
    pub idle: Duration,
    /// How many times as long as usual slices are in which treatments take turns: more
    /// where wake-ups are late.
    pub slice_scale: u64,
    /// Gives the time for records, RFC 3339.
    pub now: fn() -> String,
}

impl Settings {
    /// On any CPU, for a look that is not recorded.
    pub(crate) fn anywhere() -> Self {
        Self {
            cpus: Cpus::default(),
            thresholds: Thresholds::default(),
            idle: Duration::ZERO,
            slice_scale: 1,
            now: String::new,
        }
    }
}
