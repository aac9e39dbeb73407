//! Which trial stands for each treatment of each block.
//!
//! Where a plan is run on several pairs of nodes, a block holds every treatment
//! on each of them. Treatments are compared on the same pair, so that a slow node
//! is on both sides: here each pair of a block counts as a block of its own.

use std::collections::{BTreeMap, HashMap, HashSet};

use plumbline_experiment::{Pairing, Plan, TreatmentId};
use plumbline_record::{NodePair, Observation, Trial, TrialStatus};

/// All trials of one treatment in one block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot<'a> {
    /// In the order of attempts.
    pub(crate) trials: Vec<&'a Trial>,
    /// The part of the run whose trials may count in this block, if any may.
    session: Option<u32>,
    /// Of those that took turns with other treatments, the attempt that may count.
    attempt: Option<u32>,
    /// Whether none may because policies did not act in it.
    pub(crate) is_void: bool,
}

impl<'a> Slot<'a> {
    /// The trial that counts: the last valid one, as a later attempt replaces
    /// an earlier one (C-14). Of treatments that took turns, all of one attempt.
    pub(crate) fn kept(&self) -> Option<(&'a Trial, &'a Observation)> {
        let may_count = |trial: &Trial| {
            Some(trial.session) == self.session
                && (!took_turns(trial) || Some(trial.attempt) == self.attempt)
        };
        self.trials
            .iter()
            .rev()
            .find_map(|&trial| match trial.status {
                TrialStatus::Valid if may_count(trial) => {
                    Some((trial, trial.observation.as_ref()?))
                }
                _ => None,
            })
    }
}

fn took_turns(trial: &Trial) -> bool {
    let seen = trial.observation.as_ref();
    seen.is_some_and(|it| it.common.rotation.is_some())
}

/// A block on one pair in one part of the run.
type PartOfBlock<'a> = (u32, Option<&'a NodePair>, u32);

/// The part of a block that a trial belongs to.
pub(crate) fn part_of(trial: &Trial) -> PartOfBlock<'_> {
    (trial.block, trial.pair.as_ref(), trial.session)
}

/// Those in which a trial found that policies did not act. Nothing in them counts: no
/// figure without enforcement.
pub(crate) fn unenforced(trials: &[Trial]) -> HashSet<PartOfBlock<'_>> {
    let found = trials.iter().filter(|it| it.status.unenforced().is_some());
    found.map(part_of).collect()
}

/// The pairs of a plan by the names of their nodes.
struct PairPositions<'a> {
    pairing: Option<&'a Pairing>,
    positions: HashMap<&'a str, usize>,
}

impl<'a> PairPositions<'a> {
    fn new(pairing: Option<&'a Pairing>) -> Self {
        let nodes = pairing.iter().flat_map(|pairing| &pairing.nodes);
        let positions = nodes.enumerate().map(|(at, name)| (&**name, at));
        Self {
            pairing,
            positions: positions.collect(),
        }
    }

    /// The block of a trial, where each pair has blocks of its own.
    fn block_of(&self, trial: &Trial) -> Option<u32> {
        let (pairing, pair) = match (self.pairing, &trial.pair) {
            (None, None) => return Some(trial.block),
            (Some(pairing), Some(pair)) => (pairing, pair),
            _ => return None,
        };
        let position = |name: &str| self.positions.get(name).copied();
        let ends = [position(&pair.client)?, position(&pair.server)?];
        let number = pairing.number(ends)?;
        u32::try_from(trial.block as usize * pairing.pairs() + number).ok()
    }
}

/// The trials of a run, by treatment and block.
pub(crate) struct Ledger<'a> {
    slots: BTreeMap<(TreatmentId, u32), Slot<'a>>,
}

