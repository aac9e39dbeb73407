//! Whether a head is worse than its base, by the limits of a run: what `plumbline gate`
//! answers.
//!
//! Every limit is decided by the interval of its comparison, as `compare` does it: within the
//! limit, or beyond. The formats only show.

mod junit;
mod shown;

use std::time::Duration;

use plumbline_experiment::ceiling::{MAX_BUDGET, MAX_TRIALS};
use plumbline_experiment::{Treatment, TreatmentId};
use plumbline_record::{Run, Trial, spent};
use plumbline_stats::family::minimum_blocks;
use plumbline_stats::looks::{all_held, blocks_to_decide};
use serde::Serialize;

pub use junit::render as junit;
pub use shown::{json, markdown, sentence};

use crate::analysis::{Comparison, Summary, alpha};
use crate::compare::{LimitCheck, LimitOutcome, check_limits};
use crate::describe;
use crate::terminal::notice_text;

/// How many times as many blocks as there are it may take to decide a limit, that it is
/// worth saying how many.
const WORTH_WAITING: f64 = 100.0;

/// What a gate answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeadVerdict {
    /// Every overhead of the head is within its limit.
    NotWorse,
    /// One is beyond.
    Worse,
    /// One is neither, and none beyond.
    Undecided,
}

/// Whether a head is worse than its base.
#[derive(Clone, Debug)]
pub struct Decision {
    /// What follows from all limits.
    pub verdict: HeadVerdict,
    /// Names of the networks.
    pub base: String,
    /// The one that is judged.
    pub head: String,
    /// Each limit on each comparison.
    pub limits: Vec<DecidedLimit>,
    /// Blocks of the run.
    pub blocks: usize,
    /// What they took, by which the budget is spent.
    pub took: Duration,
    /// When the run started, RFC 3339, UTC.
    pub started: String,
    /// What puts all of this in doubt, a sentence each.
    pub doubts: Vec<String>,
    /// Whether it was interrupted, so that nothing is decided.
    pub interrupted: bool,
}

/// One limit on one comparison.
#[derive(Clone, Debug)]
pub struct DecidedLimit {
    /// What follows, and from which interval.
    pub check: LimitCheck,
    /// What is limited: `p50`, or `p50 under rr` where there are several workloads.
    pub name: String,
    /// The head's change as numbers are printed, with its interval; `None` where there is
    /// no value of both.
    change: Option<String>,
    interval: Option<String>,
    /// The medians of base and head.
    values: [Option<String>; 2],
    /// About how much more time would decide it, with 80 % probability, or give it an interval
    /// where it has none; `None` where it is decided, or the head differs by about as much as
    /// is allowed.
    pub more: Option<Duration>,
    /// Whether it is open because a part of what is limited is not seen.
    is_unseen: bool,
}

impl Decision {
    /// Judges a run by the limits of its plan. Any run gives an answer: what was not
    /// measured is undecided, and everything of a run that was interrupted.
    pub fn new(run: &Run, trials: &[Trial], interrupted: bool) -> Self {
        let summary = Summary::new(run, trials);
        let took = spent(trials);
        let pace = Pace {
            blocks: summary.blocks,
            most: MAX_TRIALS / run.plan.treatments.len().max(1),
            took,
            alpha: alpha(&run.plan),
        };
        let checks = check_limits(0, &run.plan, &summary);
        let mut limits: Vec<DecidedLimit> = checks
            .into_iter()
            .map(|check| DecidedLimit::new(check, &summary, &pace))
            .collect();
        if interrupted {
            limits.iter_mut().for_each(DecidedLimit::leave_open);
        }
        let held = limits.iter().map(|one| one.check.outcome.is_held());
        let held: Vec<_> = held.collect();
        let all = || summary.treatments.iter().map(|one| &one.treatment);
        let compared = all().filter_map(|it| Some((all().nth(it.baseline?)?, it)));
        let (bases, heads): (Vec<_>, Vec<_>) = compared.unzip();
        Self {
            verdict: match all_held(&held) {
                Some(false) => HeadVerdict::Worse,
                Some(true) => HeadVerdict::NotWorse,
                // There are none where a gate goes on with a run that was asked for none.
                None => HeadVerdict::Undecided,
            },
            base: network(&bases),
            head: network(&heads),
            limits,
            blocks: summary.blocks,
            took,
            started: describe::clean(&summary.started),
            doubts: summary
                .notices
                .iter()
                .filter(|one| one.is_grave())
                .map(|one| notice_text(&summary, one))
                .collect(),
            interrupted,
        }
    }

    /// About how much more time would decide every limit, or give each an interval where one
    /// has none; `None` where all are decided, or time alone would hardly do it.
    pub fn more(&self) -> Option<Duration> {
        let each: Option<Vec<Duration>> = self.undecided().map(|one| one.more).collect();
        each?.into_iter().max()
    }

