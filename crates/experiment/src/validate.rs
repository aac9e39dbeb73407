//! What must hold in a plan that was read from disk.

use std::collections::HashSet;
use std::time::Duration;

use crate::ceiling::{MAX_BLOCKS, MAX_RETRIES, MAX_TRIALS};
use crate::rotation::SLICES;
use crate::{Plan, Refusal, Treatment, TreatmentId};

/// A plan that no experiment resolves to: its file was changed by hand or damaged.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PlanError {
    #[error("the plan has no treatments or no blocks; start a new run")]
    Empty,
    /// A number is above a compiled-in ceiling (S-5d).
    #[error("{what} of the plan is above what Plumbline allows; start a new run with less")]
    AboveCeiling { what: &'static str },
    #[error("workload `{workload}` of the plan: {refusal}; start a new run")]
    Workload { workload: String, refusal: Refusal },
    #[error(
        "treatment {at} of the plan says that it is {id}; the file was changed, start a new run"
    )]
    Misplaced { at: TreatmentId, id: TreatmentId },
    #[error(
        "two treatments of the plan are `{label}` with workload `{workload}`; the file was changed, start a new run"
    )]
    SameLabel { label: String, workload: String },
    /// A baseline that does not exist, is the treatment itself, or differs in more than
    /// the network or what is laid on its path.
    #[error(
        "treatment {id} (`{label}`) of the plan cannot be compared with treatment {baseline}; the file was changed, start a new run"
    )]
    Baseline {
        id: TreatmentId,
        label: String,
        baseline: TreatmentId,
    },
    /// A block that does not hold each treatment once (C-1).
    #[error(
        "block {block} of the plan does not hold every treatment once; the file was changed, start a new run"
    )]
    Block { block: usize },
}

impl Plan {
    /// Checks a plan that was read from disk: nothing in it is believed, since
    /// it makes this machine send traffic.
    ///
    /// # Errors
    ///
    /// The first thing that [`Experiment::resolve`](crate::Experiment::resolve)
    /// would not have made.
    pub fn validate(&self) -> Result<(), PlanError> {
        if self.treatments.is_empty() || self.blocks.is_empty() {
            return Err(PlanError::Empty);
        }
        self.check_size()?;
        let mut labels = HashSet::new();
        for (at, treatment) in self.treatments.iter().enumerate() {
            self.check_treatment(at, treatment)?;
            if !labels.insert((&treatment.label, treatment.task.name())) {
                return Err(PlanError::SameLabel {
                    label: treatment.label.clone(),
                    workload: treatment.task.name().to_owned(),
                });
            }
        }
        let whole: Vec<TreatmentId> = (0..self.treatments.len()).collect();
        for (block, order) in self.blocks.iter().enumerate() {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            if sorted != whole {
                return Err(PlanError::Block { block });
            }
        }
        Ok(())
    }

    fn check_size(&self) -> Result<(), PlanError> {
        let above = |what| Err(PlanError::AboveCeiling { what });
        if self.sequential.is_none() && self.blocks.len() > MAX_BLOCKS as usize {
            return above("the number of blocks");
        }
        if self.treatments.len().saturating_mul(self.blocks.len()) > MAX_TRIALS {
            return above("the number of trials");
        }
        if self.retries > MAX_RETRIES {
            return above("the number of retries");
        }
        if !SLICES.contains(&Duration::from_nanos(self.slice_ns)) {
            return above("the length of a slice, or their number,");
        }
        if self.sequential.as_ref().is_some_and(|it| !it.is_possible()) {
            return above("the number of looks, or their order,");
        }
        if !self.link.is_possible() {
            return above("the link's rate, delay, loss or MTU");
        }
        Ok(())
    }

    fn check_treatment(&self, at: TreatmentId, treatment: &Treatment) -> Result<(), PlanError> {
        if treatment.id != at {
            let id = treatment.id;
            return Err(PlanError::Misplaced { at, id });
        }
        let refused = |refusal| PlanError::Workload {
            workload: treatment.task.name().to_owned(),
            refusal,
        };
        // The rules are those of an experiment file.
        treatment.performed().check().map_err(refused)?;
        treatment.timing.check().map_err(refused)?;
        if !treatment.scene.services.is_possible() {
            return Err(PlanError::AboveCeiling {
                what: "the number of services or their endpoints",
            });
        }
        if !treatment.scene.policies.is_possible() {
            return Err(PlanError::AboveCeiling {
                what: "the number of policies or their peers",
            });
        }
        if !treatment.scene.neighbours.is_possible() {
            return Err(PlanError::AboveCeiling {
                what: "the number of neighbours",
            });
        }
        let variant = treatment.scene.variant.as_ref();
        if variant.is_some_and(|it| !it.tuning.is_possible()) {
            return Err(PlanError::AboveCeiling {
                what: "a setting of a variant",
            });
        }
        let Some(baseline) = treatment.baseline else {
            return Ok(());
        };
        let reference = self.treatments.get(baseline);
        let comparable = baseline != at
            && baseline < self.compared()
            && reference.is_some_and(|it| treatment.may_be_compared_with(it));
        if comparable {
            return Ok(());
        }
        Err(PlanError::Baseline {
            id: at,
            label: treatment.label.clone(),
            baseline,
        })
    }
}
