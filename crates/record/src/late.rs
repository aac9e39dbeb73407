//! What a sender sent late through its own fault, and when.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Requests, or connections tried, that their sender sent more than 10 ms late through its own
/// fault: those close to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LateSpell {
    /// How many.
    pub requests: u64,
    /// The intended moment of the first, nanoseconds.
    pub first_ns: u64,
    /// The intended moment of the last, nanoseconds.
    pub last_ns: u64,
    /// How late the latest of them was sent, nanoseconds.
    pub longest_ns: u64,
}

impl LateSpell {
    /// How late a request may be sent: as late as an answer that is in time. Those further
    /// apart than that are not close to each other.
    pub const LIMIT_NS: u64 = 10_000_000;

    /// Those of requests with their intended moments, which rise, and how late each was sent.
    pub fn all(requests: impl IntoIterator<Item = (u64, u64)>) -> Vec<Self> {
        let mut spells: Vec<Self> = Vec::new();
        for (intended_ns, lag_ns) in requests {
            if lag_ns <= Self::LIMIT_NS {
                continue;
            }
            match spells.last_mut() {
                Some(last) if intended_ns.saturating_sub(last.last_ns) <= Self::LIMIT_NS => {
                    last.requests += 1;
                    last.last_ns = intended_ns;
                    last.longest_ns = last.longest_ns.max(lag_ns);
                }
                _ => spells.push(Self {
                    requests: 1,
                    first_ns: intended_ns,
                    last_ns: intended_ns,
                    longest_ns: lag_ns,
                }),
            }
        }
        spells
    }

    /// How many of them were intended before a moment, if they were at gaps of so much.
    pub fn before(&self, ns: u64, gap_ns: u64) -> u64 {
        match ns.checked_sub(self.first_ns) {
            None | Some(0) => 0,
            Some(since_ns) => self.requests.min(since_ns.div_ceil(gap_ns.max(1))),
        }
    }

    /// The same by a clock that began so much earlier, nanoseconds.
    #[must_use]
    pub fn later(self, ns: u64) -> Self {
        Self {
            first_ns: self.first_ns + ns,
            last_ns: self.last_ns + ns,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn those_close_to_each_other_are_one_spell() {
        let requests = [(0, 0), (1, 11), (2, 10), (3, 30), (13, 12), (24, 11)];
        let spells = LateSpell::all(requests.map(|(at, lag)| (at * MS, lag * MS)));
        let spell = |requests, first, last, longest| LateSpell {
            requests,
            first_ns: first * MS,
            last_ns: last * MS,
            longest_ns: longest * MS,
        };
        assert_eq!(spells, [spell(3, 1, 13, 30), spell(1, 24, 24, 11)]);
    }

    #[test]
    fn only_those_before_a_moment_count() {
        let spell = LateSpell {
            requests: 5,
            first_ns: 10 * MS,
            last_ns: 14 * MS,
            longest_ns: 20 * MS,
        };
        let before = [9, 10, 11, 13, 15, 99].map(|at| spell.before(at * MS, MS));
        assert_eq!(before, [0, 0, 1, 3, 5, 5]);
    }
}
