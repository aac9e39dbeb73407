//! What a search looks for, and what a trial says about it.

use thiserror::Error;

/// What the load has to hold, and how certain that has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Length of a full trial, seconds.
    pub final_trial: f64,
    /// Length of the full trials at one load that decide about it, seconds.
    pub duration_sum: f64,
    /// The largest share of requests that may be lost.
    pub loss_ratio: f64,
    /// The share of the duration sum that may miss at a lower bound.
    pub exceed_ratio: f64,
    /// How close the bounds must be: (upper − lower) / upper.
    pub width: f64,
}

impl Goal {
    /// Nothing lost, decided by the majority of 21 trials of 1 s, bounds 0.5 %
    /// apart (D5).
    pub const NDR: Self = Self {
        final_trial: 1.0,
        duration_sum: 21.0,
        loss_ratio: 0.0,
        exceed_ratio: 0.5,
        width: 0.005,
    };

    /// As [`NDR`](Self::NDR) with 0.5 % lost (D5).
    pub const PDR: Self = Self {
        loss_ratio: 0.005,
        ..Self::NDR
    };

    /// One trial of 60 s in which nothing is lost decides, as in RFC 2544
    /// . One burst of noise decides too.
    pub const RFC_2544: Self = Self {
        final_trial: 60.0,
        duration_sum: 60.0,
        loss_ratio: 0.0,
        exceed_ratio: 0.0,
        width: 0.005,
    };

    pub(super) fn check(&self) -> Result<(), SearchError> {
        let is_positive = |value: f64| value.is_finite() && value > 0.0;
        if !is_positive(self.final_trial) || !is_positive(self.duration_sum) {
            return Err(SearchError::Durations);
        }
        if !(0.0..1.0).contains(&self.exceed_ratio) || !(0.0..1.0).contains(&self.loss_ratio) {
            return Err(SearchError::Ratios);
        }
        // within the width of a loss ratio the bounds mean nothing.
        if !is_positive(self.width) || self.width >= 1.0 || self.width < self.loss_ratio {
            return Err(SearchError::Width {
                width: self.width,
                loss_ratio: self.loss_ratio,
            });
        }
        Ok(())
    }

    pub(super) fn holds(&self, trial: &LoadTrial) -> bool {
        !trial.missed && trial.loss_ratio <= self.loss_ratio
    }
}

/// Where to search, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The least load, per second: must hold, or the path is broken.
    pub least: f64,
    /// The most load that is ever offered, per second.
    pub most: f64,
    /// Length of all trials together after which the search gives up without
    /// a number, seconds.
    pub time_limit: f64,
}

/// What one trial gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadTrial {
    /// Intended load, per second.
    pub load: f64,
    /// Its length as intended, seconds.
    pub duration: f64,
    /// What was not answered, as a share of what was intended; see [`loss_ratio`].
    pub loss_ratio: f64,
    /// Whether it broke a limit other than loss, such as p99 < 1 ms.
    pub missed: bool,
    /// What was answered, per second of the trial.
    pub forwarding_rate: f64,
    /// Whether the generator failed its own checks, so that a miss says
    /// nothing about what was measured.
    pub generator_limited: bool,
}

/// Time at the start of a trial whose requests may be missing, seconds (Q-7;
/// the value of CSIT).
const START_ALLOWANCE: f64 = 10e-6;

/// The share that was lost of `planned` requests at `load` per second, of
/// which `sent` went out and `answered` came back in time.
///
/// What was never sent is lost, so that a slow generator lowers the answer and
/// never raises it; only what falls into the first 10 µs is left out, for the
/// time that a start takes.
pub fn loss_ratio(load: f64, planned: u64, sent: u64, answered: u64) -> f64 {
    if planned == 0 {
        // Nothing was tried, so nothing was shown to hold.
        return 1.0;
    }
    let allowance = (load * START_ALLOWANCE) as u64;
    let unsent = planned.saturating_sub(sent).saturating_sub(allowance);
    let unanswered = sent.saturating_sub(answered);
    ((unsent + unanswered) as f64 / planned as f64).min(1.0)
}

/// Why there can be no search.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum SearchError {
    /// A length is not a length.
    #[error("the final trial duration and the duration sum must be above 0 s")]
    Durations,
    /// A share is not a share.
    #[error("the loss ratio and the exceed ratio must be from 0 to below 1")]
    Ratios,
    /// The bounds could not mean anything.
    #[error(
        "bounds {width} apart cannot be told with a loss ratio of {loss_ratio}: \
         the width must be above 0, below 1, and not below the loss ratio"
    )]
    Width {
        /// As asked for.
        width: f64,
        /// As asked for.
        loss_ratio: f64,
    },
    /// There is no room to search in.
    #[error("the least load ({least}/s) must be above 0 and below the most ({most}/s)")]
    Range {
        /// As asked for.
        least: f64,
        /// As asked for.
        most: f64,
    },
}
