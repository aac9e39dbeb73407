/// Twice the mid-rank of every value, in the order of `values`. The smallest
/// of values without ties has 2.
///
/// Equal values share the mean of their ranks, which may end in one half;
/// doubled, all ranks are integers and can index a table.
pub(crate) fn doubled_mid_ranks(values: &[f64]) -> Vec<usize> {
    let mut by_size: Vec<usize> = (0..values.len()).collect();
    by_size.sort_by(|&i, &j| values[i].total_cmp(&values[j]));

    let mut ranks = vec![0; values.len()];
    let mut first = 0;
    for tied in by_size.chunk_by(|&i, &j| values[i] == values[j]) {
        let last = first + tied.len();
        for &index in tied {
            // The ranks first + 1 ..= last, whose doubled mean is this.
            ranks[index] = first + 1 + last;
        }
        first = last;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_share_their_mean_rank() {
        assert_eq!(doubled_mid_ranks(&[3.0, 1.0, 3.0, 0.5]), [7, 4, 7, 2]);
    }

    #[test]
    fn the_two_zeros_are_equal() {
        assert_eq!(doubled_mid_ranks(&[0.0, -0.0, 1.0]), [3, 3, 6]);
    }
}
