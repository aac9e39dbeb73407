//! How sure a statement has to be.

use plumbline_experiment::Plan;
use plumbline_stats::looks::level_of_each;
use plumbline_stats::precision::ALPHA_SHARE;

/// Significance level of all verdicts, and the complement of all intervals (D8).
pub const ALPHA: f64 = 0.05;

/// Level of intervals that are not made from comparisons, such as that of a
/// median over runs (L-15).
pub const LEVEL: f64 = 1.0 - ALPHA;

/// Level at which the comparisons of a run are judged, so that they hold at [`ALPHA`]:
/// where blocks were added until intervals were narrow, a little stricter, and where verdicts
/// may have ended the run, so much that they hold at every look (C-22).
pub(crate) fn alpha(plan: &Plan) -> f64 {
    match (plan.precision, &plan.sequential) {
        (Some(_), _) => ALPHA * ALPHA_SHARE,
        (None, Some(sequential)) => level_of_each(&sequential.looks, ALPHA),
        (None, None) => ALPHA,
    }
}
