//! How much a treatment carried.

use plumbline_experiment::Task;
use plumbline_record::{LoadObservation, Observation};
use plumbline_stats::order::{MedianOfRuns, median_of_runs};

use serde::Serialize;

use super::LEVEL;

/// How much a treatment carried. Rates are medians over its trials with their
/// order-statistic interval (L-15); counts are sums.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Requests per second that the schedule asked for; `None` for a closed loop.
    pub offered_requests_per_second: Option<f64>,
    /// Requests per second that were answered, or messages that were sent.
    #[serde(serialize_with = "crate::spread::spread")]
    pub achieved_requests_per_second: Option<MedianOfRuns>,
    /// Payload bits per second; for `datagram` those that arrived (N-13).
    #[serde(serialize_with = "crate::spread::spread")]
    pub throughput_bits_per_second: Option<MedianOfRuns>,
    /// `datagram`: messages that were sent and did not arrive, as a share.
    pub loss_share: Option<f64>,
    /// Requests that were planned.
    pub planned: u64,
    /// Requests that were answered and verified.
    pub completed: u64,
    /// Requests that failed, by any kind of error.
    pub errors: u64,
    /// Requests that were never answered (L-3).
    #[serde(rename = "unanswered")]
    pub censored: u64,
}

impl Rates {
    /// `None` of what is no load.
    pub(crate) fn new(task: &Task, kept: &[&Observation]) -> Option<Self> {
        let workload = task.load()?;
        let loads = || kept.iter().filter_map(|one| one.load());
        let sum = |count: &dyn Fn(&LoadObservation) -> u64| total(loads().map(count));
        Some(Self {
            offered_requests_per_second: workload.arrival.rate(),
            achieved_requests_per_second: over_trials(kept, requests_per_second),
            throughput_bits_per_second: over_trials(kept, throughput_bits_per_second),
            loss_share: loss_share(kept),
            planned: sum(&|seen| seen.load.planned),
            completed: sum(&|seen| seen.load.completed),
            errors: sum(&|seen| seen.load.errors.total()),
            censored: sum(&|seen| seen.load.censored),
        })
    }
}

/// The median over trials of a number of each (L-15).
pub(super) fn over_trials(
    kept: &[&Observation],
    value: impl Fn(&Observation) -> Option<f64>,
) -> Option<MedianOfRuns> {
    let values: Vec<f64> = kept.iter().filter_map(|one| value(one)).collect();
    median_of_runs(&values, LEVEL)
}

/// Median time to open a connection, for requests that each open one. A connection that
/// was begun and not made is later than all others (L-3).
pub(crate) fn handshake_ns(observation: &Observation) -> Option<f64> {
    let load = &observation.load()?.load;
    let made = load.connect.len();
    if made == 0 {
        return None;
    }
    let begun = load.sent.max(made) as f64;
    let among_made = (0.5 * begun / made as f64).min(1.0);
    Some(load.connect.value_at(among_made) as f64)
}

/// Requests answered in each second of the window.
pub(crate) fn requests_per_second(observation: &Observation) -> Option<f64> {
    let load = &observation.load()?.load;
    per_second(load.completed as f64, load.window_ns)
}

/// Payload bits in each second of the window; of datagrams, only those that
/// arrived (N-13).
pub(crate) fn throughput_bits_per_second(observation: &Observation) -> Option<f64> {
    let seen = observation.load()?;
    let mut window_ns = seen.load.window_ns;
    if let Some(datagrams) = seen.serve.datagrams {
        // What queued up in the window and arrived after it does not make the
        // path any faster. Between slices nothing was sent.
        let pauses_ns = match observation.common.rotation {
            Some(_) => datagrams.pauses_ns,
            None => 0,
        };
        window_ns = window_ns.max(datagrams.span_ns.saturating_sub(pauses_ns));
    }
    per_second(payload_bytes(seen) * 8.0, window_ns)
}

/// Payload bytes that count as carried. A stream goes one way, so whichever
/// direction has bytes is the one.
fn payload_bytes(seen: &LoadObservation) -> f64 {
    let load = &seen.load;
    match seen.serve.datagrams {
        Some(datagrams) => datagrams.bytes as f64,
        None => load.bytes_sent.max(load.bytes_received) as f64,
    }
}

/// What the cost of a trial is divided by: requests, or bytes for bulk.
pub(crate) fn units(task: &Task, seen: &LoadObservation) -> f64 {
    if task.traffic().is_bulk() {
        payload_bytes(seen)
    } else {
        seen.load.completed as f64
    }
}

fn loss_share(kept: &[&Observation]) -> Option<f64> {
    let (mut sent, mut received) = (0u64, 0u64);
    for seen in kept.iter().filter_map(|one| one.load()) {
        if let Some(datagrams) = seen.serve.datagrams {
            sent = sent.saturating_add(seen.load.sent);
            received = received.saturating_add(datagrams.received);
        }
    }
    (sent > 0).then(|| sent.saturating_sub(received) as f64 / sent as f64)
}

/// Datagrams sent for each that arrived; `None` of what is no datagram.
pub(crate) fn sent_per_received(observation: &Observation) -> Option<f64> {
    let seen = observation.load()?;
    let received = seen.serve.datagrams?.received.max(1);
    Some(seen.load.sent.max(received) as f64 / received as f64)
}

fn per_second(amount: f64, window_ns: u64) -> Option<f64> {
    (window_ns > 0).then(|| amount * 1e9 / window_ns as f64)
}

/// A sum that stays at the largest number when a file holds absurd counters.
pub(super) fn total(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}
