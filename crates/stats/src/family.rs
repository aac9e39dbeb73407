//! Several treatments against their baselines, judged together.
//!
//! The data are log-ratios d = ln(a/b), one for each comparison and block. Were
//! a treatment no different from its baseline, each block could as well have
//! shown −d. What is common to a block (its neighbours, a shared baseline)
//! changes sign with it, so whole blocks are flipped, over all comparisons at
//! once, and whatever dependence there is between comparisons is kept. Each
//! comparison's statistic is its mean over its root of the sum of squares, so
//! that a noisy metric is no stronger a competitor than a quiet one; the
//! largest of all is what chance is allowed. Source: J. P. Romano and M. Wolf,
//! "Exact and Approximate Stepdown Methods for Multiple Hypothesis Testing",
//! Journal of the American Statistical Association 100 (2005).
//!
//! # Why the mean
//!
//! Ranks would shrug off a wild block, but all comparisons whose blocks agree in
//! sign have the same, largest rank sum: with 120 comparisons it takes 13 such
//! blocks before that is rare. The mean over its spread tells a large effect
//! from a small one that has the signs right by luck, so 6 blocks can do. It is
//! exact for any symmetric noise, and its interval has a closed form. What it
//! pays is width when blocks are wild: void those by a rule that does not look
//! at the outcome.
//!
//! # What holds
//!
//! * With probability 1 − α no comparison without an effect is called different,
//!   whatever the others do. Exact at any number of blocks.
//! * With probability 1 − α all [`JointEffect::joint`] intervals hold together,
//!   apart from the end at 0 of those marked [`JointEffect::is_cut`]. Exact for one
//!   comparison; for several, the spread of the rivals around their truth is
//!   taken from their spread around the estimate.
//! * The interval excludes 0 exactly when the comparison is different. Stepping
//!   down sometimes finds a difference that the interval alone would not: then
//!   the end nearer to 0 is cut off there. Such an end is one more claim: where
//!   half of the effects are none and half are large, all claims together held in
//!   93 to 95 % of simulated families. Where the interval alone would exclude
//!   0 and the test does not, it is widened to 0.
//!
//! # Missing values
//!
//! A comparison is judged by the blocks that hold it; a flip turns those of its
//! blocks that are there. The squared statistic of n blocks is at most n, so
//! comparisons with gaps never make the others harder, and may be unbounded
//! themselves. Without a block they show nothing. Whether a value is missing
//! must not depend on what it would have been (C-20).

mod bounds;
mod flips;
mod power;
mod step_down;

use crate::{Interval, StatsError};

use flips::{Flips, LogRatios};
use step_down::Rivals;

/// One comparison among several. Effects are ratios less one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JointEffect {
    /// The effect: exp of the mean log-ratio, less 1. Not a number without a
    /// block.
    pub ratio_minus_one: f64,
    /// The interval that holds together with those of all other comparisons.
    /// From −1 to infinity when the blocks are too few. An end cut off at 0 is
    /// the smallest positive number, or its negative, so that 0 lies outside.
    pub joint: Interval,
    /// Whether an end of `joint` was cut off at 0.
    pub is_cut: bool,
    /// Half of the width of `joint`, as the logarithm of a ratio, before it is made to agree
    /// with the test at 0: whatever the effect, it is the same. Infinite without a bound.
    pub half_width: f64,
    /// The interval of this comparison alone.
    pub alone: Interval,
    /// p-value that there is no effect, adjusted for all comparisons. At most
    /// α exactly when `joint` excludes 0.
    pub adjusted_p: f64,
    /// p-value of this comparison alone.
    pub p_value: f64,
    /// The blocks that hold it.
    pub blocks: usize,
    /// The effect that would have been found with 80 % probability beside the
    /// comparisons that are not found different (C-8, C-21). `None` when there
    /// are too few blocks, and when nothing spreads.
    pub smallest_effect: Option<f64>,
}

