//! How large a difference must be to matter, and to be seen at all (D9).

use plumbline_record::Fingerprint;
use plumbline_stats::order::median_of_runs;
use plumbline_stats::paired::Effect;

use super::LEVEL;
use super::metric::{Metric, Resolution};
use super::treatment::TreatmentSummary;

/// Relative width of a histogram bucket (D12).
const HISTOGRAM_QUANTUM: f64 = 1e-3;

/// The effect that is found with 80 % probability lies 2.8 standard errors
/// from nothing, the end of an interval 2 (C-8).
const SEEN_BEYOND_INTERVAL: f64 = 2.8 / 2.0;

/// The largest difference that does not matter in practice, as a fraction
/// (D9). Where the clock limits the metric, the steps of clock and histogram count
/// against what the baseline, `theirs`, usually shows.
pub(crate) fn margin(metric: &Metric, theirs: &TreatmentSummary, fingerprint: &Fingerprint) -> f64 {
    if metric.resolution != Resolution::Clock {
        return metric.margin;
    }
    let values = theirs.values_of(metric.name()).iter().map(|one| one.value);
    let clock_quantum = median_of_runs(&values.collect::<Vec<_>>(), LEVEL)
        .filter(|runs| runs.median > 0.0)
        .map_or(0.0, |runs| fingerprint.clock_read_ns as f64 / runs.median);
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

/// The effect with an interval that is no narrower than the resolution.
pub(crate) fn no_finer(mut effect: Effect, resolution: f64) -> Effect {
    if let Some(interval) = &mut effect.interval {
        interval.low = interval.low.min(effect.ratio_minus_one - resolution);
        interval.high = interval.high.max(effect.ratio_minus_one + resolution);
    }
    effect
}

/// The least effect that could have been seen, with the resolution in mind.
pub(crate) fn least_seen(smallest: Option<f64>, resolution: f64) -> Option<f64> {
    smallest.map(|one| one.max(SEEN_BEYOND_INTERVAL * resolution))
}
