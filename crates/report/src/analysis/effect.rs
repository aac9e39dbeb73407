//! What blocks say of one treatment against another, judged together with others.

use plumbline_stats::Interval;
use plumbline_stats::family::{self, minimum_blocks};
use plumbline_stats::verdict::Verdict;

use super::ALPHA;
use super::metric::{Metric, Quantity};
use crate::number;

/// The effect that is found with 80 % probability lies 2.8 standard errors
/// from nothing, the end of an interval 2 (C-8).
const SEEN_BEYOND_INTERVAL: f64 = 2.8 / 2.0;

/// The effect of one treatment on one metric, as a ratio less one.
#[derive(Clone, Copy, Debug)]
pub struct Effect {
    /// exp of the mean log-ratio of the blocks, less 1 (C-6).
    pub ratio_minus_one: f64,
    /// The interval that holds together with those of all comparisons that are
    /// judged with it (C-18), and is no narrower than the meter; `None` with too
    /// few blocks (C-7).
    pub interval: Option<Interval>,
    /// Half of the width of `interval`, as the logarithm of a ratio, before it is made to agree
    /// with the test, and no less than the meter's; infinite with too few blocks.
    pub half_width: f64,
    /// The interval of this comparison by itself, as wide as the meter too; `None`
    /// with too few blocks.
    pub alone: Option<Interval>,
    /// p-value that there is no effect, adjusted for those comparisons.
    pub adjusted_p: f64,
    /// The effect that would have been found with 80 % probability (C-8);
    /// `None` when the blocks are too few for any.
    pub smallest: Option<f64>,
    /// What the interval says (D10); `None` without one.
    pub verdict: Option<Verdict>,
    /// Blocks that it was computed from.
    pub blocks: usize,
    /// Whether what is compared may cost more than is seen, and whether that may which it is
    /// compared with: then no verdict says otherwise.
    pub may_hide: [bool; 2],
    /// Of a loss, the share of its datagrams that the baseline usually delivers.
    pub delivered: Option<f64>,
}

impl Effect {
    /// A ratio less one, such as its own or an end of its interval, as it is told: of a loss
    /// how much larger a share of all datagrams is lost, since nobody reads a ratio of those
    /// sent to those that arrived as a loss.
    pub fn told(&self, ratio_minus_one: f64) -> f64 {
        self.delivered.map_or(ratio_minus_one, |delivered| {
            // No more than all.
            (delivered * ratio_minus_one / (1.0 + ratio_minus_one)).max(-1.0)
        })
    }

    /// Its size as it is told.
    pub fn change(&self) -> f64 {
        self.told(self.ratio_minus_one)
    }

    /// The ends of its interval as they are told.
    pub fn ends(&self) -> Option<[f64; 2]> {
        self.interval
            .map(|one| [one.low, one.high].map(|end| self.told(end)))
    }

    /// Whether it is of what is seen alone.
    pub fn is_partly_seen(&self) -> bool {
        self.may_hide.contains(&true)
    }

    /// What hundredths are called in which it is told.
    pub fn unit(&self) -> &'static str {
        match self.delivered {
            Some(_) => number::POINTS,
            None => number::PERCENT,
        }
    }

    /// Blocks that it takes before an interval is bounded (C-7).
    pub fn blocks_needed(&self) -> usize {
        match self.interval {
            Some(_) => minimum_blocks(ALPHA),
            None => minimum_blocks(ALPHA).max(self.blocks + 1),
        }
    }

    /// Whether its interval excludes that there is no effect.
    pub fn excludes_zero(&self) -> bool {
        self.interval.is_some_and(|one| !one.contains(0.0))
    }
}

/// What is to be judged: the log-ratio of each block, `None` where it has none.
pub(crate) struct Unjudged {
    pub(crate) metric: &'static Metric,
    pub(crate) is_primary: bool,
    pub(crate) log_ratios: Vec<Option<f64>>,
    /// What it is compared with usually shows, in the metric's unit.
    pub(crate) baseline: Option<f64>,
    pub(crate) margin: f64,
    pub(crate) resolution: f64,
    /// See [`Effect::may_hide`].
    pub(crate) may_hide: [bool; 2],
}

impl Unjudged {
    fn effect(&self, found: &family::JointEffect) -> Option<Effect> {
        let ratio_minus_one = found.ratio_minus_one;
        let no_narrower = |of: Interval| {
            (of.high < f64::INFINITY).then(|| Interval {
                low: of.low.min(ratio_minus_one - self.resolution),
                high: of.high.max(ratio_minus_one + self.resolution),
                ..of
            })
        };
        let interval = no_narrower(found.joint);
        let verdict = |one| {
            let verdict = Verdict::of(&one, self.margin, self.metric.direction);
            let [ours, theirs] = self.may_hide;
            let is_open = match verdict {
                Verdict::Better => ours,
                Verdict::Worse => theirs,
                Verdict::Equivalent | Verdict::Undecided => ours || theirs,
            };
            if is_open { Verdict::Undecided } else { verdict }
        };
        let least = SEEN_BEYOND_INTERVAL * self.resolution;
        let of_meter = (self.resolution / (1.0 + ratio_minus_one)).min(1.0).atanh();
        (found.blocks > 0).then(|| Effect {
            ratio_minus_one,
            interval,
            half_width: found.half_width.max(of_meter),
            alone: no_narrower(found.alone),
            adjusted_p: found.adjusted_p,
            smallest: found.smallest_effect.map(|one| one.max(least)),
            verdict: interval.map(verdict),
            blocks: found.blocks,
            may_hide: self.may_hide,
            delivered: self
                .baseline
                .filter(|_| self.metric.quantity == Quantity::Loss)
                .map(|sent_per_received| 1.0 / sent_per_received),
        })
    }
}

/// Judges primary comparisons among themselves and exploratory ones among all, so
/// that looking at more metrics makes none of the primary ones harder and none of
/// the others easy (C-10). `None` for what no block holds.
pub(crate) fn judge(all: &[Unjudged], alpha: f64, seed: u64) -> Vec<Option<Effect>> {
    let mut effects = judge_together(&all.iter().collect::<Vec<_>>(), alpha, seed);
    let primary: Vec<&Unjudged> = all.iter().filter(|one| one.is_primary).collect();
    let mut of_primary = judge_together(&primary, alpha, seed).into_iter();
    for (effect, _) in effects
        .iter_mut()
        .zip(all)
        .filter(|(_, one)| one.is_primary)
    {
        *effect = of_primary.next().flatten();
    }
    effects
}

fn judge_together(all: &[&Unjudged], alpha: f64, seed: u64) -> Vec<Option<Effect>> {
    let blocks = all
        .iter()
        .map(|one| one.log_ratios.len())
        .max()
        .unwrap_or(0);
    let column = |one: &&Unjudged| {
        let mut column = one.log_ratios.clone();
        column.resize(blocks, None);
        column
    };
    let columns: Vec<_> = all.iter().map(column).collect();
    let found = family::compare(&columns, alpha, seed)
        .expect("columns of one length with finite log-ratios, at a level of ours");
    all.iter()
        .zip(&found)
        .map(|(one, found)| one.effect(found))
        .collect()
}

/// The log-ratio of two values; `None` unless both are positive and finite.
pub(crate) fn log_ratio(ours: f64, theirs: f64) -> Option<f64> {
    let log_ratio = (ours / theirs).ln();
    (ours > 0.0 && theirs > 0.0 && log_ratio.is_finite()).then_some(log_ratio)
}
