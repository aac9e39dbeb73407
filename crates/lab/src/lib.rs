//! A Target on one machine: network namespaces joined by a network.
//!
//! Two nodes are namespaces joined by an underlay, and a pod is a further
//! namespace, attached the way the network under test attaches pods. All of it
//! happens in private namespaces (see
//! [`enter_private`](plumbline_sys::namespace::enter_private)), which `main`
//! enters before it starts a thread; nothing of the host is touched.
//!
//! A network is one file in [`network`] and one entry in the [`catalogue`].

mod addressing;
mod agent;
mod dressing;
mod ebpf;
mod endpoint;
mod entrance;
mod error;
mod hop;
mod ipsec;
mod journal;
mod lab;
mod launch;
mod link;
mod need;
pub mod network;
mod place;
mod probe;
mod renewal;
#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;
mod spec;
mod standing;
mod survive;
mod topology;
mod wireguard;

pub use addressing::Addressing;
pub use agent::Launcher;
pub use dressing::Dressing;
pub use dressing::faults::{FAULTS, PathFault};
pub use entrance::Entrance;
pub use error::LabError;
pub use hop::{Hop, Meter};
pub use journal::Journal;
pub use lab::{Lab, LabOptions};
pub use need::Need;
pub use network::catalogue::{self, Catalogue, NetworkListing, list};
pub use place::Place;
pub use spec::{PathSpec, Validated};
pub use standing::StandingNetwork;
pub use topology::{Company, Pod, Topology, UPLINK, Underlay};
