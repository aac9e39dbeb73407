//! What was seen of a change of what a cluster programs: connections that were tried
//! before, while and after it was made.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Histogram, LateSpell};

/// What was seen of one change. Times are by the sender's clock since the first
/// connection was to be tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgrammingObservation {
    /// Whether connections are to succeed once the change acts; if not, they are to fail.
    pub opens: bool,
    /// When the API server was asked for the change, nanoseconds.
    pub asked_ns: u64,
    /// When its answer was there, nanoseconds.
    pub answered_ns: u64,
    /// How much earlier or later than that both may have been, nanoseconds: they were
    /// read on another machine's clock.
    pub clock_error_ns: u64,
    /// What was tried.
    pub probe: ProbeSeries,
}

/// Connections that were tried at equal gaps, whatever became of those before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeSeries {
    /// How long each was waited for, nanoseconds: less than TCP takes to try again, so
    /// that each shows the moment at which it was sent.
    pub limit_ns: u64,
    /// How many were tried.
    pub sent: u64,
    /// The longest time between one and the next, nanoseconds.
    pub widest_gap_ns: u64,
    /// How much later than intended they were sent.
    pub lag: Histogram,
    /// When that was more than 10 ms; none where it never was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sent_late: Vec<LateSpell>,
    /// How long those took that succeeded.
    pub connect: Histogram,
    /// All of them in the order of sending, those together that ended alike.
    pub spells: Vec<ProbeSpell>,
}

/// Connections that were tried one after the other and ended alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeSpell {
    /// How they ended.
    pub outcome: ProbeOutcome,
    /// How many.
    pub probes: u64,
    /// When the first was sent, nanoseconds.
    pub first_ns: u64,
    /// When the last was sent, nanoseconds.
    pub last_ns: u64,
}

/// How an attempt to open a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeOutcome {
    /// It was opened.
    Opened,
    /// It was refused: by the other side, a firewall or a router.
    Refused,
    /// Nothing came back in time.
    Unanswered,
}

impl ProbeSeries {
    /// How many were opened.
    pub fn opened(&self) -> u64 {
        let opened = |it: &&ProbeSpell| it.outcome == ProbeOutcome::Opened;
        let probes = self.spells.iter().filter(opened).map(|it| it.probes);
        probes.fold(0, u64::saturating_add)
    }

    /// The stretches of time in which connections were opened, nanoseconds: from when the
    /// first of them was sent until the next one was that was not opened, or until the last
    /// of all was.
    pub fn openings(&self) -> impl Iterator<Item = (u64, u64)> {
        let next = self.spells.iter().skip(1).map(Some).chain([None]);
        let with_next = self.spells.iter().zip(next);
        let opened = with_next.filter(|(it, _)| it.outcome == ProbeOutcome::Opened);
        opened.map(|(it, next)| (it.first_ns, next.map_or(it.last_ns, |next| next.first_ns)))
    }

    /// Whether the last was opened.
    pub fn ends_open(&self) -> bool {
        let last = self.spells.last();
        last.is_some_and(|it| it.outcome == ProbeOutcome::Opened)
    }

    /// The same by a clock that began so much earlier, nanoseconds.
    #[must_use]
    pub fn later(mut self, ns: u64) -> Self {
        for spell in &mut self.spells {
            spell.first_ns += ns;
            spell.last_ns += ns;
        }
        for spell in &mut self.sent_late {
            *spell = spell.later(ns);
        }
        self
    }
}

impl ProgrammingObservation {
    fn is_right(&self, spell: &ProbeSpell) -> bool {
        (spell.outcome == ProbeOutcome::Opened) == self.opens
    }

    /// The moment before which the change cannot have acted.
    fn earliest_ns(&self) -> u64 {
        self.asked_ns.saturating_sub(self.clock_error_ns)
    }

    fn after_answer(&self, ns: u64) -> i64 {
        // Both are lengths of a trial, far below what 63 bits hold, unless a file says else.
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        signed(ns) - signed(self.answered_ns)
    }

    /// When a connection was sent that ended as after the change, though the API server
    /// had not been asked for it; `None` where all was as it should be.
    pub fn premature_ns(&self) -> Option<i64> {
        let mut right = self.probe.spells.iter().filter(|it| self.is_right(it));
        let found = right.find(|it| it.first_ns < self.earliest_ns())?;
        Some(self.after_answer(found.first_ns))
    }

    /// From the API server's answer until the first connection was sent that ended as it
    /// should after the change, nanoseconds; below 0 where the change acted before its
    /// answer was there. `None` where none did.
    pub fn first_right_ns(&self) -> Option<i64> {
        let mut right = self.probe.spells.iter().filter(|it| self.is_right(it));
        let found = right.find(|it| it.first_ns >= self.earliest_ns())?;
        Some(self.after_answer(found.first_ns))
    }

    /// From the API server's answer until the last connection was sent that ended as
    /// before the change, nanoseconds; `None` where such were there until the end.
    pub fn last_wrong_ns(&self) -> Option<i64> {
        let (last, before) = self.probe.spells.split_last()?;
        if !self.is_right(last) {
            return None;
        }
        let wrong = before.iter().rfind(|it| !self.is_right(it))?;
        Some(self.after_answer(wrong.last_ns))
    }

