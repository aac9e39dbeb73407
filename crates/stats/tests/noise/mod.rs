//! Seeded noise, and families of comparisons made of it.
#![allow(dead_code, reason = "each test and the example use a part")]

pub(crate) mod bursts;
pub(crate) mod gate;
pub(crate) mod mesh;
pub(crate) mod precision;

use plumbline_stats::family;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How a trial's logarithm spreads around its truth; scaled to look like 1 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Noise {
    Normal,
    /// Student's t with 3 degrees of freedom.
    HeavyTailed,
    /// Exponential: mostly fast, sometimes slow.
    Skewed,
}

pub(crate) struct Source {
    pub(crate) rng: ChaCha8Rng,
    noise: Noise,
}

impl Source {
    pub(crate) fn new(seed: u64, noise: Noise) -> Source {
        Source {
            rng: ChaCha8Rng::seed_from_u64(seed),
            noise,
        }
    }

    pub(crate) fn gaussian(&mut self) -> f64 {
        let (radius, angle): (f64, f64) = (self.rng.random(), self.rng.random());
        (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// Noise of standard deviation 1.
    pub(crate) fn unit(&mut self) -> f64 {
        match self.noise {
            Noise::Normal => self.gaussian(),
            Noise::HeavyTailed => {
                let squares: f64 = (0..3).map(|_| self.gaussian().powi(2)).sum();
                self.gaussian() / squares.sqrt()
            }
            Noise::Skewed => -(1.0 - self.rng.random::<f64>()).ln() - 1.0,
        }
    }

    /// Log-ratios of treatments with these `effects` to a baseline that all
    /// share; each trial with noise of 1 %.
    pub(crate) fn family(&mut self, effects: &[f64], blocks: usize) -> Vec<Vec<Option<f64>>> {
        let baseline: Vec<f64> = (0..blocks).map(|_| self.unit()).collect();
        let column = |&effect: &f64| {
            let log_ratio = |&baseline: &f64| Some(effect + 0.01 * (self.unit() - baseline));
            baseline.iter().map(log_ratio).collect()
        };
        effects.iter().map(column).collect()
    }
}

/// How often an effect as large as one run claims that it would have been seen
/// is seen by another run, in a family whose other comparisons show nothing.
pub(crate) fn power_at_claim(
    noise: Noise,
    comparisons: usize,
    blocks: usize,
    repetitions: u64,
) -> f64 {
    let nothing = vec![0.0; comparisons];
    let mut found = 0;
    let mut claims = 0;
    for seed in 0..repetitions {
        let mut source = Source::new(seed, noise);
        let first = family::compare(&source.family(&nothing, blocks), 0.05, seed).unwrap();
        let Some(claim) = first[0].smallest_effect else {
            continue;
        };
        claims += 1;
        let mut effects = nothing.clone();
        effects[0] = claim.ln_1p();
        let second = family::compare(&source.family(&effects, blocks), 0.05, seed).unwrap();
        found += u32::from(second[0].is_different());
    }
    f64::from(found) / f64::from(claims)
}
