//! The keys of a workload: their names in files and as flags of `plumbline load`.

use std::sync::LazyLock;

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
    Load,
    Limit,
    WarmUp,
    Duration,
    Drain,
}

struct KeyRow {
    key: Key,
    /// As files write it.
    name: &'static str,
    /// As `plumbline load` writes it. Some flags are switches that stand for one value.
    flag: &'static str,
    /// Whether it may also stand in `[factors]`.
    is_factor: bool,
}

const fn row(key: Key, name: &'static str, flag: &'static str, is_factor: bool) -> KeyRow {
    KeyRow {
        key,
        name,
        flag,
        is_factor,
    }
}

/// In the order in which factors appear in names.
#[rustfmt::skip] // a table reads better
const TABLE: &[KeyRow] = &[
    row(Key::Kind,         "kind",          "--workload",      false),
    row(Key::Protocol,     "protocol",      "--udp",           true),
    row(Key::RequestSize,  "request_size",  "--request-size",  true),
    row(Key::ResponseSize, "response_size", "--response-size", true),
    row(Key::Connections,  "connections",   "--connections",   true),
    row(Key::Arrival,      "arrival",       "--arrival",       true),
    row(Key::Rate,         "rate",          "--rate",          true),
    row(Key::KeepAlive,    "keep_alive",    "--no-keep-alive", true),
    row(Key::Server,       "server",        "--server",        true),
    row(Key::Wait,         "wait",          "--spin",          true),
    row(Key::Driver,       "driver",        "--driver",        true),
    row(Key::ZeroCopy,     "zero_copy",     "--zerocopy",      true),
    row(Key::Timestamps,   "timestamps",    "--timestamps",    true),
    row(Key::Load,         "load",          "--find-max",      true),
    row(Key::Limit,        "limit",         "--find-max",      false),
    row(Key::WarmUp,       "warm_up",       "--warm-up",       false),
    row(Key::Duration,     "duration",      "--duration",      false),
    row(Key::Drain,        "drain",         "--drain",         false),
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
