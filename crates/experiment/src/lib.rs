//! The experiment file, validated and expanded into a [`Plan`].
//!
//! An [`Experiment`] is a question: factors with their levels, workloads, a
//! design. It is deterministic text and knows no machine. [`Experiment::resolve`]
//! consumes it and gives a [`Plan`]: every treatment, and the random order in
//! which each block runs them. Nothing here does I/O.
//!
//! The way through the modules: `tree` reads TOML and keeps the place of every
//! value, `overrides` changes the tree by flags, `spec` and `load` read it into
//! types, `expand` multiplies workloads by factors, `resolve` makes the plan, or a
//! `draft` of it where loads are shares of a maximum that must be measured.

mod asked;
mod budget;
pub mod ceiling;
mod draft;
mod error;
mod expand;
mod experiment;
pub mod factor;
mod key;
mod keys;
mod kind;
mod limit;
mod link;
mod load;
pub mod metric;
mod nearest;
mod order;
mod overrides;
mod pairing;
mod plan;
mod policies;
mod precision;
mod provision;
mod ready_made;
mod reference;
mod refusal;
mod request;
mod resolve;
mod rotation;
mod scene;
mod section;
mod services;
mod source;
mod spec;
pub mod study;
mod task;
mod timestamps;
mod timing;
mod treatment;
mod tree;
pub mod typed;
mod validate;
mod words;
mod workload;

pub use asked::{Asked, Wanted};
pub use draft::{Draft, Sought};
pub use error::SpecError;
pub use experiment::Experiment;
pub use factor::{FACTORS, Factor};
pub use key::Key;
pub use kind::{KINDS, Kind};
pub use limit::{Limit, LimitError};
pub use link::Link;
pub use overrides::Flag;
pub use pairing::{Ends, Layout, Pairing};
pub use plan::Plan;
pub use policies::{Enforcer, Policies, PolicyDirection, PolicyPosition, Selected};
pub use precision::Precision;
pub use provision::Provision;
pub use ready_made::ready_made;
pub use refusal::{Refusal, Spelling};
pub use request::{ArrivalProcess, WorkloadRequest};
pub use rotation::{Rotation, Slice};
pub use scene::{Family, Placement, Scene};
pub use services::{ServicePosition, ServiceProxy, Services};
pub use task::{Task, TaskKind};
pub use timestamps::stamped_share;
pub use timing::Timing;
pub use treatment::{Treatment, TreatmentId};
pub use validate::PlanError;
pub use workload::{Arrival, DriverChoice, HttpServer, Protocol, Wait, Workload, WorkloadKind};
