//! The binomial distribution of the number of samples beyond a quantile.

use crate::normal;

/// Below this many expected samples on its rarer side, a binomial is summed
/// exactly; above, its normal form is used (L-14).
const EXACT_BELOW: f64 = 100.0;

/// The number of samples out of `trials` that fall beyond a point that each
/// exceeds with probability `rare`, at most one half.
pub(crate) struct Exceedances {
    trials: u64,
    rare: f64,
}

/// How few and how many exceedances are just too extreme to be believed.
pub(crate) struct Extremes {
    /// The largest count k with P(K ≤ k) ≤ tail; `None` when even 0 is likelier.
    pub(crate) too_few: Option<u64>,
    /// The smallest count k with P(K ≥ k) ≤ tail, possibly beyond `trials`.
    pub(crate) too_many: u64,
}

impl Exceedances {
    pub(crate) fn new(trials: u64, rare: f64) -> Exceedances {
        debug_assert!(0.0 < rare && rare <= 0.5);
        Exceedances { trials, rare }
    }

    pub(crate) fn mean(&self) -> f64 {
        self.trials as f64 * self.rare
    }

    pub(crate) fn deviation(&self) -> f64 {
        (self.mean() * (1.0 - self.rare)).sqrt()
    }

    /// Whether exact sums are required (L-14) and cheap.
    pub(crate) fn is_small(&self) -> bool {
        self.mean() < EXACT_BELOW
    }

    /// The counts that bound the central part of the distribution, leaving at
    /// most `tail` on each side, by exact summation.
    pub(crate) fn extremes(&self, tail: f64) -> Extremes {
        let mut too_few = None;
        let mut cumulative = 0.0;
        for (count, probability) in (0..=self.trials).zip(self.probabilities()) {
            cumulative += probability;
            if cumulative <= tail {
                too_few = Some(count);
            }
            if 1.0 - cumulative <= tail {
                return Extremes {
                    too_few,
                    too_many: count + 1,
                };
            }
        }
        Extremes {
            too_few,
            too_many: self.trials + 1,
        }
    }

    /// P(K ≤ `count`): exact when small, else the normal form with continuity
    /// correction.
    pub(crate) fn at_most(&self, count: u64) -> f64 {
        if self.is_small() {
            self.probabilities()
                .take(count.min(self.trials) as usize + 1)
                .sum()
        } else {
            1.0 - normal::upper_tail((count as f64 + 0.5 - self.mean()) / self.deviation())
        }
    }

    /// P(K = 0), P(K = 1), …, each from the one before. The first one cannot
    /// underflow while the mean is small: (1 − p)ⁿ ≥ 4^(−np) for p ≤ ½.
    fn probabilities(&self) -> impl Iterator<Item = f64> + '_ {
        let odds = self.rare / (1.0 - self.rare);
        let none = (self.trials as f64 * (-self.rare).ln_1p()).exp();
        (0..=self.trials).scan(none, move |next, count| {
            let current = *next;
            *next *= (self.trials - count) as f64 / (count + 1) as f64 * odds;
            Some(current)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_coins_are_all_heads_once_in_64() {
        let coins = Exceedances::new(6, 0.5);
        assert!((coins.at_most(0) - 1.0 / 64.0).abs() < 1e-15);
        assert!((coins.at_most(6) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn exact_and_normal_forms_meet_where_one_takes_over() {
        let (exact, normal) = (Exceedances::new(199, 0.5), Exceedances::new(200, 0.5));
        assert!(exact.is_small() && !normal.is_small());
        for count in [80, 90, 100] {
            let between = exact.at_most(count) / 2.0 + exact.at_most(count - 1) / 2.0;
            assert!((between - normal.at_most(count)).abs() < 2e-4, "{count}");
        }
    }

    #[test]
    fn a_tail_thinner_than_every_outcome_leaves_no_extreme_count() {
        let found = Exceedances::new(4, 0.5).extremes(0.05);
        assert_eq!((found.too_few, found.too_many), (None, 5));
    }
}
