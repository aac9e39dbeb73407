//! Decisions while a run still goes on, whose error rates hold all the same.
//!
//! Whoever looks at intervals of 95 % again and again meets the moment at which chance alone
//! has moved one. So the looks are set before the run, as numbers of blocks, and at each of
//! them intervals are made at a stricter level, the same for all: [`level_of_each`]. Then
//! the intervals of *all* looks hold together with 95 % probability, and what stops a run
//! at one of them is as sure as if there had been no other. What is computed here is by how
//! much stricter, from the normal distribution of sums that grow: the intervals themselves
//! assume nothing of the kind ([`family`](crate::family)). A look that never comes, or comes
//! earlier than was planned, only makes errors rarer.
//!
//! Sources: P. Armitage, C. K. McPherson and B. C. Rowe, "Repeated Significance Tests on
//! Accumulating Data", Journal of the Royal Statistical Society A 132 (1969), for the
//! recursion; S. J. Pocock, "Group Sequential Methods in the Design and Analysis of Clinical
//! Trials", Biometrika 64 (1977), for one level at all looks; C. Jennison and B. W. Turnbull,
//! "Interim Analyses: The Repeated Confidence Interval Approach", Journal of the Royal
//! Statistical Society B 51 (1989), for intervals in place of tests.

use crate::normal::{density, upper_quantile, upper_tail};

/// Steps of the integral between the two critical values.
const STEPS: usize = 128;

/// Halvings of the range that the critical value is searched in.
const HALVINGS: usize = 25;

/// Looks that the recursion is worth its time for.
const MOST_LOOKS: usize = 32;

/// Probability with which [`blocks_to_decide`] are enough.
const POWER: f64 = 0.8;

/// The level for the intervals of each look, so that those of all looks hold together at
/// `alpha`. `looks` are numbers of blocks, each larger than the one before; where they are
/// not, or very many, each gets its share of `alpha`, which is enough in any case.
pub fn level_of_each(looks: &[usize], alpha: f64) -> f64 {
    let share = alpha / looks.len().max(1) as f64;
    if looks.len() > MOST_LOOKS || looks.windows(2).any(|pair| pair[0] >= pair[1]) {
        return share;
    }
    // As if there were one look, and as if each look were an experiment of its own.
    let mut low = upper_quantile(alpha / 2.0);
    let mut high = upper_quantile(share / 2.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if leaves(looks, middle) > alpha {
            low = middle;
        } else {
            high = middle;
        }
    }
    2.0 * upper_tail(high)
}

/// Probability that the mean of independent normal numbers, as a multiple of its standard
/// error, is beyond ±`critical` at any of these looks.
fn leaves(looks: &[usize], critical: f64) -> f64 {
    let step = 2.0 * critical / STEPS as f64;
    let points: Vec<f64> = (0..=STEPS).map(|at| at as f64 * step - critical).collect();
    let integral = |values: &mut dyn Iterator<Item = f64>| {
        let weighted = values.enumerate().map(|(at, value)| match at {
            0 | STEPS => value / 2.0,
            _ => value,
        });
        step * weighted.sum::<f64>()
    };
    // The density of those that have stayed inside so far.
    let mut inside: Vec<f64> = points.iter().map(|&z| density(z)).collect();
    for pair in looks.windows(2) {
        let kept = (pair[0] as f64 / pair[1] as f64).sqrt();
        let spread = (1.0 - kept * kept).sqrt();
        let arrive = |&to: &f64| {
            let each = points.iter().zip(&inside);
            let mut each =
                each.map(|(from, share)| share * density((to - kept * from) / spread) / spread);
            integral(&mut each)
        };
        inside = points.iter().map(arrive).collect();
    }
    1.0 - integral(&mut inside.into_iter())
}

/// Whether an interval is within a limit: all of it, or none; `None` where the limit lies in it.
pub fn is_held(low: f64, high: f64, limit: f64) -> Option<bool> {
    if low > limit {
        Some(false)
    } else {
        (high <= limit).then_some(true)
    }
}

