//! Medians over trials in JSON.

// In `object!` each key has a type of its own.
#![allow(non_camel_case_types)]

use plumbline_stats::order::MedianOfRuns;
use serde::{Serialize, Serializer};

use crate::object::object;

/// A median over trials as [`spread`] writes it.
#[derive(Serialize)]
pub(crate) struct Spread(#[serde(serialize_with = "spread")] pub(crate) Option<MedianOfRuns>);

/// A median over trials with its order-statistic interval; null without a trial.
pub(crate) fn spread<S: Serializer>(of: &Option<MedianOfRuns>, to: S) -> Result<S::Ok, S::Error> {
    let spread = of.map(|runs| {
        let interval = runs.interval;
        object! {
            median: runs.median,
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
            level: interval.map(|interval| interval.level),
        }
    });
    spread.serialize(to)
}

/// The same with both ends in one list.
pub(crate) fn spread_as_pair<S: Serializer>(
    of: &Option<MedianOfRuns>,
    to: S,
) -> Result<S::Ok, S::Error> {
    let pair = of.map(|runs| {
        let interval = runs.interval.map(|it| [it.low, it.high]);
        object! { median: runs.median, interval: interval }
    });
    pair.serialize(to)
}