/// One mean among several, in the unit of the numbers that it is the mean of:
/// what a [`JointEffect`] is before its logarithms are undone. Without a bound its
/// intervals go from −infinity to infinity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JointMean {
    /// The mean. Not a number without a block.
    pub mean: f64,
    /// As [`JointEffect::joint`].
    pub joint: Interval,
    /// As [`JointEffect::is_cut`].
    pub is_cut: bool,
    /// As [`JointEffect::half_width`].
    pub half_width: f64,
    /// As [`JointEffect::alone`].
    pub alone: Interval,
    /// As [`JointEffect::adjusted_p`].
    pub adjusted_p: f64,
    /// As [`JointEffect::p_value`].
    pub p_value: f64,
    /// As [`JointEffect::blocks`].
    pub blocks: usize,
    /// As [`JointEffect::smallest_effect`].
    pub smallest: Option<f64>,
}

impl From<JointMean> for JointEffect {
    fn from(of: JointMean) -> Self {
        let ratios = |interval: Interval| Interval {
            low: interval.low.exp_m1(),
            high: interval.high.exp_m1(),
            ..interval
        };
        Self {
            ratio_minus_one: of.mean.exp_m1(),
            joint: ratios(of.joint),
            is_cut: of.is_cut,
            half_width: of.half_width,
            alone: ratios(of.alone),
            adjusted_p: of.adjusted_p,
            p_value: of.p_value,
            blocks: of.blocks,
            smallest_effect: of.smallest.map(f64::exp_m1),
        }
    }
}

impl JointEffect {
    /// Whether the test and the interval say that there is an effect.
    pub fn is_different(&self) -> bool {
        !self.joint.contains(0.0)
    }

    /// Whether the blocks suffice for an interval.
    pub fn is_bounded(&self) -> bool {
        self.joint.high < f64::INFINITY
    }
}

/// The fewest blocks with which any comparison can be called different, and any
/// interval is bounded: n choices of signs, of which two are those of the data
/// and their opposite, so 2/2ⁿ ≤ `alpha`. 6 at 5 %.
pub fn minimum_blocks(alpha: f64) -> usize {
    // The conversion saturates, so an alpha of 0 asks for the impossible.
    (2.0 / alpha).log2().ceil().max(0.0) as usize
}

/// Compares at family-wise level `alpha`, such as 0.05. `log_ratios` holds, for
/// each comparison, ln(treatment/baseline) by block, `None` where a block lacks
/// it.
///
/// All choices of signs are tried for up to 16 blocks; beyond, 32,767 are drawn
/// with `seed`, beside the data themselves.
///
/// # Errors
///
/// When `alpha` does not lie between 0 and 1, when a log-ratio is not finite,
/// and when the comparisons do not all have the same number of blocks.
pub fn compare(
    log_ratios: &[Vec<Option<f64>>],
    alpha: f64,
    seed: u64,
) -> Result<Vec<JointEffect>, StatsError> {
    let means = means(log_ratios, alpha, seed)?;
    Ok(means.into_iter().map(JointEffect::from).collect())
}

