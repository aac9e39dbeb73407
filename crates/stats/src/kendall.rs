//! How far two orders agree: Kendall's tau-b, and what noise leaves of it.
//!
//! One order is fixed, such as a published table. The other is measured, in
//! blocks that hold every object, and would come out a little different in the
//! next run. Tau-b counts the pairs of objects that both put the same way
//! round, less those that they put the other way round; a pair that one of them
//! ties counts for neither (M. G. Kendall, "The treatment of ties in ranking
//! problems", Biometrika 33, 1945).

use std::iter::Sum;
use std::ops::Add;

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::Interval;
use crate::order::median_of_sorted;

/// How often the blocks are drawn again (C-2 asks for 2,000 or more).
const RESAMPLES: usize = 2_000;

/// Fewest blocks for an interval: with 5 the median itself has none (L-15).
const LEAST_BLOCKS: usize = 6;

/// Most objects whose orders are counted one by one: 8! are 40,320.
const MOST_COUNTED: usize = 8;

/// Pairs of objects, by how two measurements put them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairCounts {
    /// Both put them the same way round.
    pub same: u64,
    /// They put them the opposite way round.
    pub opposite: u64,
    /// Only the first ties them.
    pub tied_in_first: u64,
    /// Only the second ties them.
    pub tied_in_second: u64,
    /// Both tie them.
    pub tied_in_both: u64,
}

impl PairCounts {
    /// Counts the pairs of some objects, each with a value in `first` and one
    /// in `second`. Pairs with a value that is not a number are left out, and
    /// so is what one slice has beyond the other.
    pub fn count(first: &[f64], second: &[f64]) -> Self {
        let objects: Vec<(f64, f64)> = first.iter().copied().zip(second.iter().copied()).collect();
        let mut pairs = Self::default();
        for (at, a) in objects.iter().enumerate() {
            for b in &objects[at + 1..] {
                pairs.add_pair(a.0.partial_cmp(&b.0), a.1.partial_cmp(&b.1));
            }
        }
        pairs
    }

    fn add_pair(&mut self, first: Option<std::cmp::Ordering>, second: Option<std::cmp::Ordering>) {
        let (Some(first), Some(second)) = (first, second) else {
            return;
        };
        let counter = match (first.is_eq(), second.is_eq()) {
            (true, true) => &mut self.tied_in_both,
            (true, false) => &mut self.tied_in_first,
            (false, true) => &mut self.tied_in_second,
            (false, false) if first == second => &mut self.same,
            (false, false) => &mut self.opposite,
        };
        *counter += 1;
    }

    /// Kendall's tau-b, from -1 (the reverse order) to 1; `None` when one side
    /// ties everything.
    pub fn tau_b(&self) -> Option<f64> {
        let ordered = self.same + self.opposite;
        let by_first = ordered + self.tied_in_second;
        let by_second = ordered + self.tied_in_first;
        let scale = (by_first as f64 * by_second as f64).sqrt();
        (scale > 0.0).then(|| (self.same as f64 - self.opposite as f64) / scale)
    }

    /// The highest tau-b that a second measurement without ties can have:
    /// below 1 when the first ties a pair.
    pub fn highest_tau_b(&self) -> Option<f64> {
        let by_first = self.same + self.opposite + self.tied_in_second;
        let all = by_first + self.tied_in_first + self.tied_in_both;
        (by_first > 0).then(|| (by_first as f64 / all as f64).sqrt())
    }
}

impl Add for PairCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            same: self.same + other.same,
            opposite: self.opposite + other.opposite,
            tied_in_first: self.tied_in_first + other.tied_in_first,
            tied_in_second: self.tied_in_second + other.tied_in_second,
            tied_in_both: self.tied_in_both + other.tied_in_both,
        }
    }
}

impl Sum for PairCounts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