    fn undecided(&self) -> impl Iterator<Item = &DecidedLimit> {
        let limits = self.limits.iter();
        limits.filter(|one| one.check.outcome == LimitOutcome::Undecided)
    }
}

/// How a run goes on.
struct Pace {
    blocks: usize,
    /// Blocks that a run may have.
    most: usize,
    took: Duration,
    /// Level of its intervals.
    alpha: f64,
}

impl DecidedLimit {
    fn new(check: LimitCheck, summary: &Summary, pace: &Pace) -> Self {
        let label = |one: &Comparison| &summary.treatments[one.treatment].treatment;
        let concerned = summary.comparisons.iter().find(|one| {
            one.metric.name() == check.metric
                && label(one).label == check.label
                && label(one).task.name() == check.workload
        });
        let value = |id: TreatmentId, of: &Comparison| {
            let measured = summary.treatments[id].measured(of.metric.name())?;
            Some(describe::value(
                of.metric,
                measured.median(|one| one.value)?,
            ))
        };
        let effect = concerned.and_then(|one| one.effect);
        let is_open = check.outcome == LimitOutcome::Undecided;
        let is_unseen = is_open && effect.is_some_and(|effect| effect.is_partly_seen());
        Self {
            name: name(&check, concerned, summary),
            change: effect.as_ref().map(describe::change),
            interval: effect.as_ref().and_then(describe::interval),
            values: match concerned {
                Some(one) => [one.baseline, one.treatment].map(|id| value(id, one)),
                None => [None, None],
            },
            more: effect
                .filter(|_| is_open && !is_unseen)
                .and_then(|effect| pace.until_decided(&check, effect.blocks)),
            is_unseen,
            check,
        }
    }

    /// Decides nothing. Whoever interrupts a gate may have seen its trials, and goes on with it: that
    /// would be a look that nobody counted (C-22).
    fn leave_open(&mut self) {
        self.check.outcome = LimitOutcome::Undecided;
        self.check.reason = Some("interrupted between two looks".to_owned());
        self.more = None;
    }
}

impl Pace {
    /// More time until an interval no longer holds its limit, of which `counted` blocks are
    /// so far: as many of the further ones will count.
    fn until_decided(&self, check: &LimitCheck, counted: usize) -> Option<Duration> {
        let overhead = check.overhead?;
        let needed = match (check.low, check.high) {
            (Some(low), Some(high)) => {
                let towards_limit = match overhead > check.limit {
                    true => overhead - low,
                    false => high - overhead,
                };
                let distance = (overhead - check.limit).abs();
                blocks_to_decide(counted, towards_limit, distance, self.alpha)
            }
            _ => minimum_blocks(self.alpha) as f64,
        };
        let is_worth = needed <= WORTH_WAITING * counted as f64;
        let more = (needed - counted as f64).max(1.0) * self.blocks as f64 / counted as f64;
        if !is_worth || self.blocks as f64 + more > self.most as f64 {
            return None;
        }
        let time = (self.took / self.blocks.max(1) as u32).mul_f64(more);
        (self.took + time <= MAX_BUDGET).then_some(time)
    }
}

/// The network of some treatments: as they are labelled, or where they have several paths of
/// one network, that.
fn network(of: &[&Treatment]) -> String {
    let distinct = |name: fn(&Treatment) -> &str| {
        let mut names = Vec::new();
        for one in of.iter().map(|it| name(it)) {
            if !names.contains(&one) {
                names.push(one);
            }
        }
        names
    };
    let labels = distinct(|it| &it.label);
    let name = match distinct(|it| it.scene.network_name())[..] {
        [network] if labels.len() > 1 && !network.is_empty() => network.to_owned(),
        _ => describe::some(labels),
    };
    describe::clean(&name)
}

/// With the workload where there are several, and the treatment where it says more than
/// the network.
fn name(check: &LimitCheck, concerned: Option<&Comparison>, summary: &Summary) -> String {
    let mut name = match concerned {
        Some(one) => one.metric.words.to_owned(),
        None => describe::clean(&check.metric),
    };
    let Some(concerned) = concerned else {
        if !check.label.is_empty() {
            name += &format!(" of {}", describe::clean(&check.label));
        }
        return name;
    };
    let of = &summary.treatments[concerned.treatment].treatment;
    let others = || summary.treatments.iter().map(|one| &one.treatment);
    if others().any(|other| other.task.name() != of.task.name()) {
        name += &format!(" under {}", describe::clean(of.task.name()));
    }
    let compared = others().filter(|other| other.baseline.is_some());
    let mut labels = compared.map(|other| &other.label);
    if labels.any(|label| *label != of.label) {
        name += &format!(" of {}", describe::clean(&of.label));
    }
    name
}
