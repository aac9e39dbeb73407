//! How sure a statement has to be.

use plumbline_experiment::Plan;
use plumbline_stats::precision::ALPHA_SHARE;

/// Significance level of all verdicts, and the complement of all intervals (D8).
pub const ALPHA: f64 = 0.05;

/// Level of intervals that are not made from comparisons, such as that of a
/// median over runs (L-15).
pub const LEVEL: f64 = 1.0 - ALPHA;

/// Level at which the comparisons of a run are judged, so that they hold at [`ALPHA`]:
/// where blocks were added until intervals were narrow, a little stricter.
pub(crate) fn alpha(plan: &Plan) -> f64 {
    match plan.precision {
        Some(_) => ALPHA * ALPHA_SHARE,
        None => ALPHA,
    }
}
