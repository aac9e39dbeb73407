//! Searches over made-up loads.

use plumbline_record::{ErrorCounts, GateFailure, Histogram, LoadResult};

use super::*;
use crate::planted::{healthy, histogram};

const CAPACITY: f64 = 20_000.0;

/// A path that answers `CAPACITY` per second at 60 µs; what is beyond waits.
fn overloadable(step: &SearchStep) -> LoadResult {
    let seconds = step.measure.as_secs_f64();
    let planned = (step.rate * seconds) as u64;
    let in_time = (CAPACITY * (seconds + step.drain.as_secs_f64())) as u64;
    let completed = planned.min(in_time);
    let backlog_ns = ((step.rate / CAPACITY - 1.0).max(0.0) * seconds * 1e9) as u64;
    LoadResult {
        planned,
        sent: planned,
        completed,
        censored: planned - completed,
        latency: histogram((0..1000).map(|i| 60_000 + backlog_ns * i / 1000)),
        ..healthy().load.load
    }
}

fn plan(limit: &str) -> SearchPlan {
    SearchPlan::new(limit.parse().unwrap(), 1e6)
}

#[track_caller]
fn search(plan: &SearchPlan, mut measure: impl FnMut(&SearchStep) -> LoadResult) -> Searched {
    let mut seen = 0;
    let searched = find_max::<String>(
        plan,
        &Thresholds::default(),
        &mut |step| {
            Ok(Some(SearchedLoad {
                load: measure(step),
                disturbed: Vec::new(),
            }))
        },
        &mut |_| seen += 1,
    )
    .unwrap();
    assert_eq!(seen, searched.trials.len());
    searched
}