/// The share of all orders of `second` that agree with `first` at least as well
/// as the one that stands: the exact one-sided p-value of tau-b, ties included.
///
/// `None` for more than eight objects, for fewer than two, and when a value is
/// not a number.
pub fn share_by_chance(first: &[f64], second: &[f64]) -> Option<f64> {
    let count = first.len();
    let is_number = |values: &[f64]| values.iter().all(|value| !value.is_nan());
    if count != second.len() || !(2..=MOST_COUNTED).contains(&count) {
        return None;
    }
    if !is_number(first) || !is_number(second) {
        return None;
    }
    // Reordering moves no ties, so the numerator of tau-b decides alone.
    let agreement = |second: &[f64]| {
        let pairs = PairCounts::count(first, second);
        pairs.same as i64 - pairs.opposite as i64
    };
    let seen = agreement(second);
    let (mut all, mut as_good) = (0u64, 0u64);
    let mut order = second.to_vec();
    for_each_order(&mut order, count, &mut |order| {
        all += 1;
        as_good += u64::from(agreement(order) >= seen);
    });
    Some(as_good as f64 / all as f64)
}

/// Visits every order of the first `length` values (B. R. Heap, "Permutations
/// by interchanges", The Computer Journal 6, 1963).
fn for_each_order(values: &mut [f64], length: usize, visit: &mut impl FnMut(&[f64])) {
    if length <= 1 {
        return visit(values);
    }
    for at in 0..length {
        for_each_order(values, length - 1, visit);
        if at + 1 < length {
            let other = if length.is_multiple_of(2) { at } else { 0 };
            values.swap(other, length - 1);
        }
    }
}

/// Objects that a published table orders, and what was measured of them.
#[derive(Clone, Debug)]
pub struct Ranking {
    /// The published value of each object.
    pub published: Vec<f64>,
    /// Of each object, by block, what it is ordered by, such as the logarithm
    /// of its ratio to the baseline of that block (C-6); `None` where the block
    /// has none.
    pub measured: Vec<Vec<Option<f64>>>,
}

impl Ranking {
    /// The median of each object over some blocks, which may repeat; not a
    /// number without a value.
    fn medians(&self, blocks: &[usize]) -> Vec<f64> {
        let of_object = |values: &Vec<Option<f64>>| {
            let mut drawn: Vec<f64> = blocks
                .iter()
                .filter_map(|&block| *values.get(block)?)
                .collect();
            drawn.sort_unstable_by(f64::total_cmp);
            median_of_sorted(&drawn)
        };
        self.measured.iter().map(of_object).collect()
    }

    fn pairs(&self, blocks: &[usize]) -> PairCounts {
        PairCounts::count(&self.published, &self.medians(blocks))
    }

    /// [`share_by_chance`] for the order over so many blocks, which is that of [`agreement`].
    pub fn share_by_chance(&self, blocks: usize) -> Option<f64> {
        let every: Vec<usize> = (0..blocks).collect();
        share_by_chance(&self.published, &self.medians(&every))
    }
}

/// How far measured orders agree with published ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// Tau-b over the pairs within each table, all tables together.
    pub tau: f64,
    /// What tau becomes when the blocks are drawn again. Its level is nominal:
    /// tau moves in steps, so that the true coverage is rather higher. `None`
    /// with fewer than six blocks.
    pub interval: Option<Interval>,
    /// The highest tau that the ties of the published tables allow.
    pub highest: f64,
    /// The pairs behind `tau`; "first" is the published order.
    pub pairs: PairCounts,
}

/// How far the measured orders of one or several tables agree with the
/// published ones, when every object is placed by its median over `blocks`
/// blocks.
///
/// The interval is a bootstrap over blocks, which are what is independent
/// (C-2): they are drawn with replacement, the same draw for all tables, since
/// the tables share the noise of a block. Percentile limits are taken, not BCa:
/// an order that is certain sits at the end of the scale, where no resample can
/// be higher and BCa would take that for bias. It says what the noise of this
/// run leaves open, not what another machine would show.
///
/// `None` without a pair that both sides order.
pub fn agreement(tables: &[Ranking], blocks: usize, level: f64, seed: u64) -> Option<Agreement> {
    let pooled =
        |blocks: &[usize]| -> PairCounts { tables.iter().map(|one| one.pairs(blocks)).sum() };
    let every: Vec<usize> = (0..blocks).collect();
    let pairs = pooled(&every);
    let (tau, highest) = (pairs.tau_b()?, pairs.highest_tau_b()?);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = || -> Vec<usize> {
        (0..blocks)
            .map(|_| random.random_range(0..blocks))
            .collect()
    };
    let interval = (blocks >= LEAST_BLOCKS).then(|| {
        let mut taus: Vec<f64> = (0..RESAMPLES)
            .filter_map(|_| pooled(&draw()).tau_b())
            .collect();
        taus.sort_unstable_by(f64::total_cmp);
        limits(&taus, level)
    });
    Some(Agreement {
        tau,
        interval: interval.flatten(),
        highest,
        pairs,
    })
}

