//! Which trial stands for each treatment of each block.

use std::collections::BTreeMap;

use plumbline_experiment::{Plan, TreatmentId};
use plumbline_record::{Observation, Trial, TrialStatus};

/// All trials of one treatment in one block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell<'a> {
    /// In the order of attempts.
    pub(crate) trials: Vec<&'a Trial>,
}

impl<'a> Cell<'a> {
    /// The trial that counts: the last valid one, as a later attempt replaces
    /// an earlier one (C-14).
    pub(crate) fn kept(&self) -> Option<(&'a Trial, &'a Observation)> {
        self.trials
            .iter()
            .rev()
            .find_map(|&trial| match trial.status {
                TrialStatus::Valid => Some((trial, trial.observation.as_ref()?)),
                _ => None,
            })
    }
}

/// The trials of a run, by treatment and block.
pub(crate) struct Ledger<'a> {
    cells: BTreeMap<(TreatmentId, u32), Cell<'a>>,
}

impl<'a> Ledger<'a> {
    /// Sorts trials into cells. Trials of treatments that the plan does not
    /// hold are not of this run and are left out.
    pub(crate) fn new(plan: &Plan, trials: &'a [Trial]) -> Self {
        let mut cells: BTreeMap<_, Cell<'a>> = BTreeMap::new();
        for trial in trials {
            if trial.treatment < plan.treatments.len() {
                let cell = cells.entry((trial.treatment, trial.block)).or_default();
                cell.trials.push(trial);
            }
        }
        for cell in cells.values_mut() {
            cell.trials.sort_by_key(|trial| trial.attempt);
        }
        Self { cells }
    }

    /// The cell of a treatment in a block, if any trial of it has finished.
    pub(crate) fn cell(&self, treatment: TreatmentId, block: u32) -> Option<&Cell<'a>> {
        self.cells.get(&(treatment, block))
    }

    /// All cells of a treatment by rising block.
    pub(crate) fn cells_of(
        &self,
        treatment: TreatmentId,
    ) -> impl Iterator<Item = (u32, &Cell<'a>)> {
        self.cells
            .range((treatment, 0)..=(treatment, u32::MAX))
            .map(|(&(_, block), cell)| (block, cell))
    }

    /// The trials of a treatment that count, by rising block.
    pub(crate) fn kept(
        &self,
        treatment: TreatmentId,
    ) -> impl Iterator<Item = (u32, &'a Trial, &'a Observation)> {
        self.cells_of(treatment).filter_map(|(block, cell)| {
            let (trial, observation) = cell.kept()?;
            Some((block, trial, observation))
        })
    }

    /// Every trial of every cell.
    pub(crate) fn trials(&self) -> impl Iterator<Item = &'a Trial> {
        self.cells
            .values()
            .flat_map(|cell| cell.trials.iter().copied())
    }
}
