//! Which share of the requests is followed: fewer where observing costs too much, as long as
//! that makes it cheaper.

use crate::account::MeanTime;

/// What observing may add to the median before fewer requests are followed.
const MOST_SHARE: f64 = 0.05;
/// Rounds from which a cost is known: chance alone is no reason, and an interval takes as many.
const ROUNDS: usize = 6;

/// One of so many requests is followed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampling {
    one_in: u64,
    /// Rounds in which that has been so.
    rounds: usize,
    /// What was followed before, and what observing cost then.
    before: Option<(u64, MeanTime)>,
    /// Whether following fewer made it no cheaper.
    is_settled: bool,
}

impl Sampling {
    pub(crate) fn new(one_in: u64) -> Self {
        Self {
            one_in,
            rounds: 0,
            before: None,
            is_settled: false,
        }
    }

    /// One of so many is to be followed in the next round.
    pub(crate) fn next(&self) -> u64 {
        self.one_in
    }

    /// One of so many was followed where it is known what that costs.
    pub(crate) fn found(&self) -> u64 {
        match self.before {
            Some((one_in, _)) if self.rounds == 0 => one_in,
            _ => self.one_in,
        }
    }

    /// Takes note of a round, before `left` others; `cost` says what observing adds to the
    /// median, as a share, while one of so many is followed.
    pub(crate) fn note_round(&mut self, left: usize, cost: impl Fn(u64) -> MeanTime) {
        self.rounds += 1;
        if self.is_settled || self.rounds < ROUNDS {
            return;
        }
        let here = cost(self.one_in);
        if let Some((one_in, before)) = self.before
            && !is_cheaper(here, before)
        {
            *self = Self {
                is_settled: true,
                ..Self::new(one_in)
            };
            return;
        }
        if here.ns > MOST_SHARE && here.is_different() && left >= ROUNDS {
            *self = Self {
                before: Some((self.one_in, here)),
                ..Self::new(self.one_in * 2)
            };
        }
    }
}

/// Whether it costs less than what it is held against is known to.
fn is_cheaper(here: MeanTime, before: MeanTime) -> bool {
    before.interval.is_some_and(|(low, _)| here.ns < low)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was followed in each of so many rounds, and what was found, where observing costs
    /// this much.
    fn followed(rounds: usize, cost: fn(u64) -> f64) -> (Vec<u64>, u64) {
        let mut sampling = Sampling::new(8);
        let mean = |one_in| {
            let ns = cost(one_in);
            MeanTime {
                ns,
                interval: Some((ns * 0.9, ns * 1.1)),
            }
        };
        let round = |at| {
            let one_in = sampling.next();
            sampling.note_round(rounds - at - 1, mean);
            one_in
        };
        let all = (0..rounds).map(round).collect();
        (all, sampling.found())
    }

    #[test]
    fn fewer_are_followed_until_that_is_cheap_enough() {
        let (all, found) = followed(24, |one_in| 1.2 / one_in as f64);
        assert_eq!(found, 32);
        assert_eq!((all[5], all[6], all[11], all[12]), (8, 16, 16, 32));
        assert_eq!(all[23], 32);
    }

    #[test]
    fn what_makes_it_no_cheaper_is_taken_back_and_not_tried_again() {
        let (all, found) = followed(24, |_| 0.08);
        assert_eq!(found, 8);
        let expected = [[8; 6], [16; 6], [8; 6], [8; 6]].concat();
        assert_eq!(all, expected);
    }

    #[test]
    fn what_is_cheap_stays_and_so_does_what_is_learnt_too_late() {
        assert_eq!(followed(24, |_| 0.04), (vec![8; 24], 8));
        assert_eq!(followed(11, |_| 0.08), (vec![8; 11], 8));
    }

    #[test]
    fn a_share_that_was_followed_in_no_round_is_not_what_was_found() {
        let mut sampling = Sampling::new(8);
        let dear = MeanTime {
            ns: 0.2,
            interval: Some((0.1, 0.3)),
        };
        for _ in 0..ROUNDS {
            sampling.note_round(ROUNDS, |_| dear);
        }
        assert_eq!((sampling.next(), sampling.found()), (16, 8));
    }
}
