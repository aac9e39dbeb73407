//! What traffic survived while a command did something to its path, over repetitions.

use plumbline_record::{FlowKind, FlowSeries, Observation, ProbeSeries, SurviveObservation, Trial};
use plumbline_stats::order::{MedianOfRuns, median_of_runs};

use super::LEVEL;
use super::rates::total;

/// Times that requests are told to be later than, nanoseconds.
pub const LATE_NS: [u64; 3] = [10_000_000, 100_000_000, 1_000_000_000];

/// What the traffic of a treatment showed, over its valid trials: each is one repetition.
#[derive(Clone, Debug)]
pub struct SurviveSummary {
    /// The traffic, kind by kind.
    pub flows: Vec<FlowSummary>,
    /// Connections that a policy forbids; `None` where there was none.
    pub forbidden: Option<ForbiddenSummary>,
    /// How long the command took, nanoseconds.
    pub command: Option<MedianOfRuns>,
    /// From the beginning of the command until traffic was well again, nanoseconds, of the
    /// repetitions in which it was so at the end.
    pub well_again: Option<MedianOfRuns>,
    /// The longest of them, nanoseconds.
    pub longest_again_ns: f64,
    /// Repetitions in which it was never unwell.
    pub always_well: usize,
    /// Repetitions in which it was not well at the end.
    pub unwell: usize,
    /// The repetition that half of all were no worse than, by the longest gap of any kind.
    pub middle: NotedRepetition,
    /// The worst.
    pub worst: NotedRepetition,
    /// All of them.
    pub repetitions: usize,
}

/// What one kind of traffic showed.
#[derive(Clone, Debug)]
pub struct FlowSummary {
    /// Which.
    pub kind: FlowKind,
    /// Requests of all repetitions.
    pub requests: u64,
    /// Those that were not answered within each of [`LATE_NS`].
    pub late: [u64; 3],
    /// Connections that stood, of all repetitions.
    pub connections: u64,
    /// Those of them that broke.
    pub broken: u64,
    /// The longest gap of a repetition, nanoseconds.
    pub gap: Option<MedianOfRuns>,
    /// The longest of all.
    pub longest_ns: u64,
    /// The longest gap of any repetition before the command was begun.
    pub before_ns: u64,
}

/// What connections showed that a policy forbids.
#[derive(Clone, Debug)]
pub struct ForbiddenSummary {
    /// How many were tried, of all repetitions.
    pub tried: u64,
    /// How many got through.
    pub opened: u64,
    /// For how long they did in a repetition, from the beginning of the command on,
    /// nanoseconds.
    pub open: Option<MedianOfRuns>,
    /// The longest of all.
    pub longest_ns: u64,
    /// Repetitions in which they still did at the end.
    pub open_at_end: usize,
}

/// One repetition, and where it is found.
#[derive(Clone, Debug)]
pub struct NotedRepetition {
    /// Block of its trial.
    pub block: u32,
    /// What was seen.
    pub seen: SurviveObservation,
}

impl SurviveSummary {
    /// `None` where no command was run.
    pub(crate) fn new(trials: &[(&Trial, &Observation)]) -> Option<Self> {
        let mut all: Vec<(u32, &SurviveObservation)> = trials
            .iter()
            .filter_map(|(trial, seen)| Some((trial.block, seen.survive()?)))
            .collect();
        all.sort_by_key(|(_, seen)| longest(seen));
        let noted = |at: usize| {
            let (block, seen) = all.get(at)?;
            Some(NotedRepetition {
                block: *block,
                seen: (*seen).clone(),
            })
        };
        let seen = || all.iter().map(|(_, seen)| *seen);
        let took = seen().map(|it| it.ended_ns.saturating_sub(it.begun_ns) as f64);
        let well = seen().filter_map(|it| it.well_again_ns());
        let well: Vec<f64> = well.map(|ns| ns as f64).collect();
        let flows = FlowKind::ALL.into_iter();
        Some(Self {
            middle: noted((all.len().checked_sub(1)?) / 2)?,
            worst: noted(all.len() - 1)?,
            flows: flows
                .filter_map(|kind| FlowSummary::new(kind, &all))
                .collect(),
            forbidden: ForbiddenSummary::new(&all),
            command: median_of_runs(&took.collect::<Vec<_>>(), LEVEL),
            always_well: well.iter().filter(|ns| **ns == 0.0).count(),
            unwell: all.len() - well.len(),
            well_again: median_of_runs(&well, LEVEL),
            longest_again_ns: well.iter().copied().fold(0.0, f64::max),
            repetitions: all.len(),
        })
    }
}

impl FlowSummary {
    fn new(kind: FlowKind, all: &[(u32, &SurviveObservation)]) -> Option<Self> {
        let flows: Vec<&FlowSeries> = all.iter().filter_map(|(_, it)| it.flow(kind)).collect();
        let sum = |of: &dyn Fn(&FlowSeries) -> u64| total(flows.iter().map(|it| of(it)));
        let gaps = all.iter().filter_map(|(_, it)| it.longest_gap_ns(kind));
        let gaps: Vec<u64> = gaps.collect();
        let lengths: Vec<f64> = gaps.iter().map(|ns| *ns as f64).collect();
        let before = all.iter().map(|(_, it)| it.longest_gap_before_ns(kind));
        Some(Self {
            kind,
            requests: sum(&FlowSeries::requests),
            late: LATE_NS.map(|ns| sum(&|it| it.later_than(ns))),
            connections: sum(&|it| it.connections),
            broken: sum(&|it| it.broken),
            gap: median_of_runs(&lengths, LEVEL),
            longest_ns: gaps.into_iter().max()?,
            before_ns: before.max().unwrap_or_default(),
        })
    }
}

impl ForbiddenSummary {
    fn new(all: &[(u32, &SurviveObservation)]) -> Option<Self> {
        let open = all.iter().filter_map(|(_, it)| it.open_ns());
        let open: Vec<u64> = open.collect();
        let lengths: Vec<f64> = open.iter().map(|ns| *ns as f64).collect();
        let series = || all.iter().filter_map(|(_, it)| it.forbidden.as_ref());
        Some(Self {
            tried: series().map(|it| it.sent).sum(),
            opened: series().map(ProbeSeries::opened).sum(),
            open: median_of_runs(&lengths, LEVEL),
            longest_ns: open.into_iter().max()?,
            open_at_end: series().filter(|it| it.ends_open()).count(),
        })
    }
}

/// The longest gap of any kind.
fn longest(seen: &SurviveObservation) -> u64 {
    let gaps = FlowKind::ALL.into_iter();
    let gaps = gaps.filter_map(|kind| seen.longest_gap_ns(kind));
    gaps.max().unwrap_or_default()
}

/// The longest gap of one kind, nanoseconds.
pub(crate) fn gap_ns(observation: &Observation, kind: FlowKind) -> Option<f64> {
    Some(observation.survive()?.longest_gap_ns(kind)? as f64)
}

/// From the beginning of the command until traffic was well again; where it was not at the end,
/// as long as that was waited for.
pub(crate) fn well_again_ns(observation: &Observation) -> Option<f64> {
    let seen = observation.survive().filter(|it| !it.flows.is_empty())?;
    let waited_ns = seen.last_ns().saturating_sub(seen.begun_ns);
    Some(seen.well_again_ns().unwrap_or(waited_ns) as f64)
}

/// The least that a trial can tell from none: the gap between two requests.
pub(crate) fn least_ns(observation: &Observation) -> Option<f64> {
    Some(observation.survive()?.flows.first()?.gap_ns as f64)
}
