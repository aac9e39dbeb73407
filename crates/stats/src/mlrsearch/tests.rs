//! The classification table, and searches over simulated systems whose limit
//! is known. Everything is seeded.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::*;

const LIMIT: f64 = 100_000.0;

const RANGE: Bounds = Bounds {
    least: 1_000.0,
    most: 5_000_000.0,
    time_limit: 3_600.0,
};

fn trial(load: f64, duration: f64, loss_ratio: f64) -> LoadTrial {
    LoadTrial {
        load,
        duration,
        loss_ratio,
        missed: false,
        forwarding_rate: load * (1.0 - loss_ratio),
        generator_limited: false,
    }
}

/// A system that carries `limit` per second and loses the rest.
fn hard_limit(limit: f64) -> impl FnMut(f64, f64) -> LoadTrial {
    move |load, duration| trial(load, duration, (1.0 - limit / load).max(0.0))
}

/// Drives a search to its end and counts its trials.
fn drive(
    goal: Goal,
    range: Bounds,
    mut system: impl FnMut(f64, f64) -> LoadTrial,
) -> (Outcome, LoadSearch) {
    let mut search = LoadSearch::new(goal, range).unwrap();
    for _ in 0..10_000 {
        match search.next() {
            NextStep::Measure {
                load,
                duration,
                purpose,
            } => search.observe(purpose, system(load, duration)),
            NextStep::Done(outcome) => return (outcome, search),
        }
    }
    panic!("the search does not end");
}

#[track_caller]
fn found(goal: Goal, system: impl FnMut(f64, f64) -> LoadTrial) -> (SearchResult, LoadSearch) {
    match drive(goal, RANGE, system) {
        (Outcome::Found(found), search) => (found, search),
        (other, _) => panic!("{other:?}"),
    }
}

#[test]
fn a_load_is_classified_by_the_formulas_of_the_draft() {
    use Class::{Lower, Undecided, Upper};
    // (L, H, l, h), S, e.
    let cases = [
        ((0.0, 0.0, 0.0, 0.0), 21.0, 0.5, Undecided),
        // 11 of 21 decide: 10 that go wrong still leave more than half.
        ((10.0, 0.0, 0.0, 0.0), 21.0, 0.5, Undecided),
        ((11.0, 0.0, 0.0, 0.0), 21.0, 0.5, Lower),
        ((0.0, 10.0, 0.0, 0.0), 21.0, 0.5, Undecided),
        ((0.0, 11.0, 0.0, 0.0), 21.0, 0.5, Upper),
        ((10.0, 10.0, 0.0, 0.0), 21.0, 0.5, Undecided),
        ((11.0, 10.0, 0.0, 0.0), 21.0, 0.5, Lower),
        // Exactly the exceed ratio is allowed.
        ((11.0, 11.0, 0.0, 0.0), 21.0, 0.5, Lower),
        ((15.0, 16.0, 0.0, 0.0), 21.0, 0.5, Upper),
        // Short good trials never make a lower bound; short bad ones may make
        // an upper bound, as far as no short good ones balance them.
        ((0.0, 0.0, 99.0, 0.0), 21.0, 0.5, Undecided),
        ((0.0, 0.0, 0.0, 11.0), 21.0, 0.5, Upper),
        ((0.0, 0.0, 1.0, 11.0), 21.0, 0.5, Undecided),
        ((0.0, 6.0, 5.0, 10.0), 21.0, 0.5, Upper),
        // e/(1 − e) is a third for a quarter.
        ((0.0, 0.0, 3.0, 6.5), 20.0, 0.25, Upper),
        ((0.0, 0.0, 6.0, 6.5), 20.0, 0.25, Undecided),
        // RFC 2544: one good trial is a lower bound, one bad one an upper.
        ((60.0, 0.0, 0.0, 0.0), 60.0, 0.0, Lower),
        ((0.0, 60.0, 0.0, 0.0), 60.0, 0.0, Upper),
        ((60.0, 60.0, 0.0, 0.0), 60.0, 0.0, Upper),
        ((0.0, 0.0, 30.0, 1.0), 60.0, 0.0, Upper),
    ];
    for ((full_good, full_bad, short_good, short_bad), sum, exceed, class) in cases {
        let evidence = Evidence {
            full_good,
            full_bad,
            short_good,
            short_bad,
        };
        assert_eq!(
            evidence.class(sum, exceed),
            class,
            "{evidence:?} {sum} {exceed}"
        );
    }
}

#[test]
fn a_hard_limit_lies_between_the_bounds() {
    for limit in [1_500.0, 12_345.0, LIMIT, 4_000_000.0] {
        let (found, search) = found(Goal::NDR, hard_limit(limit));
        let upper = found.upper.unwrap();
        assert!(found.lower <= limit && limit < upper, "{found:?}");
        assert!(
            (upper - found.lower) / upper <= Goal::NDR.width,
            "{found:?}"
        );
        assert_eq!(found.conditional_throughput, found.lower);
        assert!(!found.generator_limited);
        assert!(search.trials().len() < 150, "{}", search.trials().len());
    }
}

