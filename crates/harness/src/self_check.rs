//! Whether the generator did what it was to do, and whether what it measured
//! stood still: L-7, L-10, L-12.
//!
//! Most of what is found here is a warning and not a gate: an ordinary machine
//! has some of it in many trials, and medians over blocks bear it. How the
//! thresholds were calibrated is written in docs/method.md.

mod clients;

use plumbline_experiment::{Arrival, Limit, Workload};
use plumbline_record::{ArrivalCheck, GateFailure, Histogram, LoadResult, Warning};
use plumbline_stats::arrivals::ANDERSON_DARLING_1_PERCENT;
use plumbline_stats::stationarity::{ChangePoint, change_point};

use crate::thresholds::Thresholds;

/// How often chance may be taken for a change of level.
const CHANGE_P_VALUE: f64 = 0.01;

/// What in a load is to be distrusted: how it was sent (L-7), how busy the
/// sender was (L-12), and whether the latency stood still (L-10).
pub fn warnings(workload: &Workload, load: &LoadResult, limits: &Thresholds) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = Vec::new();
    if workload.kind.is_answered() {
        warnings.extend(arrivals(load, limits));
        warnings.extend(busy(load, limits).map(|share| Warning::GeneratorBusy { share }));
        warnings.extend(clients::apart(load));
    }
    warnings.extend(
        level(load, limits.level_warning).map(|change| Warning::LevelChanged {
            at: change.at,
            before_ns: change.before as u64,
            after_ns: change.after as u64,
        }),
    );
    warnings
}

/// The verdict that a figure is the generator's and not the network's: at a held
/// rate it sent too late by itself (D2), or less than was due although nothing
/// held it back but itself (D3). `None` in bulk and in a closed loop, whose rate
/// says how fast both are together.
pub fn was_the_limit(
    workload: &Workload,
    load: &LoadResult,
    limits: &Thresholds,
) -> Option<Warning> {
    load.arrival.rate()?;
    if !workload.kind.is_answered() {
        return None;
    }
    let unsent = load.planned.saturating_sub(load.sent);
    let too_few = unsent as f64 > limits.rate_deviation * load.planned as f64;
    let is_limit = send_lag(load, limits).is_some() || (too_few && by_itself(load, limits));
    is_limit.then(|| Warning::GeneratorWasTheLimit {
        sent_share: load.sent as f64 / load.planned.max(1) as f64,
        lag_ns: load.generator_lag.value_at(0.90),
        busy_share: load.busiest_thread(),
    })
}

/// L-10: two levels that far apart are two measurements, not one.
pub(crate) fn no_steady_state(load: &LoadResult, limits: &Thresholds) -> Option<GateFailure> {
    level(load, limits.level_gate).map(|change| GateFailure::NoSteadyState {
        at: change.at,
        before_ns: change.before as u64,
        after_ns: change.after as u64,
    })
}

/// How late requests may be sent beside a load of some latency, nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LagLimits {
    /// By quantile, for a trial to count.
    to_count: [(f64, u64); 2],
    /// For its p99 to count, and the p99 that this is a share of.
    tail_ns: u64,
    tail_latency_ns: u64,
}

impl LagLimits {
    /// D2, per percentile: the median lag must not move the median latency, nor
    /// one request in ten be later by the generator than by the path. Where nothing was
    /// answered, only what is always allowed is.
    pub(crate) fn new(latency: &Histogram, limits: &Thresholds) -> Self {
        let at = |quantile| limits.lag_limit_ns(latency, quantile);
        Self {
            to_count: [0.50, 0.90].map(|quantile| (quantile, at(quantile))),
            tail_ns: at(0.99),
            tail_latency_ns: latency.value_at(0.99),
        }
    }

    /// Whether a load was sent later than it may have been.
    pub(crate) fn late(&self, load: &LoadResult) -> Option<GateFailure> {
        self.to_count.into_iter().find_map(|(quantile, limit_ns)| {
            let lag_ns = load.generator_lag.value_at(quantile);
            (lag_ns > limit_ns).then_some(GateFailure::SendLag {
                quantile,
                lag_ns,
                limit_ns,
            })
        })
    }

    /// D2, below what voids a trial: the upper percentiles are the generator's own
    /// lateness, the median and the costs are not.
    pub(crate) fn late_tail(&self, load: &LoadResult) -> Option<Warning> {
        let lag_ns = load.generator_lag.value_at(0.99);
        (lag_ns > self.tail_ns).then_some(Warning::TailLag {
            lag_ns,
            latency_ns: self.tail_latency_ns,
        })
    }
}

/// D2, by the load's own latency, if it has one.
pub(crate) fn send_lag(load: &LoadResult, limits: &Thresholds) -> Option<GateFailure> {
    if load.latency.is_empty() {
        return None;
    }
    LagLimits::new(&load.latency, limits).late(load)
}

