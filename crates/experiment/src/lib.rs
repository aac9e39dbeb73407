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
mod bit_rate;
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
mod launch;
mod limit;
mod link;
mod load;
mod looks;
pub mod metric;
mod nearest;
mod neighbours;
mod order;
mod overrides;
mod pairing;
mod plan;
mod policies;
mod precision;
mod programming;
mod provision;
mod ready_made;
mod reference;
mod refusal;
mod request;
mod requested;
mod resolve;
mod rotation;
mod scene;
mod section;
mod sequential;
mod services;
mod source;
mod spec;
pub mod study;
mod survive;
mod task;
mod timestamps;
mod timing;
mod treatment;
mod tree;
mod tuning;
pub mod typed;
mod validate;
mod variant;
mod words;
mod workload;

pub use asked::{Asked, AskedVariant, Wanted};
pub use draft::{Draft, Sought};
pub use error::SpecError;
pub use experiment::Experiment;
pub use factor::{FACTORS, Factor};
pub use key::Key;
pub use kind::{KINDS, Kind};
pub use launch::Launch;
pub use limit::{Limit, LimitError};
pub use link::Link;
pub use neighbours::{NeighbourKind, Neighbours, SharedPart};
pub use overrides::{Flag, flagged_scene, flagged_scene_like};
pub use pairing::{Ends, Layout, Pairing};
pub use plan::Plan;
pub use policies::{Enforcer, Policies, PolicyDirection, PolicyPeers, PolicyPosition, Selected};
pub use precision::Precision;
pub use programming::{ObjectChange, ProgrammedObject, Programming};
pub use provision::Provision;
pub use ready_made::ready_made;
pub use refusal::{Refusal, Spelling};
pub use request::{ArrivalProcess, WorkloadRequest};
pub use rotation::{Rotation, Slice};
pub use scene::{Family, Placement, Scene};
pub use sequential::Sequential;
pub use services::{ServicePosition, ServiceProxy, Services};
pub use survive::Survive;
pub use task::{Task, TaskKind};
pub use timestamps::stamped_share;
pub use timing::Timing;
pub use treatment::{Treatment, TreatmentId};
pub use tuning::{CongestionControl, Encryption, Qdisc, Tuning, Variant};
pub use validate::PlanError;
pub use workload::{Arrival, DriverChoice, HttpServer, Protocol, Wait, Workload, WorkloadKind};
