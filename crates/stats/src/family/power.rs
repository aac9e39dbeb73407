//! The smallest effect that would have been seen.

use crate::normal;

/// Probability of finding an effect as large as the smallest effect (C-8).
const POWER: f64 = 0.8;

/// Points of the numerical integral in each direction, and how far it goes, in
/// standard deviations of the estimated spread.
const POINTS: usize = 9;
const REACH: f64 = 4.0;
/// Beyond this many standard deviations lies 10⁻⁹ of a normal distribution.
const FAR: f64 = 6.0;

/// The effect in standard errors of the mean, *as these are estimated from the
/// data*, that a test which rejects above Student's t = `critical` finds with
/// 80 % probability in `blocks` blocks of normal noise.
///
/// The λ for which E Φ(λs − t·s′) = 0.8, where s is the spread in the data at
/// hand and s′ that of another run, each √(χ²/ν) with ν = `blocks` − 1, as a
/// ratio to the truth. λ = t + t₀.₈ is the usual short form of this; it takes
/// s′ for known, and for the critical values of many comparisons (t of 5 and
/// above) it promises 80 % where 56 % are found.
pub(super) fn visible(critical: f64, blocks: usize) -> f64 {
    let spreads = spreads(blocks - 1);
    let power = |lambda: f64| -> f64 {
        let other = |(s, weight): (f64, f64)| {
            let found = |&(s_other, weight): &(f64, f64)| {
                weight * upper_tail(critical * s_other - lambda * s)
            };
            weight * spreads.iter().map(found).sum::<f64>()
        };
        spreads.iter().copied().map(other).sum()
    };
    // Where λ = t, half of all runs find it: s and s′ are alike.
    let (mut low, mut high) = (critical, critical + (critical / 4.0).max(1.5));
    while power(high) < POWER {
        (low, high) = (high, 2.0 * high);
    }
    while high - low > 1e-3 * high {
        let middle = f64::midpoint(low, high);
        if power(middle) < POWER {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// [`normal::upper_tail`], without the work where nothing is left of it.
fn upper_tail(z: f64) -> f64 {
    match z {
        z if z > FAR => 0.0,
        z if z < -FAR => 1.0,
        z => normal::upper_tail(z),
    }
}

/// Values of √(χ²/ν) with their probabilities: the density s^(ν−1) exp(−νs²/2)
/// at equal distances, which for so smooth a function is as good as any rule.
fn spreads(freedom: usize) -> Vec<(f64, f64)> {
    let freedom = freedom as f64;
    let half = REACH / (2.0 * freedom).sqrt();
    let (from, to) = ((1.0 - half).max(0.0), 1.0 + half);
    let weight = |s: f64| ((freedom - 1.0) * s.ln() - freedom * s * s / 2.0 + freedom / 2.0).exp();
    let points = (1..=POINTS).map(|at| from + (to - from) * at as f64 / (POINTS + 1) as f64);
    let weighted: Vec<(f64, f64)> = points.map(|s| (s, weight(s))).collect();
    let sum: f64 = weighted.iter().map(|(_, weight)| weight).sum();
    weighted
        .into_iter()
        .map(|(s, weight)| (s, weight / sum))
        .collect()
}