/// The same for the means of any numbers that could as well have been their
/// negatives, were their mean 0: no logarithm is undone.
///
/// # Errors
///
/// As [`compare`].
pub fn means(
    columns: &[Vec<Option<f64>>],
    alpha: f64,
    seed: u64,
) -> Result<Vec<JointMean>, StatsError> {
    let blocks = checked_blocks(columns, alpha)?;
    let columns: Vec<LogRatios> = columns.iter().map(|of| LogRatios::new(of)).collect();
    let flips = Flips::new(blocks, seed);
    // As many choices of signs may speak for an effect that is excluded.
    let kept = (alpha * flips.len() as f64 * (1.0 + 1e-12)).floor() as usize;
    let level = 1.0 - kept as f64 / flips.len() as f64;

    let adjusted = step_down::adjusted_p(&columns, &flips);
    let is_different = |at: usize| is_within(adjusted[at], kept, &flips);
    let smallest = smallest_effects(&columns, &flips, kept, is_different);
    let rivals = Rivals::new(&columns, &flips, |_| true);
    let judge = |(at, column): (usize, &LogRatios)| {
        let interval = |(low, high): (f64, f64)| Interval {
            low: column.mean + low,
            high: column.mean + high,
            level,
        };
        let p_value = step_down::p_alone(column, &flips);
        let nobody = std::iter::repeat(0.0);
        let alone = interval(bounds::bounds(column, &flips, nobody, kept));
        let free = interval(bounds::bounds(column, &flips, rivals.of(at), kept));
        let joint = agreeing(free, column.mean, is_different(at));
        JointMean {
            mean: column.mean,
            joint,
            is_cut: free.contains(0.0) && !joint.contains(0.0),
            half_width: (free.high - free.low) / 2.0,
            alone: agreeing(alone, column.mean, is_within(p_value, kept, &flips)),
            adjusted_p: adjusted[at],
            p_value,
            blocks: column.blocks,
            smallest: smallest[at],
        }
    };
    Ok(columns.iter().enumerate().map(judge).collect())
}

fn checked_blocks(log_ratios: &[Vec<Option<f64>>], alpha: f64) -> Result<usize, StatsError> {
    if !(0.0 < alpha && alpha < 1.0) {
        return Err(StatsError::Alpha(alpha));
    }
    let blocks = log_ratios.first().map_or(0, Vec::len);
    for (comparison, of) in log_ratios.iter().enumerate() {
        if of.len() != blocks {
            return Err(StatsError::UnequalBlocks {
                comparison,
                blocks: of.len(),
                expected: blocks,
            });
        }
        if let Some(&value) = of.iter().flatten().find(|value| !value.is_finite()) {
            return Err(StatsError::NotFinite { comparison, value });
        }
    }
    Ok(blocks)
}

/// Whether `p` stands for at most `kept` choices of signs.
fn is_within(p: f64, kept: usize, flips: &Flips) -> bool {
    (p * flips.len() as f64).round() as usize <= kept
}

/// The interval of what is estimated as `mean`, with 0 outside exactly when it
/// `is_different`.
fn agreeing(interval: Interval, mean: f64, is_different: bool) -> Interval {
    let Interval { low, high, level } = interval;
    // Where all values are equal both ends are the estimate itself.
    let (low, high) = match (is_different, mean > 0.0) {
        (true, true) => (low.max(f64::MIN_POSITIVE), high),
        (true, false) => (low, high.min(-f64::MIN_POSITIVE)),
        (false, _) => (low.min(0.0), high.max(0.0)),
    };
    Interval { low, high, level }
}

/// What each comparison would have shown beside those that are not different, or
/// beside all when all are.
fn smallest_effects(
    columns: &[LogRatios],
    flips: &Flips,
    kept: usize,
    is_different: impl Fn(usize) -> bool,
) -> Vec<Option<f64>> {
    let are_all_different = (0..columns.len()).all(&is_different);
    let remaining = |at| are_all_different || !is_different(at);
    let critical = Rivals::new(columns, flips, remaining).critical(kept);
    let mut standard_errors = StandardErrors::default();
    let of = |column: &LogRatios| {
        let n = column.blocks as f64;
        let square = critical.filter(|&square| 0.0 < square && square < n)?;
        let t = (square * (n - 1.0) / (n - square)).sqrt();
        let standard_error = (column.spread / (n - 1.0) / n).sqrt();
        let reach = standard_errors.visible(t, column.blocks);
        (standard_error > 0.0).then_some(reach * standard_error)
    };
    columns.iter().map(of).collect()
}

/// [`power::visible`] for one critical statistic, by number of blocks: most
/// comparisons have all of them.
#[derive(Default)]
struct StandardErrors(std::collections::BTreeMap<usize, f64>);

impl StandardErrors {
    fn visible(&mut self, t: f64, blocks: usize) -> f64 {
        let new = || power::visible(t, blocks);
        *self.0.entry(blocks).or_insert_with(new)
    }
}
