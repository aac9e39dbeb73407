//! The order of the treatments in each block.

use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

use crate::TreatmentId;

/// Each block holds every treatment once, in an order of its own (C-1).
pub(crate) fn blocks(treatments: usize, blocks: u32, seed: u64) -> Vec<Vec<TreatmentId>> {
    nested_blocks(&vec![0; treatments], blocks, seed)
}

/// As [`blocks`], but for treatments of one group, which stay together: the
/// groups of a block are in an order of its own, and the treatments of each
/// group too. `groups` gives the group of each treatment.
pub(crate) fn nested_blocks(groups: &[usize], blocks: u32, seed: u64) -> Vec<Vec<TreatmentId>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let count = groups.iter().max().map_or(0, |last| last + 1);
    (0..blocks)
        .map(|_| {
            let mut order: Vec<usize> = (0..count).collect();
            order.shuffle(&mut random);
            let mut block = Vec::with_capacity(groups.len());
            for group in order {
                let of_it = |id: &TreatmentId| groups[*id] == group;
                let mut members: Vec<TreatmentId> = (0..groups.len()).filter(of_it).collect();
                members.shuffle(&mut random);
                block.extend(members);
            }
            block
        })
        .collect()
}
