//! The result of a load for scripts.

use plumbline_record::{Floor, LoadOutcome};
use serde_json::{Value, json};

use super::warning::in_words;
use super::window::{per_second, seconds};
use crate::latency::{Sample, latency_json};
use crate::spans;

/// What scripts rely on; units are in the names.
pub fn json(outcome: &LoadOutcome) -> Value {
    let result = &outcome.result;
    json!({
        "driver": result.driver,
        "offered_rate": result.arrival.rate(),
        "achieved_rate": per_second(outcome, result.completed),
        "window_seconds": seconds(outcome),
        "cut_off": outcome.interrupted,
        "requests": result.completed,
        "censored": result.censored,
        "errors": result.errors.total(),
        "errors_by_kind": result.errors,
        "bytes_sent": result.bytes_sent,
        "bytes_received": result.bytes_received,
        "latency_ns": latency_json(Sample::of_load(&result.latency, result)),
        "service_time_ns": latency_json(Sample::of_load(&result.service_time, result)),
        "send_lag_ns": latency_json(&result.send_lag),
        "floor_ns": outcome.floor.map(floor_json),
        "generator_lag_ns": latency_json(&result.generator_lag),
        "connect_ns": latency_json(&result.connect),
        "cpu_seconds": (result.cpu.user_ns + result.cpu.system_ns) as f64 / 1e9,
        "spin_seconds": result.spin_ns as f64 / 1e9,
        "threads_latency_ns": result.clients.iter().map(latency_json).collect::<Vec<_>>(),
        "busiest_thread_share": result.busiest_thread(),
        "arrivals": result.arrivals,
        "generator_was_the_limit": outcome.limited_by_generator,
        "messages_per_train": result.train,
        "zero_copy": result.zero_copy,
        "spans": result.spans.as_deref().map(spans::json),
        "seed": result.seed,
        "warnings": outcome.warnings.iter().map(in_words).collect::<Vec<_>>(),
    })
}

/// As in the JSON of reports.
pub(super) fn floor_json(floor: Floor) -> Value {
    json!({ "p50": floor.p50_ns, "p99": floor.p99_ns })
}
