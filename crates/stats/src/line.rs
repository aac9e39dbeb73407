//! A cost at several levels of a factor as a straight line: cost = a + b·n.
//!
//! In each block a line is fitted through the trials of that block, so what its trials
//! share (the hour, the neighbours, a machine that is slow all day) is in that line
//! and not in its errors. Then the blocks are the sample: slopes, intercepts and
//! distances from the line are one number for each block, and their means are judged
//! by flipping the signs of whole blocks, as effects are ([`family`]). No model of
//! the noise is needed, nor that blocks have equal slopes. Sources for taking one
//! slope from each unit and judging these: C. R. Rao, "The Theory of Least Squares
//! When the Parameters Are Stochastic and Its Application to the Analysis of Growth
//! Curves", Biometrika 52 (1965); J. N. S. Matthews, D. G. Altman, M. J. Campbell and
//! P. Royston, "Analysis of Serial Measurements in Medical Research", British Medical
//! Journal 300 (1990).
//!
//! Noise grows with the cost, so a level weighs 1/m², where m is its median over all
//! blocks: weighted least squares with a constant coefficient of variation (R. J.
//! Carroll and D. Ruppert, *Transformation and Weighting in Regression*, 1988). One
//! set of weights serves all blocks. Weights that are not the best cost width, and
//! bias nothing.
//!
//! # Whether the line bends
//!
//! Were the cost a straight line, every level's distance from the line of its block
//! would have mean 0. All levels are judged together, so that with probability 1 − α
//! no level of a straight line is called off it, wherever the bend is looked for. The
//! statistic of a level is the same whether it takes part in the fit or not, because
//! the two distances differ by a constant factor.

use crate::family::{self, JointMean};
use crate::order::median_of_sorted;
use crate::{Interval, replicate};

/// Fewest levels that can show a bend.
pub const LEAST_LEVELS: usize = 3;

/// A distance this small a share of the largest value is rounding, not a bend.
const ROUNDING: f64 = 1e-9;

/// Halvings in the search for an end of an interval.
const HALVINGS: usize = 24;

/// The mean of the lines of all blocks.
#[derive(Clone, Debug)]
pub struct FittedLine {
    /// What each further unit of the level costs.
    pub per_level: JointMean,
    /// The cost at level 0, extrapolated where there is none.
    pub at_zero: JointMean,
    /// How far each level lies above the line, in the order of the levels, judged
    /// together.
    pub departures: Vec<JointMean>,
    /// Intercept and slope of each block that has three levels.
    lines: Vec<Option<(f64, f64)>>,
}

/// Where two lines cross.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// The level.
    pub at: f64,
    /// The levels at which the lines cannot be told apart.
    pub interval: Interval,
}

/// The line of one cell, and how far the cell's levels lie above it.
struct CellLine {
    intercept: f64,
    slope: f64,
    departures: Vec<Option<f64>>,
}

impl FittedLine {
    /// Fits a line through `values`, which are by level and then by cell, `None` where a
    /// cell lacks the level. A block is `per_block` cells, 1 unless pairs of nodes run
    /// at the same moment; it has the mean of their lines. The `levels` must differ.
    ///
    /// Intervals are made at level 1 − `alpha`: that of the slope and that of the
    /// intercept hold each by itself, those of the departures together.
    ///
    /// `None` when no cell has three levels, or `alpha` is none.
    pub fn new(
        levels: &[f64],
        values: &[Vec<Option<f64>>],
        per_block: usize,
        alpha: f64,
        seed: u64,
    ) -> Option<Self> {
        let weights = weights(values);
        let cells = values.iter().map(Vec::len).max().unwrap_or(0);
        let per_block = per_block.max(1);
        let blocks = cells.div_ceil(per_block);
        let value = |level: usize, cell: usize| {
            let value = values[level].get(cell).copied().flatten();
            value.filter(|value| value.is_finite())
        };
        let line = |cell: usize| {
            let of_cell: Vec<_> = (0..levels.len()).map(|level| value(level, cell)).collect();
            Some((cell / per_block, CellLine::new(levels, &of_cell, &weights)?))
        };
        let lines: Vec<(usize, CellLine)> = (0..cells).filter_map(line).collect();
        if lines.is_empty() {
            return None;
        }
        let of_blocks = |number: &dyn Fn(&CellLine) -> Option<f64>| {
            let cells = lines.iter();
            let cells = cells.filter_map(|(block, line)| Some((*block, number(line)?)));
            replicate::of_blocks(blocks, &cells.collect::<Vec<_>>())
        };
        let intercepts = of_blocks(&|line: &CellLine| Some(line.intercept));
        let slopes = of_blocks(&|line: &CellLine| Some(line.slope));
        let departures: Vec<_> = (0..levels.len())
            .map(|level| of_blocks(&|line: &CellLine| line.departures[level]))
            .collect();
        let pairs = intercepts.iter().zip(&slopes);
        let lines = pairs.map(|(intercept, slope)| intercept.zip(*slope));
        Some(Self {
            lines: lines.collect(),
            per_level: mean(slopes, alpha, seed)?,
            at_zero: mean(intercepts, alpha, seed)?,
            departures: family::means(&departures, alpha, seed).ok()?,
        })
    }