    /// What no time in it is known more exactly than, nanoseconds: the gap between two
    /// connections and what the clocks may be off.
    pub fn resolution_ns(&self) -> u64 {
        self.probe.widest_gap_ns.saturating_add(self.clock_error_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::ProbeOutcome::{Opened, Refused, Unanswered};
    use super::*;

    const MS: u64 = 1_000_000;

    /// One connection in each ms, by runs of outcomes; asked at 100 ms, answered at 110 ms.
    fn seen(opens: bool, runs: &[(ProbeOutcome, u64)]) -> ProgrammingObservation {
        let mut next = 0;
        let spell = |&(outcome, probes): &(ProbeOutcome, u64)| {
            let first = next;
            next += probes;
            ProbeSpell {
                outcome,
                probes,
                first_ns: first * MS,
                last_ns: (next - 1) * MS,
            }
        };
        let spells: Vec<ProbeSpell> = runs.iter().map(spell).collect();
        ProgrammingObservation {
            opens,
            asked_ns: 100 * MS,
            answered_ns: 110 * MS,
            clock_error_ns: MS / 2,
            probe: ProbeSeries {
                limit_ns: 100 * MS,
                sent: next,
                widest_gap_ns: MS,
                spells,
                ..ProbeSeries::default()
            },
        }
    }

    fn times(of: &ProgrammingObservation) -> (Option<i64>, Option<i64>, Option<i64>) {
        let ms = |ns: i64| ns / MS as i64;
        (
            of.premature_ns().map(ms),
            of.first_right_ns().map(ms),
            of.last_wrong_ns().map(ms),
        )
    }

    /// As a file may hold them.
    #[test]
    fn moments_that_no_trial_has_are_the_furthest() {
        let mut of = seen(true, &[(Refused, 110), (Opened, 10)]);
        of.answered_ns = 0;
        of.probe.spells[1].first_ns = u64::MAX;
        of.probe.spells.push(ProbeSpell {
            probes: u64::MAX,
            ..of.probe.spells[1]
        });
        assert_eq!(of.first_right_ns(), Some(i64::MAX));
        assert_eq!(of.probe.opened(), u64::MAX);
    }

    #[test]
    fn a_clean_change_has_its_last_wrong_just_before_its_first_right() {
        let added = seen(true, &[(Refused, 160), (Opened, 100)]);
        assert_eq!(times(&added), (None, Some(50), Some(49)));
        let removed = seen(false, &[(Opened, 160), (Unanswered, 100)]);
        assert_eq!(times(&removed), (None, Some(50), Some(49)));
        assert_eq!(removed.probe.opened(), 160);
        assert_eq!(removed.resolution_ns(), 3 * MS / 2);
    }

    #[test]
    fn how_a_connection_fails_makes_no_difference() {
        let runs = [
            (Opened, 160),
            (Unanswered, 20),
            (Refused, 20),
            (Unanswered, 9),
        ];
        assert_eq!(times(&seen(false, &runs)), (None, Some(50), Some(49)));
        let runs = [(Unanswered, 120), (Refused, 40), (Opened, 9)];
        assert_eq!(times(&seen(true, &runs)), (None, Some(50), Some(49)));
    }

    #[test]
    fn what_wavers_is_right_first_and_wrong_last() {
        let runs = [
            (Refused, 150),
            (Opened, 5),
            (Refused, 1),
            (Opened, 4),
            (Unanswered, 10),
            (Opened, 50),
        ];
        assert_eq!(times(&seen(true, &runs)), (None, Some(40), Some(59)));
    }

    #[test]
    fn what_never_acts_has_no_time() {
        let never = seen(true, &[(Refused, 300)]);
        assert_eq!(times(&never), (None, None, None));
        let not_for_good = seen(true, &[(Refused, 150), (Opened, 5), (Refused, 100)]);
        assert_eq!(times(&not_for_good), (None, Some(40), None));
        let nothing = seen(true, &[]);
        assert_eq!(times(&nothing), (None, None, None));
    }

    #[test]
    fn it_may_act_before_its_answer_but_not_before_it_was_asked_for() {
        let swift = seen(true, &[(Refused, 105), (Opened, 100)]);
        assert_eq!(times(&swift), (None, Some(-5), Some(-6)));
        let early = seen(
            true,
            &[(Refused, 40), (Opened, 1), (Refused, 80), (Opened, 9)],
        );
        assert_eq!(times(&early), (Some(-70), Some(11), Some(10)));
        let always = seen(true, &[(Opened, 300)]);
        assert_eq!(times(&always), (Some(-110), None, None));
    }

    #[test]
    fn what_the_clocks_leave_open_is_not_held_against_it() {
        let mut vague = seen(true, &[(Refused, 98), (Opened, 100)]);
        assert!(vague.premature_ns().is_some());
        vague.clock_error_ns = 3 * MS;
        assert_eq!(times(&vague), (None, Some(-12), Some(-13)));
    }
}
