//! What was seen of traffic while a command did something to its path.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Histogram, LateSpell, LaunchObservation, ProbeOutcome, ProbeSeries};

/// What was seen of all traffic of one repetition. Times are by the sender's clock since the
/// first of all requests was intended, or of all connections tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SurviveObservation {
    /// When the command was begun, nanoseconds.
    pub begun_ns: u64,
    /// When it had ended, nanoseconds.
    pub ended_ns: u64,
    /// How much earlier or later than that both may have been, nanoseconds: they were
    /// read on another machine's clock.
    pub clock_error_ns: u64,
    /// The traffic, each kind once.
    pub flows: Vec<FlowSeries>,
    /// Connections that a policy forbids; null where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forbidden: Option<ProbeSeries>,
    /// Pods that began meanwhile; null where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launched: Option<LaunchObservation>,
}

/// The requests of one kind, at equal gaps, whatever became of those before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowSeries {
    /// Which.
    pub kind: FlowKind,
    /// From the intended moment of one request to that of the next, nanoseconds.
    pub gap_ns: u64,
    /// Connections that were open when the first request was intended.
    pub connections: u64,
    /// Those of them that had broken, and were not replaced.
    pub broken: u64,
    /// How much later than intended requests were sent through the sender's own fault.
    pub lag: Histogram,
    /// When that was more than 10 ms; none where it never was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sent_late: Vec<LateSpell>,
    /// How long after their intended moments requests were answered; of those that were
    /// not, how long they were waited for.
    pub latency: Histogram,
    /// All requests in the order of their intended moments, those together that fared alike.
    pub spells: Vec<RequestSpell>,
}

/// A kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowKind {
    /// Requests in turn on connections that stand.
    Standing,
    /// A connection for each request.
    New,
    /// UDP, each datagram answered by one.
    Datagram,
}

/// Requests that followed each other and fared alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestSpell {
    /// How they fared.
    pub outcome: RequestOutcome,
    /// How many.
    pub requests: u64,
    /// The intended moment of the first, nanoseconds.
    pub first_ns: u64,
    /// The intended moment of the last, nanoseconds.
    pub last_ns: u64,
}

/// How a request fared, by the time from its intended moment to its answer.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum RequestOutcome {
    /// Answered within 10 ms.
    InTime,
    /// Later than that.
    #[serde(rename = "after-10ms")]
    After10Ms,
    /// Later than 100 ms.
    #[serde(rename = "after-100ms")]
    After100Ms,
    /// Later than 1 s.
    #[serde(rename = "after-1s")]
    After1S,
    /// An error came instead.
    Failed,
    /// Nothing came as long as it was waited for.
    Unanswered,
}

/// Requests in a row that were not answered in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestGap {
    /// The intended moment of the first of them, nanoseconds.
    pub from_ns: u64,
    /// The intended moment of the first one after them that was answered in time; where
    /// there was none, that of the next that would have been sent.
    pub until_ns: u64,
    /// Whether there was none.
    pub is_open: bool,
}

const MS: u64 = 1_000_000;

/// The most that an answer in time takes, nanoseconds.
const IN_TIME_NS: u64 = 10 * MS;

impl RequestOutcome {
    /// Of a request that was answered after so many nanoseconds.
    pub fn after(ns: u64) -> Self {
        let classes = [
            (IN_TIME_NS, Self::InTime),
            (100 * MS, Self::After10Ms),
            (1_000 * MS, Self::After100Ms),
        ];
        let class = classes.into_iter().find(|(most, _)| ns <= *most);
        class.map_or(Self::After1S, |(_, outcome)| outcome)
    }

    /// How long it took at least, nanoseconds. What was not answered counts as later than
    /// anything.
    pub fn least_ns(self) -> u64 {
        match self {
            Self::InTime => 0,
            Self::After10Ms => IN_TIME_NS,
            Self::After100Ms => 100 * MS,
            Self::After1S => 1_000 * MS,
            Self::Failed | Self::Unanswered => u64::MAX,
        }
    }
}

impl FlowKind {
    /// All of them, in the order of a record.
    pub const ALL: [Self; 3] = [Self::Standing, Self::New, Self::Datagram];
}

impl RequestGap {
    /// From the first request that was not answered in time to the first that was,
    /// nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.until_ns.saturating_sub(self.from_ns)
    }
}

