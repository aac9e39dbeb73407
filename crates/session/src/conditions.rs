//! What decides which trials count, and where they run.

use std::time::Duration;

use plumbline_harness::{Cpus, Settings, Target, Thresholds};
use plumbline_record::Conditions;

/// Length of the idle sample at the head of each block.
const IDLE: Duration = Duration::from_millis(200);

/// How trials are run on a target.
pub(crate) fn settings(target: &dyn Target) -> Settings {
    Settings {
        cpus: target.cpus(),
        thresholds: if plumbline_sys::user_mode::is_here() {
            Thresholds::user_mode()
        } else {
            Thresholds::default()
        },
        idle: IDLE,
        slice_scale: slice_scale(),
        now,
    }
}

/// The same for the record.
pub(crate) fn recorded(settings: &Settings) -> Conditions {
    let Cpus { client, server } = &settings.cpus;
    Conditions {
        thresholds: settings.thresholds.by_name(),
        client_cpus: client.clone(),
        server_cpus: server.clone(),
        // Far below what 64 bits hold.
        idle_ns: settings.idle.as_nanos() as u64,
    }
}

/// What was recorded of a run, for its further trials.
pub(crate) fn restored(recorded: &Conditions) -> Settings {
    Settings {
        cpus: Cpus {
            client: recorded.client_cpus.clone(),
            server: recorded.server_cpus.clone(),
        },
        thresholds: Thresholds::named(&recorded.thresholds),
        idle: Duration::from_nanos(recorded.idle_ns),
        slice_scale: slice_scale(),
        now,
    }
}

/// A kernel that runs as a program has one CPU, for which an agent that is to wake at the
/// edge of a slice waits as long as others have it.
fn slice_scale() -> u64 {
    if plumbline_sys::user_mode::is_here() {
        8
    } else {
        1
    }
}

/// The time for records, RFC 3339.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().to_string()
}
