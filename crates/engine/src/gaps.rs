//! The gaps between requests as they were really sent (L-7).

use plumbline_experiment::Arrival;
use plumbline_record::ArrivalCheck;
use plumbline_stats::arrivals;

/// Gaps that one worker keeps. With more, the test would find any clock's
/// resolution.
const MOST: usize = 5_000;

/// A sample of the gaps, spread over the window, in memory that is allocated
/// before the load starts.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    /// Keeps one gap in this many; 0 keeps none.
    stride: u64,
    seen: u64,
    last: Option<(u64, u64)>,
    /// Between sends, nanoseconds.
    real: Vec<u64>,
    /// How much these differ from the intended gaps.
    errors: Vec<u64>,
}

impl Gaps {
    /// Room for the gaps of a worker that will send `expected` requests.
    pub(crate) fn sampling(expected: f64) -> Self {
        Self {
            stride: (expected / MOST as f64).ceil().max(1.0) as u64,
            real: Vec::with_capacity(MOST),
            errors: Vec::with_capacity(MOST),
            ..Self::default()
        }
    }

    /// A request of the window was sent.
    #[inline]
    pub(crate) fn sent(&mut self, intended: u64, sent: u64) {
        if self.stride == 0 {
            return;
        }
        self.seen += 1;
        if self.seen.is_multiple_of(self.stride)
            && self.real.len() < MOST
            && let Some((last_intended, last_sent)) = self.last
        {
            let real = sent.saturating_sub(last_sent);
            self.real.push(real);
            self.errors
                .push(real.abs_diff(intended.saturating_sub(last_intended)));
        }
        self.last = Some((intended, sent));
    }

    /// Adds the gaps of another worker of the same load.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.real.extend(&other.real);
        self.errors.extend(&other.errors);
    }

    /// Compares them with the schedule of a load with `workers` workers; `None`
    /// without a schedule, or when too little was sent.
    pub(crate) fn check(&self, arrival: Arrival, workers: usize) -> Option<ArrivalCheck> {
        let rate = arrival.rate()?;
        let mut errors = self.errors.clone();
        errors.sort_unstable();
        let last = errors.len().checked_sub(1)?;
        let thinned = self.real.len().div_ceil(MOST);
        let fit = match arrival {
            Arrival::Poisson { .. } => {
                let real: Vec<f64> = self
                    .real
                    .iter()
                    .step_by(thinned)
                    .map(|&gap| gap as f64)
                    .collect();
                arrivals::exponential_fit(&real, 1e9 * workers as f64 / rate)
            }
            _ => None,
        };
        Some(ArrivalCheck {
            gaps: errors.len() as u64,
            gap_error_p99_ns: errors[(last as f64 * 0.99) as usize],
            anderson_darling: fit.map(|fit| fit.anderson_darling),
            distance: fit.map(|fit| fit.distance),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Schedule;
    use crate::window::whole;

    /// Sends the first `requests` requests of a schedule, each as late as
    /// `late` says.
    fn check(arrival: Arrival, requests: u64, late: impl Fn(u64) -> u64) -> ArrivalCheck {
        let mut schedule = Schedule::new(arrival, 7, 0, 1, whole(1_000_000, 1, 0)).unwrap();
        let mut gaps = Gaps::sampling(requests as f64);
        for _ in 0..requests {
            let intended = schedule.next();
            gaps.sent(intended, late(intended));
            schedule.advance();
        }
        gaps.check(arrival, 1).unwrap()
    }

    const POISSON: Arrival = Arrival::Poisson { rate: 10_000.0 };

    #[test]
    fn a_punctual_sender_passes() {
        let check = check(POISSON, 20_000, |intended| intended + 300);
        assert!((4_990..=5_000).contains(&check.gaps), "{check:?}");
        assert_eq!(check.gap_error_p99_ns, 0);
        assert!(check.distance.unwrap() <= 0.025, "{check:?}");
        assert!(check.anderson_darling.unwrap() < arrivals::ANDERSON_DARLING_1_PERCENT);
    }

    #[test]
    fn a_sender_that_wakes_every_millisecond_is_seen() {
        // Everything due since the last tick goes out together.
        let tick = |intended: u64| intended.next_multiple_of(1_000_000);
        let check = check(POISSON, 5_000, tick);
        assert!(check.distance.unwrap() > 0.5, "{check:?}");
        assert!(check.gap_error_p99_ns > 100_000, "{check:?}");
    }

    #[test]
    fn equal_gaps_are_judged_by_their_error() {
        let constant = Arrival::Constant { rate: 10_000.0 };
        let punctual = check(constant, 1_000, |intended| intended + 5);
        assert_eq!((punctual.gap_error_p99_ns, punctual.distance), (0, None));
        let coarse = check(constant, 1_000, |at| at.next_multiple_of(64_000));
        assert!(coarse.gap_error_p99_ns > 20_000, "{coarse:?}");
    }

    #[test]
    fn a_closed_loop_has_no_schedule() {
        assert_eq!(Gaps::default().check(Arrival::Closed, 1), None);
        assert_eq!(Gaps::default().check(POISSON, 1), None);
    }
}