    /// The cost at a level.
    pub fn at(&self, level: f64) -> f64 {
        self.at_zero.mean + self.per_level.mean * level
    }

    /// Blocks that have a line.
    pub fn blocks(&self) -> usize {
        self.per_level.blocks
    }

    /// p-value that the line is straight.
    pub fn bend_p(&self) -> f64 {
        let p = self.departures.iter().map(|one| one.adjusted_p);
        p.fold(1.0, f64::min)
    }

    /// Where it crosses another line of the same blocks, if the one is below the other at
    /// the first of two levels and above it at the second, both beyond doubt at level
    /// 1 − `alpha`. The interval holds the levels at which a test does not tell them apart
    /// (E. C. Fieller, "Some Problems in Interval Estimation", Journal of the Royal
    /// Statistical Society B 16, 1954; here with flipped signs in the place of t).
    pub fn crossing(
        &self,
        other: &Self,
        (from, to): (f64, f64),
        alpha: f64,
        seed: u64,
    ) -> Option<Crossing> {
        let pairs = self.lines.iter().zip(&other.lines);
        let gaps: Vec<Option<(f64, f64)>> = pairs
            .map(|(ours, theirs)| {
                let ((intercept, slope), theirs) = ((*ours)?, (*theirs)?);
                Some((intercept - theirs.0, slope - theirs.1))
            })
            .collect();
        let gap = |level: f64| {
            let at = |(intercept, slope): (f64, f64)| intercept + slope * level;
            mean(gaps.iter().map(|one| one.map(at)).collect(), alpha, seed)
        };
        let (first, last) = (gap(from)?, gap(to)?);
        let is_apart = |one: &JointMean| !one.alone.contains(0.0);
        let turns = first.mean.is_sign_negative() != last.mean.is_sign_negative();
        if !(is_apart(&first) && is_apart(&last) && turns) {
            return None;
        }
        let at = from + (to - from) * first.mean / (first.mean - last.mean);
        // The level nearest to `inside` at which they are apart.
        let end = |mut inside: f64, mut outside: f64| {
            for _ in 0..HALVINGS {
                let middle = f64::midpoint(inside, outside);
                match is_apart(&gap(middle)?) {
                    true => outside = middle,
                    false => inside = middle,
                }
            }
            Some(outside)
        };
        Some(Crossing {
            at,
            interval: Interval {
                low: end(at, from)?,
                high: end(at, to)?,
                level: first.alone.level,
            },
        })
    }
}

impl CellLine {
    /// Weighted least squares; `None` with fewer than three levels.
    fn new(levels: &[f64], values: &[Option<f64>], weights: &[f64]) -> Option<Self> {
        let rows = levels.iter().zip(values).zip(weights);
        let points: Vec<(f64, f64, f64)> = rows
            .filter_map(|((&level, value), &weight)| Some((level, (*value)?, weight)))
            .collect();
        if points.len() < LEAST_LEVELS {
            return None;
        }
        let weight: f64 = points.iter().map(|(_, _, w)| w).sum();
        let middle = points.iter().map(|(n, _, w)| w * n).sum::<f64>() / weight;
        let mean = points.iter().map(|(_, cost, w)| w * cost).sum::<f64>() / weight;
        let spread: f64 = points
            .iter()
            .map(|(n, _, w)| w * (n - middle).powi(2))
            .sum();
        let shared = points
            .iter()
            .map(|(n, cost, w)| w * (n - middle) * (cost - mean));
        let slope = shared.sum::<f64>() / spread;
        let intercept = mean - slope * middle;
        let largest = points
            .iter()
            .fold(0.0, |most: f64, (_, cost, _)| most.max(cost.abs()));
        let departure = |(level, value): (&f64, &Option<f64>)| {
            let departure = (*value)? - intercept - slope * level;
            let is_rounding = departure.abs() <= ROUNDING * largest;
            Some(if is_rounding { 0.0 } else { departure })
        };
        Some(Self {
            intercept,
            slope,
            departures: levels.iter().zip(values).map(departure).collect(),
        })
    }
}

/// The mean of one number for each block, judged by itself.
fn mean(column: Vec<Option<f64>>, alpha: f64, seed: u64) -> Option<JointMean> {
    family::means(&[column], alpha, seed).ok()?.pop()
}

/// The weight of each level: 1/m² of its median m, or 1 where not all are positive.
fn weights(values: &[Vec<Option<f64>>]) -> Vec<f64> {
    let medians: Vec<f64> = values.iter().map(|of_level| median(of_level)).collect();
    let are_positive = medians.iter().all(|&median| median > 0.0);
    let weight = |median: f64| if are_positive { median.powi(-2) } else { 1.0 };
    medians.into_iter().map(weight).collect()
}