impl<'a> Ledger<'a> {
    /// Sorts trials into slots. Setting up is no trial of the plan and is left out;
    /// so are treatments or pairs that the plan does not hold.
    pub(crate) fn new(plan: &Plan, trials: &'a [Trial]) -> Self {
        let mut slots: BTreeMap<_, Slot<'a>> = BTreeMap::new();
        let pairs = PairPositions::new(plan.pairing.as_ref());
        let void = unenforced(trials);
        for trial in trials.iter().filter(|trial| trial.set_up().is_none()) {
            let Some(block) = pairs.block_of(trial) else {
                continue;
            };
            if trial.treatment < plan.treatments.len() {
                let slot = slots.entry((trial.treatment, block));
                slot.or_default().trials.push(trial);
            }
        }
        let sessions = sessions(&slots, &void);
        let attempts = attempts_in_turns(trials);
        for ((_, block), slot) in &mut slots {
            slot.session = sessions.get(block).map(|(_, session)| *session);
            let counting = slot.trials.iter();
            let mut counting = counting.filter(|it| Some(it.session) == slot.session);
            slot.attempt = counting.next().and_then(|trial| {
                let of = attempts.get(&(part_of(trial), trial.treatment))?;
                Some(of.1)
            });
            let is_void = |it: &&Trial| void.contains(&part_of(it));
            slot.is_void = slot.session.is_none() && slot.trials.iter().any(is_void);
            slot.trials.sort_by_key(|trial| trial.attempt);
        }
        Self { slots }
    }

    /// The slot of a treatment in a block, if any trial of it has finished.
    pub(crate) fn slot(&self, treatment: TreatmentId, block: u32) -> Option<&Slot<'a>> {
        self.slots.get(&(treatment, block))
    }

    /// All slots of a treatment by rising block.
    pub(crate) fn slots_of(
        &self,
        treatment: TreatmentId,
    ) -> impl Iterator<Item = (u32, &Slot<'a>)> {
        self.slots
            .range((treatment, 0)..=(treatment, u32::MAX))
            .map(|(&(_, block), slot)| (block, slot))
    }

    /// The trials of a treatment that count, by rising block.
    pub(crate) fn kept(
        &self,
        treatment: TreatmentId,
    ) -> impl Iterator<Item = (u32, &'a Trial, &'a Observation)> {
        self.slots_of(treatment).filter_map(|(block, slot)| {
            let (trial, observation) = slot.kept()?;
            Some((block, trial, observation))
        })
    }

    /// Every trial of every slot.
    pub(crate) fn trials(&self) -> impl Iterator<Item = &'a Trial> {
        self.slots
            .values()
            .flat_map(|slot| slot.trials.iter().copied())
    }
}

/// For each treatment that took turns in a part of a block, the attempt that counts, behind
/// how many of it are valid: the one with the most of them, of equals the last. All that took
/// turns together have the same one, for only what ran side by side is compared.
fn attempts_in_turns(trials: &[Trial]) -> HashMap<(PartOfBlock<'_>, TreatmentId), (usize, u32)> {
    let mut sets: HashMap<_, Vec<&Trial>> = HashMap::new();
    for trial in trials.iter().filter(|it| it.set_up().is_none()) {
        // They begin at the same moment.
        let set = (part_of(trial), trial.attempt, &*trial.started);
        sets.entry(set).or_default().push(trial);
    }
    let mut most: HashMap<_, (usize, u32)> = HashMap::new();
    for ((part, attempt, _), set) in sets {
        if !set.iter().any(|it| took_turns(it)) {
            continue;
        }
        let valid = set.iter().filter(|it| it.status == TrialStatus::Valid);
        let valid = valid.count();
        for trial in set {
            let best = most.entry((part, trial.treatment)).or_default();
            *best = (*best).max((valid, attempt));
        }
    }
    most
}

/// For each block the part of the run that has the most valid trials in it, and how
/// many; of equals the last. What is void has none. Only these are compared: between two parts of a run hours
/// may pass, and clusters that are made for it are others.
fn sessions(
    slots: &BTreeMap<(TreatmentId, u32), Slot<'_>>,
    void: &HashSet<PartOfBlock<'_>>,
) -> HashMap<u32, (usize, u32)> {
    let mut valid: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for ((_, block), slot) in slots {
        let counting = slot
            .trials
            .iter()
            .filter(|it| it.status == TrialStatus::Valid && !void.contains(&part_of(it)));
        for trial in counting {
            *valid.entry((*block, trial.session)).or_default() += 1;
        }
    }
    let mut most: HashMap<u32, (usize, u32)> = HashMap::new();
    for ((block, session), count) in valid {
        let best = most.entry(block).or_default();
        *best = (*best).max((count, session));
    }
    most
}
