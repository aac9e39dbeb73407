//! Walsh averages, and the estimate that is their median.

use crate::order::median_of_sorted;

/// The Hodges–Lehmann estimate: the median of all Walsh averages
/// (dᵢ + dⱼ)/2, i ≤ j (C-6). In the unit of `d`; not a number when `d` is
/// empty.
///
/// Takes time and memory in proportion to the square of `d`'s length.
pub fn hodges_lehmann(d: &[f64]) -> f64 {
    median_of_sorted(&sorted_walsh_averages(d))
}

pub(super) fn sorted_walsh_averages(d: &[f64]) -> Vec<f64> {
    let mut averages: Vec<f64> = (0..d.len())
        .flat_map(|i| d[i..].iter().map(move |&other| f64::midpoint(d[i], other)))
        .collect();
    averages.sort_unstable_by(f64::total_cmp);
    averages
}
