//! What runs give, and what each figure is to reach.

use std::collections::BTreeMap;

use plumbline_report::number;
use plumbline_stats::order;
use serde::Serialize;

pub(crate) type Readings = BTreeMap<Measurand, f64>;

/// A quantity that a run gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Measurand {
    Rate,
    /// Bits per second, counted where they arrived.
    BitRate,
    /// CPU nanoseconds of the client per request.
    CpuPerRequest,
    /// Of these, in user space.
    UserPerRequest,
    /// CPU nanoseconds of the server per request.
    ServerCpuPerRequest,
    /// CPU nanoseconds of both ends per kilobyte.
    CpuPerKilobyte,
    /// Median latency, nanoseconds.
    P50,
    /// 99th percentile of the latency, nanoseconds.
    P99,
    /// 99.9th percentile of the latency, nanoseconds.
    P999,
    /// 99th percentile of sent − intended, nanoseconds.
    LagP99,
    Memory,
}

/// What is to be reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reach {
    /// Ours at most so many times theirs.
    AtMost(f64),
    /// Ours at least so many times theirs.
    AtLeast(f64),
    /// Ours at most so many times theirs, or so many nanoseconds more.
    AtMostOr(f64, f64),
    /// No further apart than this, in the metric's unit.
    Within(f64),
    /// Ours alone at most this, in the metric's unit.
    Ceiling(f64),
}

impl Reach {
    /// `None` when the other side's figure is missing.
    pub(crate) fn is_met(self, ours: f64, theirs: Option<f64>, ratio: Option<f64>) -> Option<bool> {
        Some(match self {
            Self::AtMost(most) => ratio? <= most,
            Self::AtLeast(least) => ratio? >= least,
            Self::AtMostOr(most, more) => ratio? <= most || ours - theirs? <= more,
            Self::Within(distance) => (ours - theirs?).abs() <= distance,
            Self::Ceiling(most) => ours <= most,
        })
    }

    /// What is to be reached, as a table shows it.
    pub(crate) fn in_words(self, quantity: Measurand) -> String {
        match self {
            Self::AtMost(most) => format!("≤ {most} ×"),
            Self::AtLeast(least) => format!("≥ {least} ×"),
            Self::AtMostOr(most, more) => {
                format!("≤ {most} × or +{}", quantity.show(more))
            }
            Self::Within(distance) => format!("± {}", quantity.show(distance)),
            Self::Ceiling(most) => format!("≤ {}", quantity.show(most)),
        }
    }
}

impl Measurand {
    /// What it is called in the table; `{}` stands for what was done.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Rate => "{}: requests/s",
            Self::BitRate => "{}: rate",
            Self::CpuPerRequest => "{}: client CPU per request",
            Self::UserPerRequest => "own user time per request",
            Self::ServerCpuPerRequest => "{}: server CPU per request",
            Self::CpuPerKilobyte => "{}: CPU of both ends per kB",
            Self::P50 => "{}: p50",
            Self::P99 => "{}: p99",
            Self::P999 => "{}: p99.9",
            Self::LagP99 => "{}: send lag p99",
            Self::Memory => "15,000 connections: client memory of each",
        }
    }

    /// How many samples a percentile of the open loop needs at least (D4);
    /// `None` for what every run has enough of.
    pub(crate) fn samples(self) -> Option<u64> {
        match self {
            Self::P50 => Some(order::samples_to_support(0.5)),
            Self::P99 | Self::LagP99 => Some(order::samples_to_support(0.99)),
            Self::P999 => Some(order::samples_to_support(0.999)),
            _ => None,
        }
    }

    pub(crate) fn show(self, value: f64) -> String {
        number::plain(&match self {
            Self::Rate => number::rate(value),
            Self::BitRate => number::bit_rate(value),
            Self::Memory => number::bytes(value),
            _ => number::duration(value),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reaches_are_met_and_missed() {
        let met =
            |reach: Reach, ours, theirs: f64| reach.is_met(ours, Some(theirs), Some(ours / theirs));
        assert_eq!(met(Reach::AtMost(0.6), 6.0, 10.0), Some(true));
        assert_eq!(met(Reach::AtMost(0.6), 6.1, 10.0), Some(false));
        assert_eq!(met(Reach::AtLeast(2.0), 19.0, 10.0), Some(false));
        assert_eq!(
            met(Reach::AtMostOr(1.03, 1e3), 20_900.0, 20_000.0),
            Some(true)
        );
        assert_eq!(
            met(Reach::AtMostOr(1.03, 1e3), 21_500.0, 20_000.0),
            Some(false)
        );
        assert_eq!(met(Reach::Within(2e3), 20e3, 23e3), Some(false));
        assert_eq!(Reach::AtMost(1.0).is_met(1.0, None, None), None);
        assert_eq!(Reach::Ceiling(5.0).is_met(5.1, None, None), Some(false));
    }
}
