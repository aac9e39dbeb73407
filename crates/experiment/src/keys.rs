//! The vocabulary of an experiment file: which key belongs where.

use crate::key::WORKLOAD_FACTORS;
use crate::{factor, metric};

/// Keys outside any section, and the sections.
pub(crate) const ROOT: &[&str] = &[
    "name",
    "question",
    "study",
    "target",
    "baseline",
    "distribution",
    "factors",
    "network",
    "workload",
    "design",
    "link",
    "limits",
];

/// Targets that an experiment may ask for.
pub(crate) const TARGETS: &[(&str, ())] = &[("lab", ()), ("kubernetes", ()), ("hosts", ())];

/// Keys of `[target.kubernetes]`.
pub(crate) const PROVISION: &[&str] = &["up", "down", "limit"];

/// What the maximum that a `load` is a share of has to hold.
pub(crate) const LIMIT: &str = "limit";

/// What is run on a path while traffic survives it or not.
pub(crate) const DURING: &str = "during";

/// Lengths of phases: of all workloads in `[design]`, of one in its section.
pub(crate) const TIMING: &[&str] = &["warm_up", "duration", "drain"];

/// Whether something is wanted.
pub(crate) const SWITCH: &[(&str, bool)] = &[("on", true), ("off", false)];

pub(crate) const DESIGN: &[&str] = &[
    "blocks",
    "warm_up",
    "duration",
    "drain",
    "budget",
    "rotate",
    "slice",
    "precision",
    "sequential",
    "control",
    "retries",
    "seed",
];

pub(crate) const LINK: &[&str] = &["rate", "delay", "loss", "mtu"];

pub(crate) fn factors() -> Vec<&'static str> {
    [&factor::keys()[..], &WORKLOAD_FACTORS].concat()
}

/// All keys of `[[workload]]`, whatever its kind.
pub(crate) fn workload() -> Vec<&'static str> {
    [
        &["kind", "name", LIMIT, DURING],
        &WORKLOAD_FACTORS[..],
        TIMING,
    ]
    .concat()
}

/// All keys as `--set` writes them, for suggestions.
pub(crate) fn assignable() -> Vec<String> {
    // In the order in which they are suggested when only the last part was written.
    let sections: [(&str, Vec<&str>); 7] = [
        ("workload.", WORKLOAD_FACTORS.to_vec()),
        ("design.", DESIGN.to_vec()),
        ("factors.", factors()),
        ("workload.", TIMING.to_vec()),
        ("workload.", vec![DURING]),
        ("limits.", metric::names()),
        ("link.", LINK.to_vec()),
    ];
    let plain = ["name", "question", "study", "baseline"].map(String::from);
    let dotted = sections
        .iter()
        .flat_map(|(section, keys)| keys.iter().map(move |key| format!("{section}{key}")));
    plain.into_iter().chain(dotted).collect()
}
