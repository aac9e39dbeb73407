//! Runs that add blocks until their intervals are narrow.

use plumbline_stats::family;
use plumbline_stats::precision::{ALPHA_SHARE, more_blocks};

use super::{Noise, Source};

/// What such runs come to.
pub(crate) struct Stopped {
    /// Share of runs whose joint intervals all hold, in percent.
    pub(crate) holds: f64,
    /// Mean number of blocks.
    pub(crate) blocks: f64,
    /// Share of runs that reached the target, in percent.
    pub(crate) reached: f64,
}

const MOST_BLOCKS: usize = 40;

/// What these blocks show, and how many are added to them.
pub(crate) fn look(
    blocks: &[Vec<Option<f64>>],
    target: f64,
    seed: u64,
) -> (Vec<family::JointEffect>, usize) {
    let found = family::compare(blocks, 0.05 * ALPHA_SHARE, seed).unwrap();
    let widths: Vec<f64> = found.iter().map(|one| one.half_width).collect();
    let more = more_blocks(&widths, blocks[0].len(), target);
    (found, more)
}

/// Runs with effects of 0 %, 1 %, 2 %, …, of which the first look comes after
/// `first` blocks.
pub(crate) fn stopped(comparisons: usize, first: usize, target: f64, runs: u64) -> Stopped {
    let truth: Vec<f64> = (0..comparisons).map(|i| 0.01 * i as f64).collect();
    let (mut holds, mut blocks, mut reached) = (0, 0, 0);
    for seed in 0..runs {
        let all = Source::new(seed, Noise::Normal).family(&truth, MOST_BLOCKS);
        let mut so_far = first;
        let found = loop {
            let data: Vec<_> = all.iter().map(|one| one[..so_far].to_vec()).collect();
            let (found, more) = look(&data, target, seed);
            if more == 0 || so_far == MOST_BLOCKS {
                reached += u32::from(more == 0);
                break found;
            }
            so_far = (so_far + more).min(MOST_BLOCKS);
        };
        blocks += so_far;
        let mut both = found.iter().zip(&truth);
        // An end cut off at 0 is the test's, not the interval's.
        let holds_truth = |(one, truth): (&family::JointEffect, &f64)| {
            one.is_cut || one.joint.contains(truth.exp_m1())
        };
        holds += u32::from(both.all(holds_truth));
    }
    Stopped {
        holds: 100.0 * f64::from(holds) / runs as f64,
        blocks: blocks as f64 / runs as f64,
        reached: 100.0 * f64::from(reached) / runs as f64,
    }
}
