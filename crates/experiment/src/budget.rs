//! Dividing a budget of time among the trials of a plan.

use std::time::Duration;

use crate::ceiling::MIN_DURATION;
use crate::{Plan, Timing};

/// What a trial takes beside its phases: two agents started and ended, counters
/// read. Measured: a tour of 168 trials took 21 ms more for each than its
/// phases; the rest is for networks that are slower to prove.
const BESIDE_PHASES: Duration = Duration::from_millis(35);

/// What a block takes beside its trials: the idle sample at its head.
const BESIDE_TRIALS: Duration = Duration::from_millis(200);

/// The least share of a phase that is left. Below it the windows hold so few
/// requests that the intervals say nothing; then the budget is exceeded instead.
const LEAST_SHARE: f64 = 0.25;

/// How often the range in which the proportion lies is halved.
const HALVINGS: u32 = 20;

/// Shortens all phases in one proportion so that the blocks take no longer
/// than the budget, if that is possible. Gives the proportion; 1 when nothing
/// had to be shortened. The number of blocks stays: it is what comparisons
/// need (C-7). Precision may add to them later.
pub(crate) fn shorten(plan: &mut Plan, blocks: u32, budget: Option<Duration>) -> f64 {
    let Some(budget) = budget else { return 1.0 };
    // A plan has at most 100,000 trials, far below 2^32.
    let fixed = BESIDE_PHASES * plan.treatments.len() as u32 + BESIDE_TRIALS;
    let left = (budget / blocks.max(1)).saturating_sub(fixed);
    let phases = plan.phases_of(0);
    if phases <= left || phases.is_zero() {
        return 1.0;
    }
    let asked: Vec<Timing> = plan.treatments.iter().map(|it| it.timing).collect();
    let mut scale = |share| {
        for (treatment, timing) in plan.treatments.iter_mut().zip(&asked) {
            treatment.timing = scaled(*timing, share);
        }
        plan.phases_of(0)
    };
    // Slices are whole, so the time that a block takes goes by steps.
    let (mut share, mut too_much) = (LEAST_SHARE, 1.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(share, too_much);
        if scale(middle) <= left {
            share = middle;
        } else {
            too_much = middle;
        }
    }
    scale(share);
    share
}

/// Warm-up and window; the drain ends with the last answer anyway.
fn scaled(timing: Timing, share: f64) -> Timing {
    let least = MIN_DURATION.as_nanos() as f64;
    Timing {
        warm_up_ns: (timing.warm_up_ns as f64 * share) as u64,
        measure_ns: (timing.measure_ns as f64 * share).max(least) as u64,
        ..timing
    }
}
