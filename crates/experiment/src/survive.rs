//! A command that does something to a path while traffic runs on it: a restart, an upgrade,
//! a link that goes down.

use std::ops::RangeInclusive;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::key::Key;
use crate::{Launch, Refusal, ready_made};

/// Requests of each kind per second: fewer would not tell a gap to two milliseconds, and
/// for more, new connections would run out of ports while nothing is answered.
const RATES: RangeInclusive<f64> = 1_000.0..=5_000.0;

/// Connections that stand all the while.
pub(crate) const CONNECTIONS: RangeInclusive<u32> = 1..=1_000;

/// New pods in each second: so few that no node has much to do with them.
const PODS_PER_SECOND: f64 = 1.0;

/// What may be asked for as the longest time of a command.
pub(crate) const LIMITS: RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(3_600);

/// The keys that say something about it.
const KEYS: &[Key] = &[
    Key::Kind,
    Key::During,
    Key::Limit,
    Key::Rate,
    Key::Connections,
    Key::Policy,
    Key::Pods,
    Key::WarmUp,
    Key::Duration,
];

/// A command, and the traffic that runs on a path before it, while it runs and after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Survive {
    /// The name in tables.
    pub name: String,
    /// The command, for the shell.
    pub during: String,
    /// The longest that the command may take, nanoseconds.
    pub limit_ns: u64,
    /// Requests of each kind in each second, at equal gaps, answered or not.
    pub rate: f64,
    /// Connections that stand all the while.
    pub connections: u32,
    /// Whether a policy forbids all else, and that is tried too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub policy: bool,
    /// New pods, one of which begins in each second from the beginning of the command on, also
    /// after its end; null where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<u32>,
}

impl Default for Survive {
    fn default() -> Self {
        Self {
            name: "survive".to_owned(),
            during: "true".to_owned(),
            limit_ns: 60_000_000_000,
            rate: *RATES.start(),
            connections: 100,
            policy: false,
            pods: None,
        }
    }
}

impl Survive {
    /// What it does, in a few words.
    pub fn in_words(&self) -> String {
        let standing = match self.connections {
            1 => "a standing connection".to_owned(),
            connections => format!("{connections} standing connections"),
        };
        let under = match self.policy {
            true => " under a policy that forbids all else",
            false => "",
        };
        let pods = self.launch().map(|it| format!(" and {}", it.in_words()));
        format!(
            "{standing}, new ones and datagrams{under} while a command runs{}",
            pods.unwrap_or_default()
        )
    }

    /// The new pods; `None` where there are none.
    pub fn launch(&self) -> Option<Launch> {
        self.pods.map(|pods| Launch {
            name: self.name.clone(),
            pods,
            rate: Some(PODS_PER_SECOND),
        })
    }

    /// From the intended moment of one request of a kind to that of the next, nanoseconds.
    pub fn gap_ns(&self) -> u64 {
        (1e9 / self.rate) as u64
    }

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if !RATES.contains(&self.rate) {
            let (least, most) = (RATES.start(), RATES.end());
            let possible = format!("requests of each kind per second from {least} to {most}");
            return Err(Refusal::value(Key::Rate, self.rate, &possible));
        }
        if !CONNECTIONS.contains(&self.connections) {
            return Err(Refusal::bounds(
                Key::Connections,
                self.connections,
                &CONNECTIONS,
            ));
        }
        self.launch().map_or(Ok(()), |it| it.check())?;
        if !LIMITS.contains(&Duration::from_nanos(self.limit_ns)) {
            let (least, most) = (LIMITS.start(), LIMITS.end());
            let given = format!("{:?}", Duration::from_nanos(self.limit_ns));
            let possible = format!("a time from {least:?} to {most:?}");
            return Err(Refusal::value(Key::Limit, given, &possible));
        }
        if self.during.trim().is_empty() {
            let given = "empty";
            let possible = "a command for the shell, such as \"systemctl restart containerd\"";
            return Err(Refusal::value(Key::During, given, possible));
        }
        Ok(())
    }
}

/// Whether a key says anything about it.
pub(crate) fn takes(key: Key) -> bool {
    KEYS.contains(&key)
}

/// Whether a command comes with the program, in an experiment of its own.
pub(crate) fn is_ready_made(command: &str) -> bool {
    let line = format!("\nduring = \"{command}\"\n");
    let mut all = ready_made().iter();
    all.any(|(_, text)| text.contains(&line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_no_gap_or_has_no_end_is_refused() {
        type Change = fn(&mut Survive);
        let cases: [(Change, bool); 10] = [
            (|_| (), true),
            (|it| it.rate = 999.0, false),
            (|it| it.rate = 5_001.0, false),
            (|it| it.rate = f64::NAN, false),
            (|it| it.connections = 0, false),
            (|it| it.connections = 1_001, false),
            (|it| it.limit_ns = u64::MAX, false),
            (|it| it.during = " ".to_owned(), false),
            (|it| it.pods = Some(100), true),
            (|it| it.pods = Some(0), false),
        ];
        for (change, is_possible) in cases {
            let mut survive = Survive::default();
            change(&mut survive);
            assert_eq!(survive.check().is_ok(), is_possible, "{survive:?}");
        }
    }

    #[test]
    fn only_commands_of_the_program_need_not_be_shown() {
        let (_, text) = ready_made().iter().find(|it| it.0 == "survive").unwrap();
        let line = text.lines().find_map(|it| it.strip_prefix("during = \""));
        assert!(is_ready_made(line.unwrap().trim_end_matches('"')));
        assert!(!is_ready_made("ip link"));
    }
}
