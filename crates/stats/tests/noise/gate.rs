//! Gates: runs that end at the first look at which every limit is decided.

use plumbline_stats::family;
use plumbline_stats::looks::{all_held, are_decided, blocks_to_decide, is_held, level_of_each};

use super::{Noise, Source};

/// Numbers of blocks, set beforehand, as `plumbline gate` sets them.
pub(crate) const LOOKS: [usize; 5] = [8, 12, 18, 27, 41];

const ALPHA: f64 = 0.05;

/// What gates answer, in percent, and after how many blocks in the mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answers {
    pub(crate) not_worse: f64,
    pub(crate) worse: f64,
    pub(crate) undecided: f64,
    pub(crate) blocks: f64,
}

/// The limit for which the last look is as late as is needed where head equals base, by the
/// intervals that there are then.
pub(crate) fn limit(noise: Noise) -> f64 {
    const RUNS: u64 = 20;
    let level = level_of_each(&LOOKS, ALPHA);
    let last = LOOKS[LOOKS.len() - 1];
    let half_width = |seed| {
        let blocks = Source::new(seed, noise).family(&[0.0, 0.0], last);
        let found = family::compare(&blocks, level, seed).unwrap();
        found[0].half_width
    };
    let mean = (1_000..1_000 + RUNS).map(half_width).sum::<f64>() / RUNS as f64;
    // Blocks fall with the square of the distance.
    (blocks_to_decide(last, mean, 1.0, level) / last as f64).sqrt()
}

/// Gates whose head has these effects on two metrics, as logarithms of ratios, each held
/// against the same limit, a logarithm as well.
pub(crate) fn answers(noise: Noise, effects: [f64; 2], limit: f64, gates: u64) -> Answers {
    let level = level_of_each(&LOOKS, ALPHA);
    let most = LOOKS[LOOKS.len() - 1];
    let (mut not_worse, mut worse, mut blocks) = (0, 0, 0);
    for seed in 0..gates {
        let all = Source::new(seed, noise).family(&effects, most);
        for look in LOOKS {
            let data: Vec<_> = all.iter().map(|one| one[..look].to_vec()).collect();
            let found = family::compare(&data, level, seed).unwrap();
            let joint = found.iter().map(|one| one.joint);
            let held = joint.map(|it| is_held(it.low, it.high, limit.exp_m1()));
            let held: Vec<_> = held.collect();
            if are_decided(held.iter().copied()) || look == most {
                let answer = all_held(&held);
                worse += u32::from(answer == Some(false));
                not_worse += u32::from(answer == Some(true));
                blocks += look;
                break;
            }
        }
    }
    let share = |count: u32| 100.0 * f64::from(count) / gates as f64;
    let [not_worse, worse] = [not_worse, worse].map(share);
    Answers {
        not_worse,
        worse,
        undecided: 100.0 - not_worse - worse,
        blocks: blocks as f64 / gates as f64,
    }
}
