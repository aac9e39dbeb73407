//! The keys of a workload: their names in files and as flags of `plumbline load`.

use std::sync::LazyLock;

use crate::WorkloadKind;
use crate::WorkloadKind::{Crr, Datagram, Http, Rr, Stream};

/// A key of a workload that rules speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "docs/experiment-file.md explains each key")]
pub enum Key {
    Kind,
    Protocol,
    RequestSize,
    ResponseSize,
    Connections,
    Arrival,
    Rate,
    KeepAlive,
    Server,
    Wait,
    Driver,
    ZeroCopy,
    Timestamps,
    Think,
    Load,
    Limit,
    Object,
    Change,
    Pods,
    During,
    Policy,
    WarmUp,
    Duration,
    Drain,
}

struct KeyRow {
    key: Key,
    /// As files write it.
    name: &'static str,
    /// As `plumbline load` writes it. Some flags are switches that stand for one value; keys
    /// of what is no load have none there.
    flag: &'static str,
    /// Whether it may also stand in `[factors]`.
    is_factor: bool,
    /// The kinds of load that it says something about; none where it is of another
    /// task.
    kinds: &'static [WorkloadKind],
}

const ALL: &[WorkloadKind] = &[Rr, Crr, Stream, Datagram, Http];
const AT_A_RATE: &[WorkloadKind] = &[Rr, Crr, Datagram, Http];
const ANSWERED: &[WorkloadKind] = &[Rr, Crr, Http];

const fn row(
    key: Key,
    name: &'static str,
    flag: &'static str,
    is_factor: bool,
    kinds: &'static [WorkloadKind],
) -> KeyRow {
    KeyRow {
        key,
        name,
        flag,
        is_factor,
        kinds,
    }
}

/// In the order in which factors appear in names.
#[rustfmt::skip] // a table reads better
const TABLE: &[KeyRow] = &[
    row(Key::Kind,         "kind",          "--workload",      false, ALL),
    row(Key::Protocol,     "protocol",      "--udp",           true,  ALL),
    row(Key::RequestSize,  "request_size",  "--request-size",  true,  &[Rr, Crr, Datagram]),
    row(Key::ResponseSize, "response_size", "--response-size", true,  ANSWERED),
    row(Key::Connections,  "connections",   "--connections",   true,  ALL),
    row(Key::Arrival,      "arrival",       "--arrival",       true,  ALL),
    row(Key::Rate,         "rate",          "--rate",          true,  AT_A_RATE),
    row(Key::KeepAlive,    "keep_alive",    "--no-keep-alive", true,  &[Http]),
    row(Key::Server,       "server",        "--server",        true,  &[Http]),
    row(Key::Wait,         "wait",          "--spin",          true,  AT_A_RATE),
    row(Key::Driver,       "driver",        "--driver",        true,  ANSWERED),
    row(Key::ZeroCopy,     "zero_copy",     "--zerocopy",      true,  &[Stream]),
    row(Key::Timestamps,   "timestamps",    "--timestamps",    true,  &[Rr, Http]),
    row(Key::Think,        "think",         "--think",         true,  ANSWERED),
    row(Key::Load,         "load",          "--find-max",      true,  AT_A_RATE),
    row(Key::Limit,        "limit",         "--find-max",      false, AT_A_RATE),
    row(Key::Object,       "object",        "--object",        true,  &[]),
    row(Key::Change,       "change",        "--change",        true,  &[]),
    row(Key::Pods,         "pods",          "--pods",          true,  &[]),
    row(Key::During,       "during",        "--during",        false, &[]),
    row(Key::Policy,       "policy",        "--policy",        true,  &[]),
    row(Key::WarmUp,       "warm_up",       "--warm-up",       false, ALL),
    row(Key::Duration,     "duration",      "--duration",      false, ALL),
    row(Key::Drain,        "drain",         "--drain",         false, ALL),
];

/// Names of the keys that may also stand in `[factors]`.
pub(crate) static WORKLOAD_FACTORS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let factors = TABLE.iter().filter(|row| row.is_factor);
    factors.map(|row| row.name).collect()
});

impl Key {
    pub(crate) fn find(name: &str) -> Option<Self> {
        let row = TABLE.iter().find(|row| row.name == name);
        row.map(|row| row.key)
    }

    /// As files write it, such as `keep_alive`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// As `plumbline load` writes it, such as `--no-keep-alive`.
    pub fn flag(self) -> &'static str {
        self.row().flag
    }

    /// The kinds of workload that it says something about.
    pub(crate) fn kinds(self) -> &'static [WorkloadKind] {
        self.row().kinds
    }

    fn row(self) -> &'static KeyRow {
        let row = TABLE.iter().find(|row| row.key == self);
        row.expect("a test looks each key up")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_one_row() {
        // The last of the enum, so none is missing when the counts agree.
        assert_eq!(TABLE.len(), Key::Drain as usize + 1);
        for row in TABLE {
            assert_eq!(Key::find(row.name), Some(row.key));
            assert_eq!((row.key.name(), row.key.flag()), (row.name, row.flag));
        }
    }
}
