//! How many blocks a run needs until its intervals are narrow enough.

use plumbline_record::{Run, Trial};
use plumbline_report::Summary;
use plumbline_stats::precision;

/// Blocks of the plan that have trials.
pub(crate) fn begun(trials: &[Trial]) -> usize {
    let blocks = trials.iter().map(|trial| trial.block as usize + 1);
    blocks.max().unwrap_or(0)
}

/// How many blocks to add to a run whose first `blocks` blocks are done; 0 where its
/// intervals are narrow enough, or neither plan nor budget has room for another.
pub(crate) fn more_blocks(run: &Run, trials: &[Trial], blocks: usize) -> usize {
    let (Some(asked), Some(reached)) = (run.plan.precision, Summary::new(run, trials).precision)
    else {
        return 0;
    };
    let needed = precision::more_blocks(&reached.half_widths, blocks, asked.half_width);
    let left = run.plan.blocks.len().saturating_sub(blocks);
    let spent: u64 = trials.iter().map(|trial| trial.took_ns).sum();
    // Pairs run at the same time.
    let spent = spent / run.plan.pairs().max(1) as u64;
    needed.min(left).min(room(asked.budget_ns, spent, blocks))
}

/// Blocks that a budget still has time for when `blocks` took so long; all in
/// nanoseconds.
fn room(budget: Option<u64>, spent: u64, blocks: usize) -> usize {
    let of_a_block = (spent / blocks.max(1) as u64).max(1);
    budget.map_or(usize::MAX, |budget| {
        (budget.saturating_sub(spent) / of_a_block) as usize
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_bounds_what_is_added() {
        assert_eq!(room(None, 10, 2), usize::MAX);
        assert_eq!(room(Some(10), 10, 2), 0);
        assert_eq!(room(Some(21), 10, 2), 2);
        assert_eq!(room(Some(5), 10, 2), 0);
    }
}