#[test]
fn an_allowed_loss_is_not_taken_for_throughput() {
    let (found, _) = found(Goal::PDR, hard_limit(LIMIT));
    assert!(found.lower > LIMIT && found.upper.unwrap() > found.lower);
    let throughput = found.conditional_throughput;
    assert!((throughput / LIMIT - 1.0).abs() < 1e-9, "{throughput}");
}

#[test]
fn a_noisy_limit_is_bracketed() {
    // The limit of each trial is spread by 2 %, evenly: half of the trials at
    // the true limit hold.
    for seed in 0..40 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (found, search) = found(Goal::NDR, move |load, duration| {
            let limit = LIMIT * (1.0 + 0.02 * (2.0 * rng.random::<f64>() - 1.0));
            trial(load, duration, (1.0 - limit / load).max(0.0))
        });
        // 21 trials know the half to ±22 % of a spread of ±2 %.
        let upper = found.upper.unwrap();
        assert!(
            found.lower < LIMIT * 1.01 && upper > LIMIT * 0.99,
            "{seed}: {found:?}"
        );
        assert!(
            (upper - found.lower) / upper <= Goal::NDR.width,
            "{seed}: {found:?}"
        );
        assert!(
            search.trials().len() < 400,
            "{seed}: {}",
            search.trials().len()
        );
    }
}

#[test]
fn bursts_of_noise_do_not_decide() {
    // One trial in five loses, whatever the load, in bursts of up to three.
    for seed in 0..40 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut burst = 0;
        let system = move |load: f64, duration: f64| {
            if burst > 0 {
                burst -= 1;
                return trial(load, duration, 0.3);
            }
            burst = if rng.random::<f64>() < 0.12 {
                rng.random_range(0..3)
            } else {
                0
            };
            trial(load, duration, (1.0 - LIMIT / load).max(0.0))
        };
        match drive(Goal::NDR, RANGE, system).0 {
            Outcome::Found(found) => {
                let near = found.lower <= LIMIT && found.lower >= LIMIT * 0.99;
                assert!(near, "{seed}: {found:?}");
            }
            // Bursts in a row at the very start or in the floor test.
            Outcome::BrokenPath | Outcome::Unfit { .. } => {}
            other => panic!("{seed}: {other:?}"),
        }
    }
}

#[test]
fn a_single_burst_anywhere_changes_nothing() {
    let (quiet, search) = found(Goal::NDR, hard_limit(LIMIT));
    for burst in 0..search.trials().len() {
        let mut count = 0;
        let (found, _) = found(Goal::NDR, |load, duration| {
            count += 1;
            if count - 1 == burst {
                return trial(load, duration, 0.5);
            }
            trial(load, duration, (1.0 - LIMIT / load).max(0.0))
        });
        let off = (found.conditional_throughput / quiet.conditional_throughput - 1.0).abs();
        assert!(off <= Goal::NDR.width, "burst at {burst}: {found:?}");
    }
}

#[test]
fn one_bad_trial_decides_under_rfc_2544() {
    // The preset that the draft warns of: the noise of one trial is believed.
    let mut burst = false;
    let (found, _) = found(Goal::RFC_2544, |load, duration| {
        let good = trial(load, duration, (1.0 - LIMIT / load).max(0.0));
        if duration == 60.0 && good.loss_ratio == 0.0 && !burst {
            burst = true;
            return trial(load, duration, 0.1);
        }
        good
    });
    assert!(burst);
    assert!(found.upper.unwrap() < LIMIT, "{found:?}");
}

#[test]
fn trials_that_contradict_each_other_end_the_search_all_the_same() {
    // The more load, the better: no load is ever a limit in the usual sense.
    let (outcome, _) = drive(Goal::NDR, RANGE, |load, duration| {
        let odd = load > 3_000.0 && load < 50_000.0;
        trial(load, duration, if odd { 0.2 } else { 0.0 })
    });
    let Outcome::Found(found) = outcome else {
        panic!("{outcome:?}");
    };
    // The relevant upper bound is the lowest one.
    assert!(found.lower <= 3_000.0, "{found:?}");

    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let (outcome, search) = drive(Goal::NDR, RANGE, |load, duration| {
        let lost = load > 2_000.0 && rng.random();
        trial(load, duration, if lost { 0.1 } else { 0.0 })
    });
    assert!(!matches!(outcome, Outcome::OutOfTime), "{outcome:?}");
    assert!(search.trials().len() < 2_000);
}

#[test]
fn what_always_fails_is_a_broken_path_after_three_trials() {
    let (outcome, search) = drive(Goal::PDR, RANGE, |load, duration| {
        trial(load, duration, 0.4)
    });
    assert_eq!(outcome, Outcome::BrokenPath);
    assert_eq!(search.trials().len(), 3);
}

