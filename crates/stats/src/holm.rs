/// Holm's step-down adjustment of the p-values `p` of several comparisons, in
/// the same order (C-10, D8).
///
/// Calling every comparison whose adjusted value is below α *different* is
/// wrong anywhere in the family with probability at most α, whatever the
/// dependence between the comparisons. So they may share a baseline. Source:
/// S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure",
/// Scandinavian Journal of Statistics 6 (1979).
///
/// A value that is not a number counts as 1: a comparison that could not be
/// made is no evidence, but it was part of the family.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut by_size: Vec<usize> = (0..p.len()).collect();
    by_size.sort_by(|&i, &j| p[i].total_cmp(&p[j]));

    let mut adjusted = vec![1.0; p.len()];
    let mut largest_so_far: f64 = 0.0;
    for (step, &index) in by_size.iter().enumerate() {
        let remaining = (p.len() - step) as f64;
        // `min` ignores a NaN, which makes it 1.
        largest_so_far = largest_so_far.max((remaining * p[index]).min(1.0));
        adjusted[index] = largest_so_far;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_order_of_its_input_and_never_steps_down() {
        assert_eq!(holm(&[0.04, 0.01, 0.03]), [0.06, 0.03, 0.06]);
    }

    #[test]
    fn a_comparison_that_could_not_be_made_still_counts_in_the_family() {
        assert_eq!(holm(&[0.02, f64::NAN]), [0.04, 1.0]);
    }

    #[test]
    fn of_nothing_is_nothing() {
        assert!(holm(&[]).is_empty());
    }
}
