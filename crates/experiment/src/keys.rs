//! The vocabulary of an experiment file: which key belongs where.

use crate::{WorkloadKind, factor, metric};

/// Keys outside any section, and the sections.
pub(crate) const ROOT: &[&str] = &[
    "name",
    "question",
    "study",
    "target",
    "baseline",
    "distribution",
    "factors",
    "workload",
    "design",
    "link",
    "limits",
];

/// Kinds of place that an experiment may ask for.
pub(crate) const TARGETS: &[(&str, ())] = &[("lab", ()), ("kubernetes", ()), ("hosts", ())];

/// Keys of `[target.kubernetes]`.
pub(crate) const PROVISION: &[&str] = &["up", "down", "limit"];

/// Keys of a workload that may also stand in `[factors]`.
pub(crate) const WORKLOAD_FACTORS: &[&str] = &[
    "protocol",
    "request_size",
    "response_size",
    "connections",
    "arrival",
    "rate",
    "keep_alive",
    "server",
    "wait",
    "driver",
    "zero_copy",
    "timestamps",
    // The last, for its place in names.
    "load",
];

/// What the maximum has to hold that a `load` is a share of.
pub(crate) const LIMIT: &str = "limit";

/// Lengths of phases: of all workloads in `[design]`, of one in its section.
pub(crate) const TIMING: &[&str] = &["warm_up", "duration", "drain"];

/// Keys of `[design]`.
pub(crate) const DESIGN: &[&str] = &[
    "blocks", "warm_up", "duration", "drain", "budget", "retries", "seed",
];

/// Keys of `[link]`.
pub(crate) const LINK: &[&str] = &["rate", "delay", "loss", "mtu"];

/// Kinds as written in files, in the order in which they are explained.
pub(crate) const KINDS: &[(&str, WorkloadKind)] = &[
    ("rr", WorkloadKind::Rr),
    ("crr", WorkloadKind::Crr),
    ("stream", WorkloadKind::Stream),
    ("datagram", WorkloadKind::Datagram),
    ("http", WorkloadKind::Http),
];

/// All keys of `[factors]`.
pub(crate) fn factors() -> Vec<&'static str> {
    [&factor::keys()[..], WORKLOAD_FACTORS].concat()
}

/// All keys of `[[workload]]`, whatever its kind.
pub(crate) fn workload() -> Vec<&'static str> {
    [&["kind", "name", LIMIT], WORKLOAD_FACTORS, TIMING].concat()
}

/// All keys as `--set` writes them, for suggestions.
pub(crate) fn assignable() -> Vec<String> {
    // In the order in which they are suggested when only the last part was written.
    let sections: [(&str, Vec<&str>); 6] = [
        ("workload.", WORKLOAD_FACTORS.to_vec()),
        ("design.", DESIGN.to_vec()),
        ("factors.", factors()),
        ("workload.", TIMING.to_vec()),
        ("limits.", metric::names()),
        ("link.", LINK.to_vec()),
    ];
    let plain = ["name", "question", "study", "baseline"].map(String::from);
    let dotted = sections
        .iter()
        .flat_map(|(section, keys)| keys.iter().map(move |key| format!("{section}{key}")));
    plain.into_iter().chain(dotted).collect()
}

impl WorkloadKind {
    /// The kind as files and flags write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rr => "rr",
            Self::Crr => "crr",
            Self::Stream => "stream",
            Self::Datagram => "datagram",
            Self::Http => "http",
        }
    }

    /// Whether a key says anything about workloads of this kind. A key that
    /// would be ignored is refused, so that nobody believes it had an effect.
    pub(crate) fn takes(self, key: &str) -> bool {
        match key {
            "kind" | "name" | "connections" | "protocol" | "arrival" => true,
            "rate" | "load" | LIMIT | "wait" => self != Self::Stream,
            "request_size" => matches!(self, Self::Rr | Self::Crr | Self::Datagram),
            "response_size" => matches!(self, Self::Rr | Self::Crr | Self::Http),
            "keep_alive" | "server" => self == Self::Http,
            "driver" => matches!(self, Self::Rr | Self::Crr | Self::Http),
            "zero_copy" => self == Self::Stream,
            "timestamps" => matches!(self, Self::Rr | Self::Http),
            other => TIMING.contains(&other),
        }
    }

    /// Whether a key may take different values for workloads of this kind: a
    /// factor or a flag for all workloads passes by those where it may not.
    pub(crate) fn varies(self, key: &str) -> bool {
        match key {
            "protocol" => self == Self::Rr,
            "arrival" => self != Self::Stream,
            _ => self.takes(key),
        }
    }
}
