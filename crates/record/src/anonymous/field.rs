//! Which strings of a record may tell whose it is.

/// What a string is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Field {
    /// A word of the format, a time, or what readers need to judge the figures.
    Stays,
    /// A name; the pseudonym begins with this.
    Name(&'static str),
    /// A word of a command line.
    Command,
    /// A text that may hold any name.
    Text,
}

use Field::{Command, Name, Stays};

/// By key, or by key and the one around it. Every other string is a text.
const FIELDS: &[(&str, Field)] = &[
    // Words of the format.
    ("arrival.process", Stays),
    ("limit", Stays),
    ("hdr_v2", Stays),
    ("kind", Stays),
    ("layout", Stays),
    ("neighbours.kind", Stays),
    ("neighbours.share", Stays),
    ("outcome.outcome", Stays),
    ("placement", Stays),
    ("policies.direction", Stays),
    ("policies.enforcer", Stays),
    ("policies.position", Stays),
    ("policies.peers", Stays),
    ("policies.selects", Stays),
    ("programming.change", Stays),
    ("programming.object", Stays),
    ("protocol", Stays),
    ("purpose", Stays),
    ("services.proxy", Stays),
    ("services.position", Stays),
    ("spells.outcome", Stays),
    ("status.status", Stays),
    ("gates.gate", Stays),
    ("generator.gate", Stays),
    ("disturbed.gate", Stays),
    ("tuning.encryption", Stays),
    ("tuning.tcp_congestion_control", Stays),
    ("wait", Stays),
    ("warnings.warning", Stays),
    ("what.exercise", Stays),
    ("workload.driver", Stays),
    ("workload.server", Stays),
    // When, and by which program of ours.
    ("started", Stays),
    ("provenance.version", Stays),
    ("build.version", Stays),
    ("sha256", Stays),
    // What readers need to judge the figures.
    ("architecture", Stays),
    ("clock_source", Stays),
    ("cpu_model", Stays),
    ("driver", Stays),
    ("governor", Stays),
    ("hypervisor", Stays),
    ("kernel", Stays),
    ("microcode", Stays),
    ("offloads", Stays),
    ("qdisc", Stays),
    ("sysctls.*", Stays),
    ("tuned", Stays),
    // Names.
    ("alias", Name("network")),
    ("answered", Name("server")),
    ("by", Name("cause")),
    ("device", Name("device")),
    ("experiment", Name("experiment")),
    ("label", Name("network")),
    ("log", Name("log")),
    ("machine", Name("machine")),
    ("namespace", Name("place")),
    ("launch.name", Name("workload")),
    ("node", Name("node")),
    ("network", Name("network")),
    ("nodes", Name("node")),
    ("pair.client", Name("node")),
    ("pair.server", Name("node")),
    ("path", Name("path")),
    ("plugins.kind", Name("plugin")),
    ("plugins.version", Name("version")),
    ("programming.name", Name("workload")),
    ("serve.server", Name("server")),
    ("steps.step", Name("step")),
    ("study", Name("study")),
    ("survive.name", Name("workload")),
    ("target", Name("target")),
    ("treatment", Name("network")),
    ("variant.name", Name("network")),
    ("versions.*", Name("version")),
    ("wanted", Name("server")),
    ("workload", Name("workload")),
    ("workload.name", Name("workload")),
    ("command", Command),
];

/// Maps, and what their keys are.
const MAPS: &[(&str, Field)] = &[
    ("cni", Name("network")),
    ("devices", Name("network")),
    ("limits", Stays),
    ("others", Name("host")),
    ("sysctls", Stays),
    ("thresholds", Stays),
    ("versions", Name("component")),
];

/// What a string is that stands under `key` in an object under `parent`; items of an array
/// stand under its key with `[]` behind it.
pub(super) fn of(parent: &str, key: &str) -> Field {
    let (parent, key) = (parent.trim_end_matches("[]"), key.trim_end_matches("[]"));
    let find = |wanted: &str| FIELDS.iter().find(|(name, _)| *name == wanted);
    let found = find(&format!("{parent}.{key}")).or_else(|| find(key));
    found.map_or(Field::Text, |(_, field)| *field)
}

/// What the keys of the object under `key` are, where they are names.
pub(super) fn keys_of(key: &str) -> Option<Field> {
    let found = MAPS.iter().find(|(name, _)| *name == key);
    found.map(|(_, field)| *field)
}