/// Not a number without a value.
fn median(values: &[Option<f64>]) -> f64 {
    let mut known: Vec<f64> = values.iter().copied().flatten().collect();
    known.sort_by(f64::total_cmp);
    match known.is_empty() {
        true => f64::NAN,
        false => median_of_sorted(&known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALPHA: f64 = 0.05;

    fn fitted(levels: &[f64], values: &[Vec<Option<f64>>]) -> FittedLine {
        FittedLine::new(levels, values, 1, ALPHA, 1).unwrap()
    }

    #[test]
    fn one_block_gives_the_closed_form_of_weighted_least_squares() {
        // Weights 1, 1 and 1/16, worked out by hand.
        let values = [1.0, 1.0, 4.0].map(|value| vec![Some(value)]);
        let line = fitted(&[0.0, 1.0, 2.0], &values);
        let found = [
            (line.per_level.mean, 3.0 / 7.0),
            (line.at_zero.mean, 6.0 / 7.0),
            (line.departures[0].mean, 1.0 / 7.0),
            (line.departures[1].mean, -2.0 / 7.0),
            (line.departures[2].mean, 16.0 / 7.0),
            (line.at(7.0), 27.0 / 7.0),
        ];
        for (found, expected) in found {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        assert!(
            line.per_level.alone.high.is_infinite(),
            "one block bounds nothing"
        );
    }

    /// Ten blocks, each at a height of its own.
    fn by_block(cost: impl Fn(f64, f64) -> f64, levels: &[f64]) -> Vec<Vec<Option<f64>>> {
        let of_level = |&level: &f64| {
            let blocks = (0..10).map(|block| Some(cost(level, f64::from(block))));
            blocks.collect()
        };
        levels.iter().map(of_level).collect()
    }

    const LEVELS: [f64; 4] = [0.0, 10.0, 100.0, 1_000.0];

    #[test]
    fn what_blocks_share_is_in_no_interval_of_the_slope() {
        let values = by_block(|level, block| 500.0 * (1.0 + block) + 3.0 * level, &LEVELS);
        let line = fitted(&LEVELS, &values);
        let interval = line.per_level.alone;
        assert!((line.per_level.mean - 3.0).abs() < 1e-9, "{line:?}");
        assert!(interval.high - interval.low < 1e-6, "{interval:?}");
        assert!(line.at_zero.alone.high - line.at_zero.alone.low > 500.0);
        assert_eq!((line.bend_p(), line.blocks()), (1.0, 10));
    }

    #[test]
    fn a_block_without_a_level_has_a_line_all_the_same_and_one_with_two_has_none() {
        let mut values = by_block(|level, block| 500.0 + block + 3.0 * level, &LEVELS);
        values[3][4] = None;
        values[0][5] = None;
        values[2][5] = None;
        let line = fitted(&LEVELS, &values);
        assert_eq!(line.blocks(), 9);
        assert!((line.per_level.mean - 3.0).abs() < 1e-9, "{line:?}");
        assert_eq!(line.departures[3].blocks, 8);
    }

    #[test]
    fn pairs_of_one_moment_are_one_block() {
        let values = by_block(|level, cell| 500.0 + (3.0 + cell % 2.0) * level, &LEVELS);
        let line = FittedLine::new(&LEVELS, &values, 2, ALPHA, 1).unwrap();
        assert_eq!(line.blocks(), 5);
        assert!((line.per_level.mean - 3.5).abs() < 1e-9, "{line:?}");
    }

    #[test]
    fn lines_cross_only_where_both_ends_are_beyond_doubt() {
        let noise = |block: f64| 0.01 * (block - 4.5);
        let steep = by_block(|level, block| 100.0 + (1.0 + noise(block)) * level, &LEVELS);
        let flat = by_block(|_, block| 160.0 + noise(block), &LEVELS);
        let (steep, flat) = (fitted(&LEVELS, &steep), fitted(&LEVELS, &flat));
        let crossing = steep.crossing(&flat, (0.0, 1_000.0), ALPHA, 1).unwrap();
        assert!((crossing.at - 60.0).abs() < 0.2, "{crossing:?}");
        assert!(crossing.interval.contains(60.0), "{crossing:?}");
        assert!(crossing.interval.low > 55.0 && crossing.interval.high < 65.0);
        assert_eq!(
            flat.crossing(&steep, (0.0, 1_000.0), ALPHA, 1),
            Some(crossing)
        );
        assert_eq!(steep.crossing(&flat, (100.0, 1_000.0), ALPHA, 1), None);
        assert_eq!(steep.crossing(&steep, (0.0, 1_000.0), ALPHA, 1), None);
    }

    #[test]
    fn fewer_than_three_levels_have_no_line() {
        let values = by_block(|level, _| level, &LEVELS[..2]);
        assert!(FittedLine::new(&LEVELS[..2], &values, 1, ALPHA, 1).is_none());
        assert!(FittedLine::new(&[], &[], 1, ALPHA, 1).is_none());
    }
}