#[test]
fn a_path_that_loses_at_low_load_is_unfit() {
    // One request in ten thousand: within the goal, and yet no way to measure.
    let (outcome, _) = drive(Goal::PDR, RANGE, |load, duration| {
        trial(load, duration, (1.0 - LIMIT / load).max(1e-4))
    });
    let Outcome::Unfit { load } = outcome else {
        panic!("{outcome:?}");
    };
    assert!((0.01..0.1).contains(&(load / LIMIT)), "{load}");
}

#[test]
fn a_limit_above_the_range_has_no_upper_bound() {
    let (found, search) = found(Goal::NDR, hard_limit(f64::INFINITY));
    assert_eq!((found.lower, found.upper), (RANGE.most, None));
    assert!(!found.generator_limited);
    assert!(search.trials().len() < 60, "{}", search.trials().len());
}

#[test]
fn a_broken_limit_of_latency_counts_as_a_loss() {
    let (found, _) = found(Goal::NDR, |load, duration| LoadTrial {
        missed: load > 77_000.0,
        ..trial(load, duration, 0.0)
    });
    assert!(found.lower <= 77_000.0 && found.upper.unwrap() > 77_000.0);
}

#[test]
fn misses_of_the_generator_are_said_aloud() {
    let limited = |share: u32| {
        let mut count = 0;
        found(Goal::NDR, move |load, duration| {
            count += 1;
            let mut trial = hard_limit(LIMIT)(load, duration);
            trial.generator_limited = trial.loss_ratio > 0.0 && count % 10 < share;
            trial
        })
        .0
        .generator_limited
    };
    assert!(limited(10));
    assert!(!limited(2));
}

#[test]
fn without_time_there_is_no_number() {
    let range = Bounds {
        time_limit: 30.0,
        ..RANGE
    };
    let (outcome, search) = drive(Goal::NDR, range, hard_limit(LIMIT));
    assert_eq!(outcome, Outcome::OutOfTime);
    let spent: f64 = search.trials().iter().map(|(_, t)| t.duration).sum();
    assert!(spent <= 30.0 + FLOOR_SECONDS);
}

#[test]
fn the_throughput_at_a_bound_is_that_of_its_quantile_trial() {
    let rates = [100.0, 99.0, 98.0, 97.0, 50.0];
    let trials: Vec<LoadTrial> = rates
        .iter()
        .map(|&rate| LoadTrial {
            forwarding_rate: rate,
            ..trial(100.0, 1.0, 0.0)
        })
        .collect();
    let goal = |duration_sum, exceed_ratio| Goal {
        duration_sum,
        exceed_ratio,
        ..Goal::NDR
    };
    assert_eq!(
        conditional_throughput(&goal(5.0, 0.5), 100.0, &trials),
        98.0
    );
    assert_eq!(
        conditional_throughput(&goal(5.0, 0.0), 100.0, &trials),
        50.0
    );
    assert_eq!(
        conditional_throughput(&goal(4.0, 0.8), 100.0, &trials),
        100.0
    );
    // What was never measured got nothing through.
    assert_eq!(
        conditional_throughput(&goal(20.0, 0.5), 100.0, &trials),
        0.0
    );
}

#[test]
fn requests_that_were_never_sent_are_lost_beyond_the_start() {
    assert_eq!(loss_ratio(1e6, 1_000_000, 1_000_000, 1_000_000), 0.0);
    // 10 µs at a million per second are 10 requests.
    assert_eq!(loss_ratio(1e6, 1_000_000, 999_990, 999_990), 0.0);
    assert_eq!(loss_ratio(1e6, 1_000_000, 999_890, 999_890), 1e-4);
    assert_eq!(loss_ratio(1e3, 1_000, 999, 999), 1e-3);
    assert_eq!(loss_ratio(1e3, 1_000, 1_000, 900), 0.1);
    assert_eq!(loss_ratio(1e3, 0, 0, 0), 1.0);
}

#[test]
fn a_goal_that_contradicts_itself_is_refused() {
    let refused = |goal| LoadSearch::new(goal, RANGE).unwrap_err();
    assert_eq!(
        refused(Goal {
            final_trial: 0.0,
            ..Goal::NDR
        }),
        SearchError::Durations
    );
    assert_eq!(
        refused(Goal {
            exceed_ratio: 1.0,
            ..Goal::NDR
        }),
        SearchError::Ratios
    );
    assert!(matches!(
        refused(Goal {
            width: 0.001,
            ..Goal::PDR
        }),
        SearchError::Width { .. }
    ));
    let empty = Bounds {
        least: 10.0,
        most: 10.0,
        ..RANGE
    };
    assert!(matches!(
        LoadSearch::new(Goal::NDR, empty),
        Err(SearchError::Range { .. })
    ));
}