/// The middle `level` of some values in ascending order.
fn limits(sorted: &[f64], level: f64) -> Option<Interval> {
    let cut = ((1.0 - level) / 2.0 * sorted.len() as f64).floor() as usize;
    let (low, high) = (
        sorted.get(cut)?,
        sorted.get(sorted.len().checked_sub(cut + 1)?)?,
    );
    Some(Interval {
        low: *low,
        high: *high,
        level,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_order_is_1_and_the_reverse_is_minus_1() {
        let up = [1.0, 2.0, 3.0, 4.0];
        let down = [4.0, 3.0, 2.0, 1.0];
        assert_eq!(
            PairCounts::count(&up, &[10.0, 20.0, 30.0, 40.0]).tau_b(),
            Some(1.0)
        );
        assert_eq!(PairCounts::count(&up, &down).tau_b(), Some(-1.0));
        assert_eq!(
            PairCounts::count(&up, &[1.0; 4]).tau_b(),
            None,
            "no order at all"
        );
        assert_eq!(share_by_chance(&up, &up), Some(1.0 / 24.0));
        assert_eq!(share_by_chance(&up, &down), Some(1.0));
    }

    #[test]
    fn a_tie_in_the_published_order_bounds_tau() {
        let pairs = PairCounts::count(&[1.0, 2.0, 2.0], &[1.0, 2.0, 3.0]);
        assert_eq!((pairs.same, pairs.tied_in_first), (2, 1));
        let (tau, highest) = (pairs.tau_b().unwrap(), pairs.highest_tau_b().unwrap());
        assert!((tau - highest).abs() < 1e-15, "{tau} {highest}");
        assert!((highest - (2.0f64 / 3.0).sqrt()).abs() < 1e-15);
    }

    #[test]
    fn what_is_not_a_number_has_no_place_in_an_order() {
        let pairs = PairCounts::count(&[1.0, 2.0, 3.0], &[1.0, f64::NAN, 3.0]);
        assert_eq!((pairs.same, pairs.tau_b()), (1, Some(1.0)));
        assert_eq!(share_by_chance(&[1.0, f64::NAN], &[1.0, 2.0]), None);
        assert_eq!(share_by_chance(&[1.0], &[1.0]), None);
    }

    #[test]
    fn a_certain_order_has_an_interval_of_no_width_and_few_blocks_have_none() {
        let ranking = |blocks: usize| Ranking {
            published: vec![1.0, 2.0, 3.0],
            measured: (0..3).map(|n| vec![Some(f64::from(n)); blocks]).collect(),
        };
        let found = agreement(&[ranking(6)], 6, 0.95, 1).unwrap();
        let interval = found.interval.unwrap();
        assert_eq!((found.tau, interval.low, interval.high), (1.0, 1.0, 1.0));
        assert_eq!(agreement(&[ranking(5)], 5, 0.95, 1).unwrap().interval, None);
        assert_eq!(agreement(&[], 6, 0.95, 1), None);
    }

    #[test]
    fn chance_is_asked_about_the_order_that_tau_is_of() {
        let ranking = Ranking {
            published: vec![1.0, 2.0, 3.0],
            measured: [0.0, 2.0, 1.0].map(|ratio| vec![Some(ratio); 6]).into(),
        };
        assert_eq!(ranking.share_by_chance(6), Some(0.5), "3 orders of 6");
        let found = agreement(&[ranking], 6, 0.95, 1).unwrap();
        assert_eq!((found.pairs.same, found.pairs.opposite), (2, 1));
    }

    #[test]
    fn an_object_without_values_is_left_out_of_the_order() {
        let ranking = Ranking {
            published: vec![1.0, 2.0, 3.0],
            measured: vec![vec![Some(0.0); 6], vec![None; 6], vec![Some(1.0); 6]],
        };
        let found = agreement(&[ranking], 6, 0.95, 1).unwrap();
        assert_eq!((found.pairs.same, found.tau), (1, 1.0));
    }
}
