//! Which blocks change their sign, and what a comparison's sum is then.

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Up to this many blocks every choice of signs is tried.
pub(super) const EXACT_BLOCKS: usize = 16;

/// Choices that are drawn when there are more blocks: as many as 16 blocks have
/// in all, counting opposite ones once. The share beyond a critical value of
/// 5 % is then known to ±0.12 % (one standard deviation).
const DRAWN: usize = 1 << (EXACT_BLOCKS - 1);

/// Blocks whose signs are looked up together.
const GROUP: usize = u8::BITS as usize;

/// A squared sum this small a share of the other is rounding, not noise.
const ROUNDING: f64 = 1e-24;

/// Choices of blocks whose sign is flipped, the first of them none.
pub(super) struct Flips {
    /// Bytes of one choice, at least 1.
    groups: usize,
    /// One bit for each block, set where it is flipped; choice after choice.
    bits: Vec<u8>,
}

impl Flips {
    /// All choices for up to 16 blocks, without the opposite of each, whose
    /// sums only differ in sign; drawn ones with `seed` beyond.
    pub(super) fn new(blocks: usize, seed: u64) -> Flips {
        let groups = blocks.div_ceil(GROUP).max(1);
        if blocks > EXACT_BLOCKS {
            let mut bits = vec![0; DRAWN * groups];
            ChaCha8Rng::seed_from_u64(seed).fill_bytes(&mut bits[groups..]);
            return Flips { groups, bits };
        }
        let choices = 0..1_u32 << blocks.saturating_sub(1);
        let bits = choices
            .flat_map(|choice| choice.to_le_bytes().into_iter().take(groups))
            .collect();
        Flips { groups, bits }
    }

    /// How many choices there are.
    pub(super) fn len(&self) -> usize {
        self.bits.len() / self.groups
    }
}

/// One comparison: its log-ratios by block, ready to be flipped.
pub(super) struct LogRatios {
    /// How many blocks hold it.
    pub(super) blocks: usize,
    /// Mean of its log-ratios; not a number without any.
    pub(super) mean: f64,
    /// Sum of squares around the mean; 0 when all are equal.
    pub(super) spread: f64,
    /// Sum of squares around 0.
    pub(super) squares: f64,
    /// For each group of blocks and each choice in it, the flipped sum of the
    /// distances from the mean.
    sums: Vec<[f64; 1 << GROUP]>,
    /// The blocks that hold it.
    present: Vec<u8>,
}

/// What a choice of signs makes of a column.
#[derive(Clone, Copy)]
pub(super) struct Flipped {
    /// Sum of the distances from the mean, with their signs.
    pub(super) sum: f64,
    /// How many blocks were flipped of those that hold the comparison.
    pub(super) blocks: usize,
}

impl LogRatios {
    pub(super) fn new(log_ratios: &[Option<f64>]) -> LogRatios {
        let known: Vec<f64> = log_ratios.iter().copied().flatten().collect();
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        let squares: f64 = known.iter().map(|value| value * value).sum();
        let spread: f64 = known.iter().map(|value| (value - mean).powi(2)).sum();
        let is_even = spread <= ROUNDING * squares;
        let distance = |value: &Option<f64>| match value {
            Some(value) if !is_even => value - mean,
            _ => 0.0,
        };
        let distances: Vec<f64> = log_ratios.iter().map(distance).collect();
        let bits = |group: &[Option<f64>]| {
            let bit = |(at, value): (usize, &Option<f64>)| u8::from(value.is_some()) << at;
            group.iter().enumerate().map(bit).sum()
        };
        LogRatios {
            blocks: known.len(),
            mean,
            spread: if is_even { 0.0 } else { spread },
            squares,
            sums: distances.chunks(GROUP).map(signed_sums).collect(),
            present: log_ratios.chunks(GROUP).map(bits).collect(),
        }
    }

    /// What each choice makes of it, in their order.
    pub(super) fn flipped(&self, flips: &Flips) -> impl Iterator<Item = Flipped> {
        flips.bits.chunks_exact(flips.groups).map(|choice| {
            let mut flipped = Flipped {
                sum: 0.0,
                blocks: 0,
            };
            for ((&bits, sums), present) in choice.iter().zip(&self.sums).zip(&self.present) {
                flipped.sum += sums[usize::from(bits)];
                flipped.blocks += (bits & present).count_ones() as usize;
            }
            flipped
        })
    }

    /// The squared statistic that the effect is 0: (Σ ± d)² / Σ d², which is
    /// a monotone function of Student's t and at most the number of blocks.
    pub(super) fn at_zero(&self, flipped: Flipped) -> f64 {
        let kept = self.blocks as f64 - 2.0 * flipped.blocks as f64;
        ratio((flipped.sum + self.mean * kept).powi(2), self.squares)
    }

    /// The squared statistic that the effect is the estimate.
    pub(super) fn at_mean(&self, flipped: Flipped) -> f64 {
        ratio(flipped.sum.powi(2), self.spread)
    }
}

/// 0 where nothing differs from what is tested.
fn ratio(square: f64, squares: f64) -> f64 {
    if squares > 0.0 { square / squares } else { 0.0 }
}

/// For each choice of signs among at most eight values, their sum.
fn signed_sums(values: &[f64]) -> [f64; 1 << GROUP] {
    std::array::from_fn(|choice| {
        let signed = |(at, value): (usize, &f64)| {
            if choice >> at & 1 == 1 {
                -value
            } else {
                *value
            }
        };
        values.iter().enumerate().map(signed).sum()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_is_there_once_and_its_opposite_is_not() {
        let column = LogRatios::new(&[Some(1.0), Some(2.0), Some(4.0)]);
        let flips = Flips::new(3, 1);
        let mut sums: Vec<f64> = column
            .flipped(&flips)
            .map(|one| column.at_zero(one) * 21.0)
            .map(|square| square.sqrt().round())
            .collect();
        assert_eq!(sums[0], 7.0, "nothing is flipped first");
        sums.sort_by(f64::total_cmp);
        assert_eq!(sums, [1.0, 3.0, 5.0, 7.0]);
    }

    #[test]
    fn a_block_without_the_comparison_is_neither_summed_nor_counted() {
        let with_gap: Vec<Option<f64>> =
            (0..11).map(|i| (i != 9).then_some(f64::from(i))).collect();
        let column = LogRatios::new(&with_gap);
        assert_eq!((column.blocks, column.mean), (10, 4.6));
        let flips = Flips::new(11, 1);
        let last = column.flipped(&flips).last().unwrap();
        assert_eq!(
            last.blocks, 9,
            "all but the gap and the block that is never flipped"
        );
        // −(0 + … + 8) + 10, and nothing for the gap.
        assert!((column.at_zero(last) * column.squares - 26.0_f64.powi(2)).abs() < 1e-9);
    }

    #[test]
    fn more_blocks_than_can_be_tried_are_drawn_from_the_seed() {
        let (one, again, other) = (Flips::new(30, 7), Flips::new(30, 7), Flips::new(30, 8));
        assert_eq!(one.len(), DRAWN);
        assert!(one.bits == again.bits && one.bits != other.bits);
        assert_eq!(one.bits[..4], [0; 4], "the data as they are take part");
    }

    #[test]
    fn what_is_equal_but_for_rounding_does_not_spread() {
        let equal = LogRatios::new(&[Some(0.1 + 0.2), Some(0.3), Some(0.3)]);
        assert_eq!(equal.spread, 0.0);
        assert_eq!(LogRatios::new(&[Some(0.0); 5]).squares, 0.0);
    }
}
