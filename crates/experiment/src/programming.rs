//! Changes of what a cluster writes into the kernels of its nodes, and the probe that
//! sees when they act.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Refusal;
use crate::key::Key;
use crate::words::words;

/// Connections per second that a probe may try to open: fewer would not tell when, and
/// what is not answered stays open for a while.
const RATES: RangeInclusive<f64> = 100.0..=5_000.0;

/// As many connections per second as tell a moment to a millisecond.
const RATE: f64 = 1_000.0;

/// The keys that say something about programming.
const KEYS: &[Key] = &[
    Key::Kind,
    Key::Object,
    Key::Change,
    Key::Rate,
    Key::WarmUp,
    Key::Duration,
    Key::Drain,
];

/// One thing that is added or removed in a cluster, while new connections that need it are
/// tried at a steady rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Programming {
    /// The name in tables.
    pub name: String,
    /// What is changed.
    pub object: ProgrammedObject,
    /// How.
    pub change: ObjectChange,
    /// Connections that are tried in each second, at equal gaps, answered or not.
    pub rate: f64,
}

words! {
    /// What a cluster writes into the kernels of its nodes.
    ProgrammedObject {
        /// A Service with one endpoint: without it nothing is behind its address.
        #[default]
        Service = "service",
        /// A NetworkPolicy that allows what another one forbids.
        Policy = "policy",
    }
}

words! {
    /// What happens to a thing.
    ObjectChange {
        /// It is made: connections succeed from then on.
        #[default]
        Add = "add",
        /// It is deleted: connections fail from then on.
        Remove = "remove",
    }
}

impl ObjectChange {
    /// The one that undoes it.
    #[must_use]
    pub fn reverse(self) -> Self {
        match self {
            Self::Add => Self::Remove,
            Self::Remove => Self::Add,
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Add => "added",
            Self::Remove => "removed",
        }
    }
}

impl Default for Programming {
    fn default() -> Self {
        Self::new(ProgrammedObject::default(), ObjectChange::default())
    }
}

impl Programming {
    /// With its default name and rate.
    pub(crate) fn new(object: ProgrammedObject, change: ObjectChange) -> Self {
        Self {
            name: format!("{}-{}", object.as_str(), change.done()),
            object,
            change,
            rate: RATE,
        }
    }

    /// What it does, in a few words: `a service is added, …`.
    pub fn in_words(&self) -> String {
        let (object, done) = (self.object.as_str(), self.change.done());
        format!("a {object} is {done}, and new connections that need it are tried all the while")
    }

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if RATES.contains(&self.rate) {
            return Ok(());
        }
        let (least, most) = (RATES.start(), RATES.end());
        let possible = format!("connections per second from {least} to {most}");
        Err(Refusal::value(Key::Rate, self.rate, &possible))
    }
}

/// Whether a key says anything about programming.
pub(crate) fn takes(key: Key) -> bool {
    KEYS.contains(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_tells_nothing_or_takes_all_ports_is_refused() {
        for (rate, is_possible) in [
            (99.0, false),
            (100.0, true),
            (5_000.0, true),
            (5_001.0, false),
            (f64::NAN, false),
        ] {
            let of = Programming {
                rate,
                ..Programming::default()
            };
            assert_eq!(of.check().is_ok(), is_possible, "{rate}");
        }
    }

    #[test]
    fn each_change_has_a_name_of_its_own() {
        let mut names = Vec::new();
        for &object in ProgrammedObject::ALL {
            for &change in ObjectChange::ALL {
                assert_eq!(change.reverse().reverse(), change);
                names.push(Programming::new(object, change).name);
            }
        }
        let all = [
            "service-added",
            "service-removed",
            "policy-added",
            "policy-removed",
        ];
        assert_eq!(names, all);
    }
}
