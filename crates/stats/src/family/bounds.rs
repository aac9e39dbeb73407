//! Intervals by exact inversion of the test.

use super::flips::{Flips, LogRatios};

/// The effects, as distances from the estimate, that a test at
/// `kept`/choices does not reject: those that lie in the reach of more than
/// `kept` choices of signs. `rivals` holds the largest squared statistic of the
/// other comparisons for each choice; zeros for a comparison by itself.
///
/// A choice of signs speaks against rejecting the effect θ when its statistic is
/// at least the one observed. For the comparison's own statistic that is
/// |Σ ±(d − θ)| ≥ |Σ (d − θ)|, which holds exactly when θ lies between the mean
/// of the flipped and the mean of the other blocks (J. A. Hartigan, "Using
/// Subsample Values as Typical Values", Journal of the American Statistical
/// Association 64, 1969). For a rival's M² it is n·nμ²/(v + nμ²) ≤ M² with
/// μ = d̄ − θ and v the sum of squares around the mean d̄, that is
/// |μ| ≤ √(M²v / (n(n − M²))). Both are intervals around the estimate, so each
/// choice has one reach and the bounds are order statistics of these.
///
/// Infinite on both sides when the blocks cannot exclude anything.
pub(super) fn bounds(
    column: &LogRatios,
    flips: &Flips,
    rivals: impl Iterator<Item = f64>,
    kept: usize,
) -> (f64, f64) {
    if kept == 0 || column.blocks == 0 {
        return (f64::NEG_INFINITY, f64::INFINITY);
    }
    let (mut lows, mut highs): (Vec<f64>, Vec<f64>) = column
        .flipped(flips)
        .zip(rivals)
        .map(|(flipped, rival)| {
            let (low, high) = between_means(column.blocks, flipped.blocks, flipped.sum);
            let reach = reach(column, rival);
            (low.min(-reach), high.max(reach))
        })
        .unzip();
    let (_, &mut low, _) = lows.select_nth_unstable_by(kept, f64::total_cmp);
    let (_, &mut high, _) = highs.select_nth_unstable_by(kept, |a, b| b.total_cmp(a));
    (low, high)
}

/// The means of the flipped and of the other blocks, whose distances from the
/// common mean add up to −`sum`/2 and `sum`/2.
fn between_means(blocks: usize, flipped: usize, sum: f64) -> (f64, f64) {
    if flipped == 0 || flipped == blocks {
        return (f64::NEG_INFINITY, f64::INFINITY);
    }
    let of_flipped = -sum / (2 * flipped) as f64;
    let of_others = sum / (2 * (blocks - flipped)) as f64;
    (of_flipped.min(of_others), of_flipped.max(of_others))
}

fn reach(column: &LogRatios, rival: f64) -> f64 {
    let n = column.blocks as f64;
    if rival <= 0.0 {
        0.0
    } else if rival >= n {
        f64::INFINITY
    } else {
        (rival * column.spread / (n * (n - rival))).sqrt()
    }
}
