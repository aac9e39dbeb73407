//! What is left to do of a plan, after the trials of earlier parts of a run.

use std::collections::BTreeMap;

use plumbline_experiment::{Plan, TreatmentId};
use plumbline_record::{NodePair, Trial, TrialStatus};

/// Repetitions that a whole run may spend: a quarter of its trials, or twice
/// each treatment for short plans. A machine that disturbs everything gives a
/// report that says so, not a run without end (C-14).
pub(super) fn repetitions_left(plan: &Plan, done: &[Trial]) -> usize {
    let allowed = (plan.trials() / 4).max(plan.treatments.len() * 2);
    let tries = tries(done);
    let positions = tries.values().flat_map(BTreeMap::values);
    let repeated: u32 = positions.map(|(tries, _)| tries - 1).sum();
    allowed.saturating_sub(repeated as usize)
}

/// A block on one pair of nodes: what is compared lies within it.
pub(super) type PairBlock = (u32, Option<NodePair>);

/// How often each position was tried, and the last try.
type Tries<'a> = BTreeMap<u32, (u32, &'a Trial)>;

/// The tries of each cell in each part of a run.
fn tries(done: &[Trial]) -> BTreeMap<(PairBlock, u32), Tries<'_>> {
    let mut tries: BTreeMap<_, Tries<'_>> = BTreeMap::new();
    for trial in done.iter().filter(|trial| trial.set_up().is_none()) {
        let cell = (trial.block, trial.pair.clone());
        let part = tries.entry((cell, trial.session)).or_default();
        let (count, last) = part.entry(trial.position).or_insert((0, trial));
        *count += 1;
        if trial.attempt >= last.attempt {
            *last = trial;
        }
    }
    tries
}

/// For each cell that was begun the attempt that its trials begin with now; `None`
/// where nothing is left to do, because one part of the run finished it.
pub(super) fn openings(plan: &Plan, done: &[Trial]) -> BTreeMap<PairBlock, Option<u32>> {
    let spare = repetitions_left(plan, done);
    let is_finished = |(tries, last): &(u32, &Trial)| match last.status {
        TrialStatus::Valid => true,
        _ if last.status.unenforced().is_some() => false,
        TrialStatus::Invalid { .. } => *tries > plan.retries || spare == 0,
        TrialStatus::Failed { .. } => false,
    };
    let mut openings = BTreeMap::new();
    for ((cell, _), part) in tries(done) {
        let positions = plan.blocks.get(cell.0 as usize).map_or(0, Vec::len);
        let is_whole = part.values().filter(|it| is_finished(it)).count() >= positions;
        let next = part.values().map(|(_, last)| last.attempt + 1).max();
        let opening = openings.entry(cell).or_insert(Some(0));
        *opening = match *opening {
            Some(before) if !is_whole => next.max(Some(before)),
            _ => None,
        };
    }
    openings
}

/// The treatments of the first block in which something is left to do, in its order.
pub fn pending(plan: &Plan, done: &[Trial]) -> Vec<TreatmentId> {
    let openings = openings(plan, done);
    let is_open = |block: &usize| {
        let cells = openings
            .iter()
            .filter(|((of, _), _)| *of as usize == *block);
        cells.filter(|(_, opening)| opening.is_none()).count() < plan.pairs()
    };
    let first = (0..plan.blocks.len()).find(is_open);
    first.map_or(Vec::new(), |block| plan.blocks[block].clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conduct::tests::play;
    use crate::planted::{Act, PlantedTarget, plan};

    /// Hours may lie between the two parts.
    #[test]
    fn a_block_that_two_parts_of_a_run_finished_between_them_is_run_again() {
        let plan = plan(1, 0);
        let mut target = PlantedTarget::new([Act::Vanish]);
        let mut done = play(&plan, &[], &mut target, None).trials;
        let second = play(&plan, &done, &mut PlantedTarget::new([]), Some(1));
        done.extend(second.trials);
        let valid = done.iter().filter(|it| it.status == TrialStatus::Valid);
        let places: Vec<_> = valid.map(|it| (it.position, it.session)).collect();
        assert_eq!(places, [(1, 0), (0, 1)]);
        let third = play(&plan, &done, &mut PlantedTarget::new([]), None);
        assert_eq!(third.started, [(0, 0, 2), (0, 1, 2)]);
    }
}