/// The sum of numbers from a file, which may be any.
fn total(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

impl FlowSeries {
    /// How many requests there were.
    pub fn requests(&self) -> u64 {
        total(self.spells.iter().map(|it| it.requests))
    }

    /// How many were not answered within so many nanoseconds: 10 ms, 100 ms or 1 s.
    pub fn later_than(&self, ns: u64) -> u64 {
        let late = self.spells.iter().filter(|it| it.outcome.least_ns() >= ns);
        total(late.map(|it| it.requests))
    }

    /// How many of those intended before a moment were answered in time, about.
    pub fn in_time_before(&self, ns: u64) -> u64 {
        let before = |it: &RequestSpell| match it.first_ns < ns {
            true => it.requests.min((ns - it.first_ns) / self.gap_ns.max(1)),
            false => 0,
        };
        let in_time = |it: &&RequestSpell| it.outcome == RequestOutcome::InTime;
        total(self.spells.iter().filter(in_time).map(before))
    }

    /// The stretches of intended moments without an answer in time.
    pub fn gaps(&self) -> Vec<RequestGap> {
        let is_in_time = |it: &RequestSpell| it.outcome == RequestOutcome::InTime;
        let mut rest = &self.spells[..];
        let mut gaps = Vec::new();
        while let Some(first) = rest.iter().position(|it| !is_in_time(it)) {
            let from_ns = rest[first].first_ns;
            rest = &rest[first..];
            let late = rest.iter().position(is_in_time).unwrap_or(rest.len());
            let (gap, after) = rest.split_at(late);
            let last_ns = gap.last().map_or(from_ns, |it| it.last_ns);
            gaps.push(RequestGap {
                from_ns,
                until_ns: after
                    .first()
                    .map_or(last_ns.saturating_add(self.gap_ns), |it| it.first_ns),
                is_open: after.is_empty(),
            });
            rest = after;
        }
        gaps
    }
}

impl SurviveObservation {
    /// The traffic of a kind.
    pub fn flow(&self, kind: FlowKind) -> Option<&FlowSeries> {
        self.flows.iter().find(|it| it.kind == kind)
    }

    /// The moment before which the command cannot have done anything.
    pub fn earliest_ns(&self) -> u64 {
        self.begun_ns.saturating_sub(self.clock_error_ns)
    }

    /// The longest stretch of intended moments without an answer in time that ended after
    /// the command was begun, nanoseconds; 0 where there was none.
    pub fn longest_gap_ns(&self, kind: FlowKind) -> Option<u64> {
        let gaps = self.flow(kind)?.gaps().into_iter();
        let since = gaps.filter(|it| it.until_ns > self.earliest_ns());
        Some(since.map(|it| it.length_ns()).max().unwrap_or_default())
    }

    /// The longest that ended before the command was begun, nanoseconds: what path and
    /// machine do by themselves.
    pub fn longest_gap_before_ns(&self, kind: FlowKind) -> u64 {
        let gaps = self.flow(kind).into_iter().flat_map(FlowSeries::gaps);
        let before = gaps.filter(|it| it.until_ns <= self.earliest_ns());
        before.map(|it| it.length_ns()).max().unwrap_or_default()
    }

    /// From the beginning of the command to the end of the last gap of any kind that is
    /// longer than all before it were, and than an answer in time may take, nanoseconds: then
    /// all was well again. 0 where there was none; `None` where such a gap was not over at the
    /// end. A few late answers any busy machine has, and sooner or later one that had none
    /// before.
    pub fn well_again_ns(&self) -> Option<u64> {
        let before = FlowKind::ALL.map(|kind| self.longest_gap_before_ns(kind));
        let own_ns = before.into_iter().fold(IN_TIME_NS, u64::max);
        let gaps = self.flows.iter().flat_map(FlowSeries::gaps);
        let is_its = |it: &RequestGap| it.until_ns > self.earliest_ns() && it.length_ns() > own_ns;
        let its: Vec<RequestGap> = gaps.filter(is_its).collect();
        let is_well = !its.iter().any(|it| it.is_open);
        let last_ns = its.iter().map(|it| it.until_ns).max();
        is_well.then(|| last_ns.map_or(0, |ns| ns.saturating_sub(self.begun_ns)))
    }

    /// For how long connections that the policy forbids got through since the command was
    /// begun, nanoseconds; `None` where there was no policy.
    pub fn open_ns(&self) -> Option<u64> {
        let earliest_ns = self.earliest_ns();
        let openings = self.forbidden.as_ref()?.openings();
        let since = openings.map(|(from, until)| until.saturating_sub(from.max(earliest_ns)));
        Some(since.sum())
    }

    /// How many of them got through that were tried in a row that began before the command.
    pub fn opened_before(&self) -> u64 {
        let spells = self.forbidden.iter().flat_map(|it| &it.spells);
        let before = spells.filter(|it| it.first_ns < self.earliest_ns());
        let opened = before.filter(|it| it.outcome == ProbeOutcome::Opened);
        opened.map(|it| it.probes).sum()
    }

    /// When the last request of all was intended, nanoseconds.
    pub fn last_ns(&self) -> u64 {
        let last = self.flows.iter().filter_map(|it| it.spells.last());
        last.map(|it| it.last_ns).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::RequestOutcome::{After1S, After10Ms, After100Ms, Failed, InTime, Unanswered};
    use super::*;
    use crate::ProbeSpell;

    /// A request in each ms, by runs of outcomes.
    fn flow(kind: FlowKind, runs: &[(RequestOutcome, u64)]) -> FlowSeries {
        let mut next = 0;
        let spell = |&(outcome, requests): &(RequestOutcome, u64)| {
            let first = next;
            next += requests;
            RequestSpell {
                outcome,
                requests,
                first_ns: first * MS,
                last_ns: (next - 1) * MS,
            }
        };
        FlowSeries {
            kind,
            gap_ns: MS,
            connections: 1,
            broken: 0,
            lag: Histogram::new(),
            sent_late: Vec::new(),
            latency: Histogram::new(),
            spells: runs.iter().map(spell).collect(),
        }
    }

    /// A command from 100 ms to 150 ms on.
    fn seen(flows: Vec<FlowSeries>) -> SurviveObservation {
        SurviveObservation {
            begun_ns: 100 * MS,
            ended_ns: 150 * MS,
            clock_error_ns: 0,
            flows,
            ..SurviveObservation::default()
        }
    }

    /// A connection in each ms, by whether it was opened.
    fn forbidden(runs: &[(bool, u64)]) -> SurviveObservation {
        let mut next = 0;
        let spell = |&(is_open, probes): &(bool, u64)| {
            let first = next;
            next += probes;
            ProbeSpell {
                outcome: match is_open {
                    true => ProbeOutcome::Opened,
                    false => ProbeOutcome::Unanswered,
                },
                probes,
                first_ns: first * MS,
                last_ns: (next - 1) * MS,
            }
        };
        let series = ProbeSeries {
            spells: runs.iter().map(spell).collect(),
            ..ProbeSeries::default()
        };
        SurviveObservation {
            forbidden: Some(series),
            ..seen(Vec::new())
        }
    }

    #[test]
    fn what_is_forbidden_is_open_until_it_fails_again() {
        type Runs = &'static [(bool, u64)];
        let cases: [(Runs, u64, u64, bool); 5] = [
            (&[(false, 300)], 0, 0, false),
            (&[(false, 120), (true, 1), (false, 9)], 1, 0, false),
            (
                &[(false, 110), (true, 30), (false, 5), (true, 6)],
                35,
                0,
                true,
            ),
            // What was open before the command is not its own.
            (&[(false, 90), (true, 30), (false, 9)], 20, 30, false),
            (&[(true, 40), (false, 200)], 0, 40, false),
        ];
        for (runs, open_ms, before, ends_open) in cases {
            let seen = forbidden(runs);
            assert_eq!(seen.open_ns(), Some(open_ms * MS), "{runs:?}");
            assert_eq!(seen.opened_before(), before, "{runs:?}");
            let series = seen.forbidden.unwrap();
            assert_eq!(series.ends_open(), ends_open, "{runs:?}");
            let later = series.clone().later(7 * MS);
            let shifted = |(from, until)| (from + 7 * MS, until + 7 * MS);
            assert!(later.openings().eq(series.openings().map(shifted)));
        }
        assert_eq!(seen(Vec::new()).open_ns(), None);
    }

    #[test]
    fn a_time_is_of_the_first_class_that_holds_it() {
        for (ms, outcome) in [(10, InTime), (100, After10Ms), (1_000, After100Ms)] {
            assert_eq!(RequestOutcome::after(ms * MS), outcome);
            assert!(RequestOutcome::after(ms * MS + 1) > outcome);
        }
        assert_eq!(RequestOutcome::after(u64::MAX), After1S);
    }

    /// As a file may hold them.
    #[test]
    fn sums_of_numbers_that_no_trial_has_are_the_most() {
        let mut of = flow(FlowKind::Standing, &[(Failed, 2), (Unanswered, 1)]);
        for spell in &mut of.spells {
            (spell.requests, spell.last_ns) = (u64::MAX, u64::MAX);
        }
        assert_eq!((of.requests(), of.later_than(MS)), (u64::MAX, u64::MAX));
        assert_eq!(of.gaps()[0].until_ns, u64::MAX);
    }

    /// From the first request that is not answered in time to the first that is.
    #[test]
    fn a_gap_goes_from_one_intended_moment_to_another() {
        let one = flow(
            FlowKind::New,
            &[
                (InTime, 110),
                (Unanswered, 200),
                (After1S, 50),
                (After10Ms, 3),
                (InTime, 50),
            ],
        );
        let gap = RequestGap {
            from_ns: 110 * MS,
            until_ns: 363 * MS,
            is_open: false,
        };
        assert_eq!(one.gaps(), [gap]);
        assert_eq!(gap.length_ns(), 253 * MS);
        let late = [10, 100, 1_000].map(|ms| one.later_than(ms * MS));
        assert_eq!(late, [253, 250, 250]);
        assert_eq!((one.requests(), one.in_time_before(60 * MS)), (413, 60));
        let seen = seen(vec![one]);
        assert_eq!(seen.longest_gap_ns(FlowKind::New), Some(253 * MS));
        assert_eq!(seen.longest_gap_ns(FlowKind::Datagram), None);
        assert_eq!(seen.well_again_ns(), Some(263 * MS));
        assert_eq!(seen.last_ns(), 412 * MS);
    }

    #[test]
    fn what_never_ends_is_not_well_again() {
        let one = flow(FlowKind::Standing, &[(InTime, 120), (Failed, 80)]);
        assert_eq!(one.gaps()[0].length_ns(), 80 * MS);
        assert!(one.gaps()[0].is_open);
        let seen = seen(vec![one]);
        assert_eq!(seen.longest_gap_ns(FlowKind::Standing), Some(80 * MS));
        assert_eq!(seen.well_again_ns(), None);
    }

    /// What was sent last may be answered a little late on any busy machine.
    #[test]
    fn the_last_few_answers_may_be_late() {
        for (last, again) in [(10, Some(30 * MS)), (11, None)] {
            let runs = [
                (InTime, 100),
                (Failed, 30),
                (InTime, 100),
                (After10Ms, last),
            ];
            let seen = seen(vec![flow(FlowKind::New, &runs)]);
            assert_eq!(seen.well_again_ns(), again);
        }
    }

    #[test]
    fn what_the_machine_does_by_itself_is_not_the_commands() {
        let runs = [
            (InTime, 50),
            (After10Ms, 12),
            (InTime, 58),
            (After100Ms, 30),
            (InTime, 100),
            (After10Ms, 12),
            (InTime, 10),
        ];
        let seen = seen(vec![flow(FlowKind::Datagram, &runs)]);
        assert_eq!(seen.longest_gap_before_ns(FlowKind::Datagram), 12 * MS);
        assert_eq!(seen.longest_gap_ns(FlowKind::Datagram), Some(30 * MS));
        // Not after the second of 12 ms.
        assert_eq!(seen.well_again_ns(), Some(50 * MS));
    }

    /// The time before the command is shorter than that after it, so it has fewer of them.
    #[test]
    fn one_late_answer_is_no_outage() {
        let runs = [(InTime, 180), (After10Ms, 1), (InTime, 100)];
        let seen = seen(vec![flow(FlowKind::Standing, &runs)]);
        assert_eq!(seen.longest_gap_ns(FlowKind::Standing), Some(MS));
        assert_eq!(seen.well_again_ns(), Some(0));
    }

    #[test]
    fn where_nothing_happens_there_is_no_gap() {
        let seen = seen(FlowKind::ALL.map(|it| flow(it, &[(InTime, 300)])).into());
        for kind in FlowKind::ALL {
            assert_eq!(seen.longest_gap_ns(kind), Some(0));
        }
        assert_eq!(seen.well_again_ns(), Some(0));
    }
}
