//! The one loop that runs a plan on any target: blocks, rounds of pairs,
//! treatments, attempts.

mod group;
mod openings;
mod rest;
mod turns;
mod watchers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use plumbline_experiment::{Ends, Layout, Plan, Treatment, TreatmentId};
use plumbline_record::{Trial, TrialStatus};

use crate::settings::Settings;
use crate::target::Target;
use group::{FIRST_TWO, Group, TrialSlot, spread};
use openings::{PairBlock, openings, repetitions_left};
use turns::{TurnMember, Turned};

pub use openings::pending;

/// After how many blocks in a row that yielded no observation a run ends. A short
/// outage costs the block that it meets; what lasts into the next will not pass by
/// itself, and the run can be resumed when it is mended.
const SILENT_BLOCKS: usize = 2;

/// Whatever kept a trial from being kept.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a run could not go on. Trials kept so far are safe.
#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
    /// A finished trial could not be kept.
    #[error("a finished trial could not be written")]
    Keep(#[source] Cause),
    /// Nothing was observed in two blocks in a row.
    #[error("every trial of {blocks} blocks in a row failed, the last one with: {last}")]
    Silent {
        /// How many.
        blocks: usize,
        /// What the last trial failed with.
        last: String,
    },
}

/// Where a run is.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Block, from 0.
    pub block: usize,
    /// Blocks of the plan.
    pub blocks: usize,
    /// Trials of the plan that are finished.
    pub finished: usize,
    /// Trials of the plan.
    pub trials: usize,
    /// What runs now.
    pub treatment: &'a Treatment,
    /// Attempt number; 0 is the first try.
    pub attempt: u32,
}

