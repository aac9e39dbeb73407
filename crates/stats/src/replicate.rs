//! One replicate for each block (C-19).
//!
//! What is measured in the same moment shares that moment: pairs of nodes that
//! run at once, and rounds of a mesh whose treatments come in one order. Ten
//! pairs of one block are not ten looks at a treatment; taken as such they call
//! identical systems different half of the time. Their mean is one look.

/// One log-ratio for each of `blocks` blocks: the mean over the `cells` (block
/// and log-ratio) that it holds; `None` for a block without any. Each pair of
/// nodes, and each round, has its own baseline and therefore its own log-ratio.
///
/// Cells of unknown blocks are left out.
pub fn of_blocks(blocks: usize, cells: &[(usize, f64)]) -> Vec<Option<f64>> {
    let mut sums = vec![(0.0, 0.0); blocks];
    for &(block, log_ratio) in cells {
        if let Some((sum, count)) = sums.get_mut(block) {
            *sum += log_ratio;
            *count += 1.0;
        }
    }
    let mean = |(sum, count)| (count > 0.0).then_some(sum / count);
    sums.into_iter().map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_a_block_become_their_mean_and_none_becomes_none() {
        let cells = [(0, 1.0), (2, 5.0), (0, 3.0), (9, 7.0)];
        assert_eq!(of_blocks(3, &cells), [Some(2.0), None, Some(5.0)]);
    }
}
