//! How large a difference must be to matter, and to be seen at all (D9).

use plumbline_record::Fingerprint;

use super::metric::{Metric, Resolution};
use super::treatment::TreatmentSummary;

/// Relative width of a histogram bucket (D12).
const HISTOGRAM_QUANTUM: f64 = 1e-3;

/// The largest difference that does not matter in practice, as a fraction
/// (D9). Where the clock limits the metric, the steps of clock and histogram count
/// against what the baseline, `theirs`, usually shows.
pub(crate) fn margin(metric: &Metric, theirs: &TreatmentSummary, fingerprint: &Fingerprint) -> f64 {
    if metric.resolution != Resolution::Clock {
        return metric.margin;
    }
    let clock_quantum = theirs
        .median_of(metric)
        .map_or(0.0, |median| fingerprint.clock_read_ns as f64 / median);
    (2.0 * clock_quantum.max(HISTOGRAM_QUANTUM)).max(metric.margin)
}

/// The smallest difference that the meter can tell from none, as a fraction: 0
/// for anything but CPU.
///
/// Twice the standard error that rounding leaves in a difference of medians,
/// 2 √(r²/n + s²/m), for treatments whose single trials are off by r and s.
/// The rounding of a trial is its own, so more trials average it away; but
/// readings in few steps may agree by chance, and then their spread shows
/// nothing of it.
pub(crate) fn resolution(
    metric: &Metric,
    ours: &TreatmentSummary,
    theirs: &TreatmentSummary,
) -> f64 {
    if metric.resolution != Resolution::CpuAccounting {
        return 0.0;
    }
    let variance = |one: &TreatmentSummary| {
        let rounding = one.cost.as_ref().map_or(0.0, |cost| cost.rounding);
        rounding.powi(2) / one.values_of(metric.name()).len().max(1) as f64
    };
    2.0 * (variance(ours) + variance(theirs)).sqrt()
}
