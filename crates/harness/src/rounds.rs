//! The loop that runs a plan on many pairs of nodes: blocks, rounds, treatments,
//! and in each the trials of all pairs at once.

mod group;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use plumbline_experiment::{Ends, Layout, Plan, Treatment};
use plumbline_record::{NodePair, Trial, TrialStatus};

use crate::conduct::repetitions_left;
use crate::{Cause, Fleet, HarnessError, Outcome, Progress, Settings, Step};

use group::{Group, Known, Slot};

/// As [`conduct`](crate::conduct()), on every pair of the plan's pairing; a plan
/// without one has nothing to run. Pairs that share no node run their trials at
/// the same time. Only where all nodes are one kernel a mesh has one trial at a
/// time: it asks how the pairs differ, and there they would measure each other.
pub fn conduct_pairs(
    plan: &Plan,
    done: &[Trial],
    fleet: &dyn Fleet,
    keep: &mut dyn FnMut(&Trial) -> Result<(), Cause>,
    progress: &mut dyn Progress,
    settings: &Settings,
    interrupted: &AtomicBool,
) -> Result<Outcome, HarnessError> {
    let Some(pairing) = &plan.pairing else {
        return Ok(Outcome::default());
    };
    let one_kernel = fleet.is_one_kernel();
    let mut run = Running {
        plan,
        group: Group {
            names: &pairing.nodes,
            one_kernel,
            session: done.iter().map(|t| t.session + 1).max().unwrap_or(0),
            seed: plan.seed,
            fleet,
            settings,
            interrupted,
        },
        known: Known::default(),
        at_once: !(one_kernel && pairing.layout == Layout::Mesh),
        done: last_attempts(done),
        spare: repetitions_left(plan, done),
        keep,
        progress,
        outcome: Outcome::default(),
    };
    for (block, order) in plan.blocks.iter().enumerate() {
        run.known = Known::default();
        for (_, round) in pairing.schedule(plan.seed, block) {
            run.known.forget_rest();
            let round = Round {
                block,
                pairs: round.collect(),
            };
            for (position, &id) in order.iter().enumerate() {
                run.place(&round, position, &plan.treatments[id])?;
                if run.outcome.interrupted {
                    return Ok(run.outcome);
                }
            }
        }
    }
    Ok(run.outcome)
}

/// Block, position, and the pair.
type Cell = (u32, u32, NodePair);

/// The last attempt of each cell, and whether it counted.
fn last_attempts(done: &[Trial]) -> BTreeMap<Cell, (u32, bool)> {
    let mut last = BTreeMap::new();
    for trial in done {
        let Some(pair) = &trial.pair else { continue };
        let counts = trial.status == TrialStatus::Valid;
        let cell = last.entry((trial.block, trial.position, pair.clone()));
        let cell = cell.or_insert((trial.attempt, counts));
        if trial.attempt >= cell.0 {
            *cell = (trial.attempt, counts);
        }
    }
    last
}

/// Pairs that run at the same time.
struct Round {
    block: usize,
    pairs: Vec<Ends>,
}

/// A run under way.
struct Running<'a> {
    plan: &'a Plan,
    group: Group<'a>,
    known: Known,
    at_once: bool,
    done: BTreeMap<Cell, (u32, bool)>,
    spare: usize,
    keep: &'a mut dyn FnMut(&Trial) -> Result<(), Cause>,
    progress: &'a mut dyn Progress,
    outcome: Outcome,
}

impl Running<'_> {
    /// Runs a treatment on the pairs of a round until it counts on all of them,
    /// is given up, or is interrupted. What is repeated on one pair is run on
    /// all of them again, so that it meets the company that it had, but only
    /// what is missing is kept.
    fn place(
        &mut self,
        round: &Round,
        position: usize,
        treatment: &Treatment,
    ) -> Result<(), HarnessError> {
        let mut open = self.open(round, position);
        self.outcome.finished += round.pairs.len() - open.len();
        while let Some(&attempt) = open.values().max() {
            let step = Step {
                block: round.block,
                finished: self.outcome.finished,
                trials: self.plan.trials(),
                treatment,
                attempt,
            };
            self.progress.starts(&step);
            let mut trials = Vec::new();
            let slot = Slot {
                block: round.block,
                position,
                attempt,
            };
            for pairs in self.groups(round, &open) {
                let known = &mut self.known;
                let Some(some) = self.group.run(slot, &pairs, treatment, known) else {
                    self.outcome.interrupted = true;
                    return Ok(());
                };
                trials.extend(some);
            }
            for (ends, mut trial) in trials {
                let Some(&attempt) = open.get(&ends) else {
                    continue;
                };
                trial.attempt = attempt;
                (self.keep)(&trial).map_err(HarnessError::Keep)?;
                self.progress.ended(&step, &trial);
                let counts = trial.status == TrialStatus::Valid;
                if !counts && attempt < self.plan.retries && self.spare > 0 {
                    self.spare -= 1;
                    open.insert(ends, attempt + 1);
                } else {
                    self.outcome.finished += 1;
                    open.remove(&ends);
                }
            }
        }
        Ok(())
    }

    /// The pairs on which the place of the plan is not finished, with the
    /// attempt that is next.
    fn open(&self, round: &Round, position: usize) -> BTreeMap<Ends, u32> {
        let next = |ends: &Ends| {
            let cell = (round.block as u32, position as u32, self.group.named(*ends));
            match self.done.get(&cell) {
                None => Some((*ends, 0)),
                Some((_, true)) => None,
                Some((last, false)) => (*last < self.plan.retries).then_some((*ends, last + 1)),
            }
        };
        round.pairs.iter().filter_map(next).collect()
    }

    /// Which pairs run at the same time: all, or one after the other those that
    /// are open.
    fn groups(&self, round: &Round, open: &BTreeMap<Ends, u32>) -> Vec<Vec<Ends>> {
        if self.at_once {
            return vec![round.pairs.clone()];
        }
        open.keys().map(|ends| vec![*ends]).collect()
    }
}

#[cfg(test)]
mod tests;
