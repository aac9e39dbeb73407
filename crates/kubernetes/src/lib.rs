//! A Target in a Kubernetes cluster.
//!
//! Pods of one image, which holds nothing but the program itself, in a
//! namespace that is made for the run and deleted with it. The agents in them
//! are started by exec through the API server, so there is no control port and
//! nothing to authenticate beside what `kubectl` does. All of it is blocking
//! from outside: the one async runtime is in here.

mod alike;
mod bulk;
mod choice;
mod cleanup;
mod cluster;
mod clusters;
mod dressing;
mod enforcement;
mod error;
mod exec;
mod fingerprint;
mod fresh;
mod handed;
pub mod image;
mod launch;
mod lent;
mod level;
mod maker;
mod manifest;
mod member;
mod node_proxy;
mod nodes;
mod own;
mod path;
#[cfg(test)]
mod planted;
mod pods;
mod policies;
mod policy;
mod programmable;
mod provisioner;
mod proxy_mode;
mod reach;
mod request;
mod route;
mod seat;
#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;
mod services;
mod session;
mod site;
mod standing;
mod survive;
mod teardown;

pub use choice::ClusterLayout;
pub use cleanup::{Chosen, Left, Leftovers, choose};
pub use error::ClusterError;
pub use request::ClusterRequest;

/// The manifest that gives an account all the rights that a run in one namespace needs,
/// and no more.
pub const ROLE: &str = include_str!("role.yaml");

/// The manifest that lets an account see the nodes, which a choice among them takes.
pub const NODES_ROLE: &str = include_str!("nodes.yaml");

/// The pod from which `xray` follows packets on a node, for whoever is asked to allow it.
pub const TRACER: &str = include_str!("tracer.yaml");

/// The pod from which `run --allow-tuning` sets what is a node's, as it is made.
pub const TUNER: &str = include_str!("tuner.yaml");
