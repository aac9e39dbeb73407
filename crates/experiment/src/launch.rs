//! Pods that are launched on a network that stands, and followed until each has its
//! network.

use std::ops::RangeInclusive;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::key::Key;
use crate::{Refusal, Timing};

/// Pods of one launch: as many as the addresses of a node of Calico's have room for, on
/// two nodes.
pub(crate) const PODS: RangeInclusive<u32> = 1..=100;

/// Pods per second: more than any system starts, and so few that a trial ends.
const RATES: RangeInclusive<f64> = 1.0..=1_000.0;

/// What a pod takes to come and to go, about: only estimates rest on it.
const OF_A_POD: Duration = Duration::from_millis(25);

/// The keys that say something about a launch.
const KEYS: &[Key] = &[Key::Kind, Key::Pods, Key::Rate];

/// So many pods are launched, each of which is followed until packets pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Launch {
    /// The name in tables.
    pub name: String,
    /// How many.
    pub pods: u32,
    /// How many of them begin in each second, at equal gaps, however long those before
    /// take; null where all begin at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
}

impl Default for Launch {
    fn default() -> Self {
        Self {
            name: "launch".to_owned(),
            pods: 1,
            rate: None,
        }
    }
}

impl Launch {
    /// What it does, without its rate: `100 pods are launched`.
    pub fn in_words(&self) -> String {
        match self.pods {
            1 => "a pod is launched".to_owned(),
            pods => format!("{pods} pods are launched"),
        }
    }

    /// From the intended start of one pod to that of the next, nanoseconds.
    pub fn gap_ns(&self) -> u64 {
        self.rate.map_or(0, |rate| (1e9 / rate) as u64)
    }

    /// About how long a trial takes: it has no phases, and is over when all pods are gone. They
    /// end as they begin.
    pub(crate) fn timing(&self) -> Timing {
        let starting_ns = 2 * self.gap_ns() * u64::from(self.pods - 1);
        let work = OF_A_POD * self.pods;
        Timing {
            warm_up_ns: 0,
            // Far below what 64 bits hold.
            measure_ns: starting_ns + work.as_nanos() as u64,
            drain_ns: 0,
        }
    }

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if !PODS.contains(&self.pods) {
            return Err(Refusal::bounds(Key::Pods, self.pods, &PODS));
        }
        match self.rate {
            Some(rate) if !RATES.contains(&rate) => {
                let (least, most) = (RATES.start(), RATES.end());
                let possible = format!("pods per second from {least} to {most}");
                Err(Refusal::value(Key::Rate, rate, &possible))
            }
            _ => Ok(()),
        }
    }
}

/// Whether a key says anything about a launch.
pub(crate) fn takes(key: Key) -> bool {
    KEYS.contains(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(pods: u32, rate: Option<f64>) -> Launch {
        Launch {
            pods,
            rate,
            ..Launch::default()
        }
    }

    #[test]
    fn more_pods_than_there_are_addresses_are_refused_and_rates_without_end() {
        for (pods, rate, is_possible) in [
            (0, None, false),
            (1, None, true),
            (100, Some(50.0), true),
            (101, None, false),
            (2, Some(0.9), false),
            (2, Some(1_001.0), false),
            (2, Some(f64::NAN), false),
        ] {
            let of = launch(pods, rate);
            assert_eq!(of.check().is_ok(), is_possible, "{of:?}");
        }
    }

    #[test]
    fn pods_begin_at_equal_gaps_or_at_once() {
        assert_eq!(launch(100, None).gap_ns(), 0);
        let steady = launch(100, Some(50.0));
        assert_eq!(steady.gap_ns(), 20_000_000);
        assert_eq!(
            steady.timing().measure_ns,
            (2 * 99 * 20 + 100 * 25) * 1_000_000
        );
    }
}