/// Hears where a run is.
pub trait Progress {
    /// A trial starts.
    fn starts(&mut self, step: &Step<'_>);
    /// A trial has ended and is kept.
    fn ended(&mut self, step: &Step<'_>, trial: &Trial);
    /// The trials of treatments that took turns have ended and are kept.
    fn took_turns(&mut self, steps: &[Step<'_>], trials: &[Trial]) {
        for (step, trial) in steps.iter().zip(trials) {
            self.ended(step, trial);
        }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ending {
    /// Trials of the plan that are finished, those of an earlier part included.
    pub finished: usize,
    /// Whether it was interrupted.
    pub interrupted: bool,
}

/// Runs every trial of a plan that is not in `done`, and hands each to `keep`
/// as soon as it has ended, what had to be set up for it before it. A trial that
/// fails a gate is kept, marked, and repeated as often as the plan allows (C-14), but
/// for one without enforcement, which voids its block whatever comes of a repetition. A
/// block that was cut off or is void, or in which a trial yielded nothing, is run again as a whole
/// when the run is resumed: only what one part of a run measured is compared. The
/// target is not torn down.
///
/// A plan without a pairing is one of a single pair. Pairs that share no node run
/// their trials at the same time, except in a mesh where nodes share a kernel: a
/// mesh asks how pairs differ, and there they would measure each other.
///
/// # Errors
///
/// [`HarnessError::Keep`], and [`HarnessError::Silent`] after two blocks in which
/// every trial failed. Until then, whatever a target cannot do fails its trials,
/// and the run goes on.
pub fn conduct(
    plan: &Plan,
    done: &[Trial],
    target: &mut dyn Target,
    keep: &mut dyn FnMut(&Trial) -> Result<(), Cause>,
    progress: &mut dyn Progress,
    settings: &Settings,
    interrupted: &AtomicBool,
) -> Result<Ending, HarnessError> {
    let is_mesh = |it: &plumbline_experiment::Pairing| it.layout == Layout::Mesh;
    let mut run = Loop {
        plan,
        at_once: !(plan.pairing.as_ref().is_some_and(is_mesh) && target.is_one_kernel()),
        openings: openings(plan, done),
        spare: repetitions_left(plan, done),
        group: Group::new(plan, done, target, settings, interrupted),
        keep,
        progress,
        ending: Ending::default(),
        silence: Silence::default(),
        dead: BTreeSet::new(),
    };
    for (block, order) in plan.blocks.iter().enumerate() {
        run.group.begin_block(block);
        for (number, pairs) in rounds(plan, block).enumerate() {
            run.group.begin_round();
            let round = Round { block, pairs };
            run.ending.finished += run.dead.len() * round.pairs.len();
            for mut set in run.sets(block, number) {
                set.retain(|&position| !run.dead.contains(&order[position]));
                match set[..] {
                    [] => {}
                    [position] => {
                        run.finish(&round, position, &plan.treatments[order[position]])?;
                    }
                    _ => run.finish_set(&round, &set)?,
                }
                if run.ending.interrupted {
                    return Ok(run.ending);
                }
            }
        }
        run.silence.end_block()?;
    }
    Ok(run.ending)
}

/// The pairs that run at the same time, one round after the other.
fn rounds(plan: &Plan, block: usize) -> Box<dyn Iterator<Item = Vec<Ends>> + '_> {
    match &plan.pairing {
        None => Box::new(std::iter::once(vec![FIRST_TWO])),
        Some(pairing) => {
            let schedule = pairing.schedule(plan.seed, block);
            Box::new(schedule.map(|(_, pairs)| pairs.collect()))
        }
    }
}

/// Blocks that yielded nothing.
#[derive(Default)]
struct Silence {
    /// How many in a row.
    blocks: usize,
    /// Whether this block has yielded anything.
    observed: bool,
    /// What the last trial of this block failed with.
    failure: Option<String>,
}

impl Silence {
    fn hear(&mut self, trial: &Trial) {
        let unseen = trial.status.unenforced();
        match (&trial.status, unseen) {
            (TrialStatus::Failed { error }, _) => self.failure = Some(error.clone()),
            (_, Some(why)) if trial.observation.is_none() => self.failure = Some(why.to_owned()),
            _ => self.observed = true,
        }
    }

    /// A block in which nothing was left to do counts neither way.
    fn end_block(&mut self) -> Result<(), HarnessError> {
        let (observed, failure) = (std::mem::take(&mut self.observed), self.failure.take());
        match failure {
            _ if observed => self.blocks = 0,
            None => {}
            Some(last) => {
                self.blocks += 1;
                if self.blocks == SILENT_BLOCKS {
                    let blocks = self.blocks;
                    return Err(HarnessError::Silent { blocks, last });
                }
            }
        }
        Ok(())
    }
}

/// Pairs that run at the same time.
struct Round {
    block: usize,
    pairs: Vec<Ends>,
}

/// A run under way.
struct Loop<'a> {
    plan: &'a Plan,
    group: Group<'a>,
    at_once: bool,
    /// Of cells that an earlier part of the run has begun.
    openings: BTreeMap<PairBlock, Option<u32>>,
    spare: usize,
    keep: &'a mut dyn FnMut(&Trial) -> Result<(), Cause>,
    progress: &'a mut dyn Progress,
    ending: Ending,
    silence: Silence,
    /// Treatments whose path carries nothing: their first trial says so, and there are no
    /// others.
    dead: BTreeSet<TreatmentId>,
}

impl Loop<'_> {
    /// Runs a treatment on the pairs of a round until it counts on all of them,
    /// is given up, or is interrupted. What is repeated on one pair is run on
    /// all of them again, so that it meets the company that it had, but only
    /// what is missing is kept.
    fn finish(
        &mut self,
        round: &Round,
        position: usize,
        treatment: &Treatment,
    ) -> Result<(), HarnessError> {
        let opening = |ends: &Ends| Some((*ends, self.opening(round.block, *ends)?));
        let mut open: BTreeMap<Ends, u32> = round.pairs.iter().filter_map(opening).collect();
        self.ending.finished += round.pairs.len() - open.len();
        while let Some(&attempt) = open.values().max() {
            let step = Step {
                block: round.block,
                blocks: self.plan.blocks.len(),
                finished: self.ending.finished,
                trials: self.plan.trials(),
                treatment,
                attempt,
            };
            self.progress.starts(&step);
            let slot = TrialSlot {
                block: round.block,
                position,
                attempt,
            };
            let Some(trials) = self.attempt(round, slot, treatment, &open) else {
                self.ending.interrupted = true;
                return Ok(());
            };
            for set_up in self.group.take_set_ups() {
                (self.keep)(&set_up).map_err(HarnessError::Keep)?;
            }
            for (ends, trial) in trials {
                self.settle(&step, ends, trial, &mut open)?;
            }
        }
        Ok(())
    }

    /// The attempt that the trials of a block on one pair begin with; `None` where
    /// nothing is left to do.
    fn opening(&self, block: usize, ends: Ends) -> Option<u32> {
        let cell = self.cell(block, ends);
        self.openings.get(&cell).copied().unwrap_or(Some(0))
    }

    fn cell(&self, block: usize, ends: Ends) -> PairBlock {
        (block as u32, self.group.named(ends))
    }

    /// The positions of a block in sets of those that take turns. Whole windows have the
    /// order of the plan in the first round of a block, and in each later round one of
    /// its own; not where one place is left for the next only at a cost.
    fn sets(&self, block: usize, round: usize) -> Vec<Vec<usize>> {
        let order = &self.plan.blocks[block];
        let sets = self.plan.turns(block).into_iter().flat_map(|set| {
            let of = |position: usize| &self.plan.treatments[order[position]];
            self.group.that_rotate(set, of)
        });
        let mut sets: Vec<Vec<usize>> = sets.collect();
        if sets.len() < order.len() {
            // Those of one site follow each other, as the plan has them.
            sets.sort_unstable();
            return sets;
        }
        let mut positions: Vec<usize> = (0..order.len()).collect();
        if round > 0 && !self.group.keeps_sites_together() {
            let round = spread((block as u64) << 32 | round as u64);
            positions.sort_by_key(|&position| {
                let draw = self.plan.seed ^ spread(round ^ spread(position as u64 + 1));
                spread(draw ^ draw >> 32)
            });
        }
        positions.into_iter().map(|it| vec![it]).collect()
    }

    /// Runs treatments in turns until all of them count, are given up, or are
    /// interrupted. All are repeated when one does not count; what counts in the end is one
    /// attempt of all, that with the most valid trials, of equals the last: only what ran
    /// side by side may be compared.
    fn finish_set(&mut self, round: &Round, set: &[usize]) -> Result<(), HarnessError> {
        let (block, order) = (round.block, &self.plan.blocks[round.block]);
        if self.group.has_refused(&self.plan.treatments[order[set[0]]]) {
            return self.finish_each(round, set);
        }
        let opening = self.opening(block, FIRST_TWO);
        let first = opening.unwrap_or_default();
        let (mut attempt, mut again) = (first, opening.is_some());
        while again {
            let members = set.iter().map(|&position| {
                let slot = TrialSlot {
                    block,
                    position,
                    attempt,
                };
                (slot, &self.plan.treatments[order[position]])
            });
            let members: Vec<TurnMember<'_>> = members.collect();
            let step = |treatment| Step {
                block,
                blocks: self.plan.blocks.len(),
                finished: self.ending.finished,
                trials: self.plan.trials(),
                treatment,
                attempt,
            };
            let steps: Vec<Step<'_>> = members.iter().map(|(_, one)| step(*one)).collect();
            self.progress.starts(&steps[0]);
            let turned = self.group.rotate(&members);
            for set_up in self.group.take_set_ups() {
                (self.keep)(&set_up).map_err(HarnessError::Keep)?;
            }
            let trials = match turned {
                Turned::Trials(trials) => trials,
                Turned::Refused(why) => {
                    self.group.refuse_turns(members[0].1, &why);
                    self.openings
                        .insert(self.cell(block, FIRST_TWO), Some(attempt));
                    return self.finish_each(round, set);
                }
                Turned::Interrupted => {
                    self.ending.interrupted = true;
                    return Ok(());
                }
            };
            for trial in &trials {
                self.keep(trial)?;
            }
            self.progress.took_turns(&steps, &trials);
            let is_again = |it: &Trial| it.status != TrialStatus::Valid;
            let is_void = |it: &Trial| it.status.unenforced().is_some();
            let may_again = |(_, treatment): &TurnMember<'_>| self.group.may_try_again(treatment);
            again = trials.iter().any(is_again)
                && !trials.iter().any(is_void)
                && members.iter().all(may_again)
                && attempt - first < self.plan.retries
                && self.spare >= set.len();
            if again {
                self.spare -= set.len();
                attempt += 1;
            }
        }
        self.ending.finished += set.len();
        Ok(())
    }

    /// Runs treatments that were to take turns, and cannot, one after the other.
    fn finish_each(&mut self, round: &Round, set: &[usize]) -> Result<(), HarnessError> {
        let order = &self.plan.blocks[round.block];
        for &position in set {
            self.finish(round, position, &self.plan.treatments[order[position]])?;
            if self.ending.interrupted {
                break;
            }
        }
        Ok(())
    }

    /// One attempt on all pairs of a round; `None` when it was interrupted.
    fn attempt(
        &mut self,
        round: &Round,
        slot: TrialSlot,
        treatment: &Treatment,
        open: &BTreeMap<Ends, u32>,
    ) -> Option<Vec<(Ends, Trial)>> {
        if self.at_once {
            return self.group.run(slot, &round.pairs, treatment);
        }
        let mut trials = Vec::new();
        for ends in open.keys() {
            trials.extend(self.group.run(slot, &[*ends], treatment)?);
        }
        Some(trials)
    }

    /// Keeps a trial, and notes what it says of those to come.
    fn keep(&mut self, trial: &Trial) -> Result<(), HarnessError> {
        (self.keep)(trial).map_err(HarnessError::Keep)?;
        self.silence.hear(trial);
        let treatment = &self.plan.treatments[trial.treatment];
        let has_failed = matches!(trial.status, TrialStatus::Failed { .. });
        if has_failed && self.group.carries_nothing(treatment) {
            self.dead.insert(treatment.id);
        }
        Ok(())
    }

    /// Keeps a trial where it was wanted, and decides whether it is repeated.
    fn settle(
        &mut self,
        step: &Step<'_>,
        ends: Ends,
        mut trial: Trial,
        open: &mut BTreeMap<Ends, u32>,
    ) -> Result<(), HarnessError> {
        let Some(&attempt) = open.get(&ends) else {
            return Ok(());
        };
        trial.attempt = attempt;
        self.keep(&trial)?;
        self.progress.ended(step, &trial);
        let first = self.opening(step.block, ends).unwrap_or_default();
        let again = trial.status != TrialStatus::Valid
            && trial.status.unenforced().is_none()
            && attempt - first < self.plan.retries
            && self.spare > 0
            && self.group.may_try_again(step.treatment);
        if again {
            self.spare -= 1;
            open.insert(ends, attempt + 1);
        } else {
            self.ending.finished += 1;
            open.remove(&ends);
        }
        Ok(())
    }
}

#[cfg(test)]
mod dead_tests;
#[cfg(test)]
mod pairs_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod turns_tests;