/// Whether a run ends at a look, by what is [within its limit](is_held): every limit is decided.
pub fn are_decided(within: impl IntoIterator<Item = Option<bool>>) -> bool {
    within.into_iter().all(|it| it.is_some())
}

/// Whether all is within its limit when a run has ended: not where one is beyond, whatever the
/// others are; `None` where some are undecided, or there are none.
pub fn all_held(within: &[Option<bool>]) -> Option<bool> {
    if within.contains(&Some(false)) {
        return Some(false);
    }
    (!within.is_empty() && are_decided(within.iter().copied())).then_some(true)
}

/// About how many blocks in all it takes until an interval excludes, with 80 % probability,
/// a value that is `distance` from its estimate, if that is the truth. `half_width` is how
/// far the interval reaches towards that value after `blocks` blocks, in the unit of
/// `distance`, and `alpha` its level. Infinite where the two are equal.
pub fn blocks_to_decide(blocks: usize, half_width: f64, distance: f64, alpha: f64) -> f64 {
    let critical = upper_quantile(alpha / 2.0);
    let reach = (critical + upper_quantile(1.0 - POWER)) / critical;
    blocks as f64 * (reach * half_width / distance).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_levels_are_those_of_the_published_table() {
        // Pocock's table 1, for equal steps and 5 %.
        let published = [0.05, 0.0294, 0.0221, 0.0182, 0.0158];
        for (count, level) in (1..).zip(published) {
            let looks: Vec<usize> = (1..=count).map(|at| 10 * at).collect();
            let found = level_of_each(&looks, 0.05);
            assert!((found - level).abs() < 1e-4, "{count}: {found}");
        }
    }

    #[test]
    fn looks_close_together_cost_little_and_far_apart_nearly_all() {
        let close = level_of_each(&[100, 101, 102], 0.05);
        let far = level_of_each(&[1, 1_000, 1_000_000], 0.05);
        assert!(close > 0.035, "{close}");
        assert!((0.05 / 3.0..0.018).contains(&far), "{far}");
        assert_eq!(level_of_each(&[5, 5], 0.05), 0.025);
        assert_eq!(level_of_each(&[5; 100], 0.05), 0.0005);
    }

    #[test]
    fn an_interval_that_holds_its_limit_decides_nothing() {
        for (low, high, within) in [
            (-0.1, 0.02, Some(true)),
            (-0.1, 0.03, Some(true)),
            (0.03, 0.04, None),
            (-0.1, 0.04, None),
            (0.031, 0.04, Some(false)),
            (f64::NEG_INFINITY, f64::INFINITY, None),
        ] {
            assert_eq!(is_held(low, high, 0.03), within, "{low} to {high}");
        }
    }

    #[test]
    fn one_that_is_beyond_is_enough_and_a_run_ends_when_all_are_decided() {
        let [held, broken, open] = [Some(true), Some(false), None];
        for (within, decided, all) in [
            (&[held, held][..], true, held),
            (&[held, broken], true, broken),
            (&[held, open], false, open),
            (&[broken, open], false, broken),
            (&[], true, open),
        ] {
            assert_eq!(are_decided(within.iter().copied()), decided, "{within:?}");
            assert_eq!(all_held(within), all, "{within:?}");
        }
    }

    #[test]
    fn half_the_distance_takes_four_times_the_blocks() {
        let near = blocks_to_decide(10, 0.02, 0.01, 0.05);
        let far = blocks_to_decide(10, 0.02, 0.02, 0.05);
        assert!((near / far - 4.0).abs() < 1e-9);
        // 10 (1.96 + 0.84)² / 1.96² for an interval that just reaches it.
        assert!((far - 20.43).abs() < 0.01, "{far}");
        assert_eq!(blocks_to_decide(10, 0.02, 0.0, 0.05), f64::INFINITY);
    }
}
