//! Naming nodes and pairs from several blocks.

use std::collections::BTreeMap;

use super::{OfPair, Outliers, Parts, far, median};
use crate::rank::doubled_mid_ranks;

/// Chance that a mesh whose nodes and pairs are all alike has any named: half of
/// it for nodes, half for pairs.
const FALSE_NAME: f64 = 0.05;

/// Finds nodes and pairs that are unlike the rest in `blocks`, each with at most
/// one value of a pair, at the same confidence for whatever noise.
///
/// One value of each pair cannot tell a slow pair from a wild value: how far
/// noise reaches is not known. A wild value does not come back, a slow pair
/// does. So besides lying far from the rest by its median over blocks, what is
/// named has to rank high in block after block, or low: were all alike, its rank in each block would be any with the
/// same probability, and the sum of its ranks over blocks has a known
/// distribution, which is summed exactly. Times the number of candidates and
/// two directions this is at most 2.5 % for nodes and for pairs each
/// (M. Friedman, "The Use of Ranks to Avoid the Assumption of Normality",
/// Journal of the American Statistical Association 32, 1937, for ranks within
/// blocks; Bonferroni for the maximum).
///
/// A node that is named is taken out with all its pairs before the rest is judged,
/// for it moves what its neighbours seem to add.
///
/// What shares a moment in every block, such as the pairs of one round, shares
/// its noise too: draw the order of rounds anew for each block.
///
/// `None` when there are too few nodes in every block; see [`blocks_to_name`] for
/// how many blocks it takes to name anything.
pub fn named(nodes: usize, blocks: &[Vec<OfPair>]) -> Option<Outliers> {
    let mut found = Outliers::default();
    let mut remaining: Vec<usize> = (0..nodes).collect();
    let mut parts = parts_among(&remaining, blocks)?;
    loop {
        let worst = far_and_steady(parts.iter().map(|(nodes, _)| nodes.as_slice()));
        let Some(&(at, ratio)) = worst.first() else {
            found.pairs = far_and_steady(parts.iter().map(|(_, pairs)| pairs.as_slice()));
            break;
        };
        found.nodes.push((remaining.remove(at), ratio));
        match parts_among(&remaining, blocks) {
            Some(rest) => parts = rest,
            None => break,
        }
    }
    for (ends, _) in &mut found.pairs {
        *ends = ends.map(|at| remaining[at]);
    }
    Some(found)
}

/// Those of each block, of the `remaining` nodes and by their positions there;
/// `None` without a block that has enough of them.
fn parts_among(remaining: &[usize], blocks: &[Vec<OfPair>]) -> Option<Vec<Parts>> {
    let position = |node: usize| remaining.binary_search(&node).ok();
    let of_remaining = |one: &OfPair| {
        let [a, b] = one.ends;
        let ends = [position(a)?, position(b)?];
        Some(OfPair { ends, ..*one })
    };
    let of_block = |block: &Vec<OfPair>| {
        let pairs: Vec<OfPair> = block.iter().filter_map(of_remaining).collect();
        super::parts(remaining.len(), &pairs)
    };
    let parts: Vec<Parts> = blocks.iter().filter_map(of_block).collect();
    (!parts.is_empty()).then_some(parts)
}

/// The fewest blocks in which one of `candidates` (nodes, or pairs) can be
/// named: as many as it takes for 2·c·c⁻ⁿ ≤ 2.5 %.
pub fn blocks_to_name(candidates: usize) -> usize {
    let c = candidates.max(2) as f64;
    let n = (4.0 * c / FALSE_NAME).ln() / c.ln();
    (n - 1e-9).ceil() as usize
}

/// Those that lie far from the rest, and in block after block.
fn far_and_steady<'a, T: Copy + Ord + 'a>(
    blocks: impl Iterator<Item = &'a [(T, f64)]>,
) -> Vec<(T, f64)> {
    let mut of: BTreeMap<T, Ranked> = BTreeMap::new();
    for block in blocks {
        let values: Vec<f64> = block.iter().map(|(_, value)| *value).collect();
        for (&(one, value), rank) in block.iter().zip(doubled_mid_ranks(&values)) {
            let ranked = of.entry(one).or_default();
            ranked.values.push(value);
            ranked.sum += rank;
            ranked.among.push(block.len());
        }
    }
    let candidates = of.len();
    let medians = of.iter().map(|(&one, it)| (one, median(it.values.clone())));
    let mut named = far(medians.collect());
    named.retain(|(one, _)| of[one].chance() * candidates as f64 <= FALSE_NAME / 2.0);
    named
}

/// One candidate's values and ranks over the blocks that hold it.
#[derive(Default)]
struct Ranked {
    values: Vec<f64>,
    /// Of its doubled ranks.
    sum: usize,
    /// How many were ranked in each of its blocks.
    among: Vec<usize>,
}

impl Ranked {
    /// Two-sided chance of a sum of ranks as extreme as this, each rank being
    /// drawn from those of its block.
    fn chance(&self) -> f64 {
        let total: usize = self.among.iter().sum();
        let blocks = self.among.len();
        // By symmetry of the ranks, whose smallest sum is one in each block.
        let from_below = self.sum.div_ceil(2) - blocks;
        let from_above = total - self.sum / 2;
        let extreme = from_below.min(from_above);
        let mut chance = vec![0.0; extreme + 1];
        chance[0] = 1.0;
        for &ranks in &self.among {
            chance = with_another(&chance, ranks);
        }
        (2.0 * chance.iter().sum::<f64>()).min(1.0)
    }
}

/// P(S + R = s) for s below the length of `chance`, which is P(S = s), with R
/// any of 0 to `ranks` − 1.
fn with_another(chance: &[f64], ranks: usize) -> Vec<f64> {
    let mut window = 0.0;
    let sum = |at: usize| {
        window += chance[at];
        if at >= ranks {
            window -= chance[at - ranks];
        }
        // What is left of a difference of sums may be just below 0.
        f64::max(window, 0.0) / ranks as f64
    };
    (0..chance.len()).map(sum).collect()
}