/// Which of its own checks the generator fails in a trial of a search: a limit
/// that breaks then may have been broken by the generator.
pub(crate) fn generator(limit: Limit, load: &LoadResult, limits: &Thresholds) -> Vec<GateFailure> {
    let mut failures: Vec<GateFailure> = send_lag(load, limits).into_iter().collect();
    failures.extend(kept_back(load, limits));
    failures.extend(limited_lag(limit, load, limits));
    failures.extend(generator_busy(load, limits));
    failures
}

/// Whether what was not sent is the sender's own doing. Where requests waited
/// for connections, the answers were slow, unless the sender had no time to
/// read them: in a backlog every request waits.
fn by_itself(load: &LoadResult, limits: &Thresholds) -> bool {
    let unsent = load.planned.saturating_sub(load.sent);
    load.waited_for_connection <= unsent.min(load.sent / 2)
        || load.busiest_thread() > limits.saturated_share
}

/// D3 without a margin, for a search goes closer than that: most of what was
/// lost was never sent, although nothing else was in the way.
fn kept_back(load: &LoadResult, limits: &Thresholds) -> Option<GateFailure> {
    let unsent = load.planned.saturating_sub(load.sent);
    let lost = load.planned.saturating_sub(load.completed);
    let ours = unsent * 2 > lost && by_itself(load, limits);
    ours.then_some(GateFailure::AchievedRate {
        planned: load.planned,
        achieved: load.sent,
    })
}

/// D2 at the percentile that is limited, without a floor: the generator's
/// lateness makes up half of what was to stay below the limit.
fn limited_lag(limit: Limit, load: &LoadResult, limits: &Thresholds) -> Option<GateFailure> {
    let Limit::Latency { quantile, .. } = limit else {
        return None;
    };
    // Of no answer there is no latency to be a share of: the load misses its limit anyway.
    if load.latency.is_empty() {
        return None;
    }
    let lag_ns = load.generator_lag.value_at(quantile);
    let limit_ns = (load.latency.value_at(quantile) as f64 * limits.tail_lag_share) as u64;
    (lag_ns > limit_ns).then_some(GateFailure::SendLag {
        quantile,
        lag_ns,
        limit_ns,
    })
}

/// L-12, for searches: a thread without time to spare sends late and reads late.
fn generator_busy(load: &LoadResult, limits: &Thresholds) -> Option<GateFailure> {
    busy(load, limits).map(|share| GateFailure::GeneratorBusy {
        share,
        limit: limits.busy_share,
    })
}

/// L-7: the gaps between real sends, by significance and by size. Either alone
/// misleads: many gaps make any grain significant, few make any distance.
fn arrivals(load: &LoadResult, limits: &Thresholds) -> Option<Warning> {
    let check = load.arrivals?;
    let waited_share = load.waited_for_connection as f64 / load.planned.max(1) as f64;
    match (load.arrival, check) {
        (
            Arrival::Poisson { .. },
            ArrivalCheck {
                anderson_darling: Some(statistic),
                distance: Some(distance),
                ..
            },
        ) => {
            let differs =
                statistic > 2.0 * ANDERSON_DARLING_1_PERCENT && distance > limits.arrival_distance;
            differs.then_some(Warning::ArrivalsDistorted {
                distance,
                waited_share,
            })
        }
        (Arrival::Constant { .. }, check) => {
            let limit_ns = limits.lag_limit_ns(&load.latency, 0.99);
            (check.gap_error_p99_ns > limit_ns).then_some(Warning::UnevenGaps {
                error_ns: check.gap_error_p99_ns,
                waited_share,
            })
        }
        _ => None,
    }
}

/// L-12. A closed loop is as fast as it can be: busy is what it is to be.
fn busy(load: &LoadResult, limits: &Thresholds) -> Option<f64> {
    let share = load.busiest_thread();
    (load.arrival.rate().is_some() && share > limits.busy_share).then_some(share)
}

