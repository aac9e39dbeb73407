//! The experiment file, validated and expanded into a [`Plan`].
//!
//! An [`Experiment`] is a question: factors with their levels, workloads, a
//! design. It is deterministic text and knows no machine. [`Experiment::resolve`]
//! consumes it and gives a [`Plan`]: every treatment, and the random order in
//! which each block runs them. Nothing here does I/O.

mod plan;
mod treatment;
mod workload;

pub use plan::{Plan, Timing};
pub use treatment::{Family, Placement, Treatment, TreatmentId};
pub use workload::{Arrival, Protocol, Wait, Workload, WorkloadKind};