#[track_caller]
fn found(searched: &Searched) -> (f64, f64, f64, bool) {
    match searched.outcome {
        SearchOutcome::Found {
            lower_bound,
            upper_bound: Some(upper_bound),
            conditional_throughput,
            generator_limited,
        } => (
            lower_bound,
            upper_bound,
            conditional_throughput,
            generator_limited,
        ),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_backlog_is_a_loss_and_costs_at_most_a_hundredth() {
    let searched = search(&plan("loss=0"), overloadable);
    let (lower, upper, throughput, generator) = found(&searched);
    assert!(
        lower >= CAPACITY && upper <= CAPACITY * 1.02,
        "{lower} {upper}"
    );
    assert!((throughput / CAPACITY - 1.0).abs() < 0.02);
    assert!(!generator);
}

#[test]
fn a_limit_of_latency_is_found_below_the_capacity() {
    // 1 ms of backlog after a second is a thousandth above the capacity.
    let searched = search(&plan("p99<1ms"), overloadable);
    let (lower, upper, _, generator) = found(&searched);
    assert!(
        lower <= CAPACITY * 1.001 && upper > CAPACITY,
        "{lower} {upper}"
    );
    assert!(!generator);
}

#[test]
fn a_late_generator_is_named_as_the_limit() {
    let searched = search(&plan("p99<1ms"), |step| {
        let mut load = overloadable(step);
        load.generator_lag = load.latency.clone();
        load
    });
    assert!(found(&searched).3);
    let miss = searched.trials.iter().find(|trial| !trial.held).unwrap();
    assert!(
        matches!(miss.generator[0], GateFailure::SendLag { .. }),
        "{:?}",
        miss.generator
    );
}

#[test]
fn a_generator_that_cannot_send_lowers_the_answer_and_says_so() {
    let searched = search(&plan("loss=0"), |step| {
        let mut load = overloadable(step);
        load.sent = load
            .planned
            .min((5_000.0 * step.measure.as_secs_f64()) as u64);
        load.completed = load.completed.min(load.sent);
        load
    });
    let (lower, upper, throughput, generator) = found(&searched);
    assert!(
        lower <= 5_010.0 && throughput <= 5_010.0,
        "{lower} {throughput}"
    );
    assert!(upper > lower && generator);
}

#[test]
fn requests_that_wait_for_slow_answers_are_not_the_generators_fault() {
    let searched = search(&plan("loss=0"), |step| {
        let mut load = overloadable(step);
        load.sent = load.completed;
        load.waited_for_connection = load.planned / 2;
        load
    });
    assert!(!found(&searched).3);
}

#[test]
fn disturbed_trials_are_kept_and_decide_nothing() {
    let by = GateFailure::Disturbed {
        by: "other-load".to_owned(),
        amount: 0.6,
        limit: 0.15,
    };
    let quiet = search(&plan("loss=0"), overloadable);
    // Every sixth trial is disturbed, and loses half.
    let disturbed = find_max::<String>(
        &plan("loss=0"),
        &Thresholds::default(),
        &mut |step| {
            let mut load = overloadable(step);
            let is_disturbed = step.index % 6 == 5;
            if is_disturbed {
                load.completed /= 2;
            }
            Ok(Some(SearchedLoad {
                load,
                disturbed: is_disturbed.then(|| by.clone()).into_iter().collect(),
            }))
        },
        &mut |_| (),
    )
    .unwrap();
    assert_eq!(disturbed.outcome, quiet.outcome);
    assert!(disturbed.trials.len() > quiet.trials.len());
    assert!(
        disturbed
            .trials
            .iter()
            .any(|trial| trial.disturbed == [by.clone()])
    );
}

#[test]
fn a_machine_that_is_never_left_alone_does_not_search_for_ever() {
    let quiet = search(&plan("loss=0"), overloadable);
    let by = GateFailure::Disturbed {
        by: "other-load".to_owned(),
        amount: 0.6,
        limit: 0.15,
    };
    let disturbed = find_max::<String>(
        &plan("loss=0"),
        &Thresholds::default(),
        &mut |step| {
            Ok(Some(SearchedLoad {
                load: overloadable(step),
                disturbed: vec![by.clone()],
            }))
        },
        &mut |_| (),
    )
    .unwrap();
    assert_eq!(disturbed.outcome, quiet.outcome);
    let (least, trials) = (quiet.trials.len(), disturbed.trials.len());
    assert!(
        trials > least && trials <= least + least / 4 + 3,
        "{trials} {least}"
    );
}

#[test]
fn an_error_misses_a_limit_of_latency() {
    let searched = search(&plan("p99<1ms"), |step| {
        let mut load = overloadable(step);
        if step.rate > 8_000.0 {
            load.errors = ErrorCounts {
                closed: 1,
                ..ErrorCounts::default()
            };
            load.completed -= 1;
        }
        load
    });
    let (lower, upper, ..) = found(&searched);
    assert!(lower <= 8_000.0 && upper > 8_000.0, "{lower} {upper}");
}

#[test]
fn a_path_without_answers_is_broken() {
    let searched = search(&plan("loss<0.5%"), |step| LoadResult {
        completed: 0,
        latency: Histogram::new(),
        ..overloadable(step)
    });
    assert_eq!(searched.outcome, SearchOutcome::BrokenPath);
    assert_eq!(drain(plan("loss=0").limit, &searched.trials), MOST_DRAIN);
}

#[test]
fn an_interrupted_search_keeps_its_trials_and_gives_no_number() {
    let searched = find_max::<String>(
        &plan("loss=0"),
        &Thresholds::default(),
        &mut |step| {
            let searched = SearchedLoad {
                load: overloadable(step),
                disturbed: Vec::new(),
            };
            Ok((step.index < 3).then_some(searched))
        },
        &mut |_| (),
    )
    .unwrap();
    assert_eq!(searched.outcome, SearchOutcome::Interrupted);
    assert_eq!(searched.trials.len(), 3);
}

#[test]
fn a_trial_that_fails_does_not_take_the_others_with_it() {
    let error = find_max(
        &plan("loss=0"),
        &Thresholds::default(),
        &mut |step| match step.index {
            3 => Err("the server has gone".to_owned()),
            _ => Ok(Some(SearchedLoad {
                load: overloadable(step),
                disturbed: Vec::new(),
            })),
        },
        &mut |_| (),
    )
    .unwrap_err();
    assert_eq!(error.to_string(), "the server has gone");
    let FindMaxError::Trial { trials, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(trials.len(), 3);
}

#[test]
fn a_path_that_loses_at_little_load_keeps_the_trial_that_says_so() {
    let searched = search(&plan("loss=0"), |step| {
        let mut load = overloadable(step);
        load.completed -= u64::from(step.purpose == SearchPurpose::Floor);
        load
    });
    assert!(
        matches!(searched.outcome, SearchOutcome::Unfit { .. }),
        "{:?}",
        searched.outcome
    );
    let last = searched.trials.last().unwrap();
    assert_eq!((last.purpose, last.held), (SearchPurpose::Floor, false));
}

#[test]
fn the_first_trials_carry_the_limited_percentile() {
    assert_eq!(plan("p99<1ms").bounds.least.round(), 1_000.0);
    assert_eq!(plan("p99.9<1ms").bounds.least.round(), 10_000.0);
    let shorter = plan("p99<1ms").with_trials_of(0.5);
    assert_eq!(shorter.bounds.least.round(), 2_000.0);
    assert_eq!(shorter.goal.duration_sum, 10.5);
    let longer = plan("loss=0").with_trials_of(60.0);
    assert_eq!(longer.bounds.least, LEAST_RATE);
}