/// A change of the median latency inside the window that is no chance, and
/// larger than `factor`.
fn level(load: &LoadResult, factor: f64) -> Option<ChangePoint> {
    let slices: Vec<f64> = load.slice_p50_ns.iter().map(|&ns| ns as f64).collect();
    change_point(&slices)
        .filter(|change| change.p_value < CHANGE_P_VALUE && change.factor() > factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted::{healthy, workload};

    /// The warnings after `plant` has changed a healthy load.
    fn found(plant: impl FnOnce(&mut LoadResult)) -> Vec<Warning> {
        let mut load = healthy().load.load;
        plant(&mut load);
        let workload = Workload {
            arrival: load.arrival,
            ..workload()
        };
        warnings(&workload, &load, &Thresholds::default())
    }

    fn check(anderson_darling: f64, distance: f64) -> Option<ArrivalCheck> {
        Some(ArrivalCheck {
            gaps: 5_000,
            gap_error_p99_ns: 400,
            anderson_darling: Some(anderson_darling),
            distance: Some(distance),
        })
    }

    /// Two levels, with a ripple that makes neighbours differ.
    fn levels(before: u64, after: u64) -> Vec<u64> {
        (0..100)
            .map(|i| (if i < 60 { before } else { after }) + i * 37 % 11)
            .collect()
    }

    #[test]
    fn a_healthy_load_gives_no_warning() {
        assert_eq!(found(|load| load.arrivals = check(1.0, 0.01)), []);
        assert_eq!(found(|load| load.slice_p50_ns = vec![60_000; 100]), []);
    }

    #[test]
    fn requests_in_bursts_are_no_poisson_arrivals() {
        let bursts = found(|load| load.arrivals = check(900.0, 0.6));
        assert_eq!(
            bursts,
            [Warning::ArrivalsDistorted {
                distance: 0.6,
                waited_share: 0.0
            }]
        );
        // Significant but small, and large but not significant.
        assert_eq!(found(|load| load.arrivals = check(900.0, 0.02)), []);
        assert_eq!(found(|load| load.arrivals = check(2.0, 0.6)), []);
    }

    #[test]
    fn equal_gaps_that_are_not_equal_are_told() {
        let uneven = |error_ns| {
            found(|load| {
                load.arrival = Arrival::Constant { rate: 10_000.0 };
                load.arrivals = Some(ArrivalCheck {
                    gaps: 5_000,
                    gap_error_p99_ns: error_ns,
                    anderson_darling: None,
                    distance: None,
                });
            })
        };
        assert_eq!(uneven(50_000), []);
        assert!(
            matches!(
                uneven(300_000)[..],
                [Warning::UnevenGaps {
                    error_ns: 300_000,
                    ..
                }]
            ),
            "{:?}",
            uneven(300_000)
        );
    }

    #[test]
    fn a_busy_sender_is_told_but_not_for_what_it_spins() {
        let busy = found(|load| load.busiest_thread_ns = load.window_ns * 9 / 10);
        assert_eq!(busy, [Warning::GeneratorBusy { share: 0.9 }]);
        assert_eq!(
            found(|load| load.busiest_thread_ns = load.window_ns / 2),
            []
        );
        let closed = found(|load| {
            load.arrival = Arrival::Closed;
            load.busiest_thread_ns = load.window_ns;
        });
        assert_eq!(closed, []);
    }

    #[test]
    fn a_generator_that_is_the_limit_is_told_aloud() {
        let verdict = |plant: fn(&mut LoadResult)| {
            let mut load = healthy().load.load;
            plant(&mut load);
            was_the_limit(&workload(), &load, &Thresholds::default())
        };
        assert_eq!(verdict(|_| ()), None);
        let late = |load: &mut LoadResult| {
            load.generator_lag = crate::planted::histogram([400_000; 5000]);
        };
        let said = verdict(late).unwrap();
        let is_late = matches!(
            said,
            Warning::GeneratorWasTheLimit { lag_ns, .. } if (399_500..400_500).contains(&lag_ns)
        );
        assert!(is_late, "{said:?}");
        // Where nothing was answered there is nothing to be late for.
        let unanswered = |load: &mut LoadResult| {
            load.generator_lag = crate::planted::histogram([400_000; 5000]);
            load.latency = Histogram::new();
        };
        assert_eq!(verdict(unanswered), None);
        let few = |load: &mut LoadResult| load.sent = 4_000;
        let said = verdict(few).unwrap();
        let has_sent_few = matches!(
            said,
            Warning::GeneratorWasTheLimit { sent_share, .. } if (0.795..0.805).contains(&sent_share)
        );
        assert!(has_sent_few, "{said:?}");
        // The answers were slow, and no connection was free for more.
        let slow = |load: &mut LoadResult| {
            (load.sent, load.waited_for_connection) = (4_000, 4_500);
        };
        assert_eq!(verdict(slow), None);
        let far_too_slow = |load: &mut LoadResult| {
            (load.sent, load.waited_for_connection) = (1_000, 1_000);
        };
        assert_eq!(verdict(far_too_slow), None);
        // They were there, but nobody read them.
        let swamped = |load: &mut LoadResult| {
            (load.sent, load.waited_for_connection) = (4_000, 4_500);
            load.busiest_thread_ns = load.window_ns * 99 / 100;
        };
        assert!(verdict(swamped).is_some());
        let closed = |load: &mut LoadResult| {
            load.arrival = Arrival::Closed;
            load.sent = 4_000;
        };
        assert_eq!(verdict(closed), None);
    }

    #[test]
    fn a_change_of_level_inside_the_window_is_told_and_a_large_one_voids() {
        let limits = Thresholds::default();
        let planted = |before, after| {
            let mut load = healthy().load.load;
            load.slice_p50_ns = levels(before, after);
            (
                warnings(&workload(), &load, &limits),
                no_steady_state(&load, &limits),
            )
        };
        assert_eq!(planted(60_000, 66_000), (vec![], None));
        let (warned, voided) = planted(60_000, 90_000);
        assert!(
            matches!(warned[..], [Warning::LevelChanged { at: 0.6, .. }]),
            "{warned:?}"
        );
        assert_eq!(voided, None);
        for (before, after) in [(60_000, 180_000), (180_000, 60_000)] {
            let voided = planted(before, after).1;
            assert!(
                matches!(voided, Some(GateFailure::NoSteadyState { at: 0.6, .. })),
                "{voided:?}"
            );
        }
    }
}
