//! How many blocks a run needs: until its intervals are narrow enough, or its limits are
//! decided.

use std::time::Duration;

use plumbline_experiment::{Precision, Sequential};
use plumbline_record::{Run, Trial};
use plumbline_report::Summary;
use plumbline_report::compare::check_limits;
use plumbline_stats::{looks, precision};

/// Blocks of the plan that have trials.
pub(crate) fn begun(trials: &[Trial]) -> usize {
    let blocks = trials.iter().map(|trial| trial.block as usize + 1);
    blocks.max().unwrap_or(0)
}

/// How many blocks to add to a run whose first `blocks` blocks are done, in a time of
/// `spent`; 0 where they are enough, or neither plan nor budget has room for another.
pub(crate) fn more_blocks(run: &Run, trials: &[Trial], blocks: usize, spent: Duration) -> usize {
    let needed = match (run.plan.precision, &run.plan.sequential) {
        (Some(asked), _) => until_narrow(asked, run, trials, blocks, spent),
        (None, Some(asked)) => until_decided(asked, run, trials, blocks, spent),
        (None, None) => 0,
    };
    needed.min(run.plan.blocks.len().saturating_sub(blocks))
}

fn until_narrow(
    asked: Precision,
    run: &Run,
    trials: &[Trial],
    blocks: usize,
    spent: Duration,
) -> usize {
    let Some(reached) = Summary::new(run, trials).precision else {
        return 0;
    };
    let needed = precision::more_blocks(&reached.half_widths, blocks, asked.half_width);
    needed.min(room(asked.budget_ns, spent, blocks))
}

/// Verdicts count where the plan looks at them and nowhere else: a run that ended at any
/// other moment because of them would have had one more look (C-22). When time runs out in
/// between, that has nothing to do with them.
fn until_decided(
    asked: &Sequential,
    run: &Run,
    trials: &[Trial],
    blocks: usize,
    spent: Duration,
) -> usize {
    let is_over = asked.looks_after(blocks) && are_decided(run, trials);
    match asked.next_look(blocks).filter(|_| !is_over) {
        None => 0,
        Some(next) => (next - blocks).min(room(asked.budget_ns, spent, blocks)),
    }
}

fn are_decided(run: &Run, trials: &[Trial]) -> bool {
    let limits = check_limits(0, &run.plan, &Summary::new(run, trials));
    looks::are_decided(limits.iter().map(|check| check.outcome.is_held()))
}

/// Blocks that a budget, in nanoseconds, still has time for when `blocks` took so long.
fn room(budget: Option<u64>, spent: Duration, blocks: usize) -> usize {
    // A run of as many nanoseconds as a u64 holds has no end.
    let spent = spent.as_nanos() as u64;
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
        let room = |budget| room(budget, Duration::from_nanos(10), 2);
        assert_eq!(room(None), usize::MAX);
        assert_eq!(room(Some(10)), 0);
        assert_eq!(room(Some(21)), 2);
        assert_eq!(room(Some(5)), 0);
    }
}
