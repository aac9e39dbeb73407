//! What a network is. Each is one file here, and one entry in the [`catalogue`].

mod aws_cni;
mod aws_vpc;
mod bridge;
mod calico;
mod calico_ipip;
mod calico_vxlan;
pub mod catalogue;
mod cilium;
pub mod cni;
mod flannel_udp;
mod geneve;
mod gre;
mod host;
mod host_gw;
mod ipip;
mod ipvlan;
mod kopeio_gre;
mod kopeio_ipsec;
mod kopeio_vxlan;
mod kube_router;
mod macvlan;
mod point;
mod romana;
mod routed;
mod shape;
mod tunnel;
mod vxlan;
mod weave;
mod weave_fastdp;
mod weave_sleeve;
mod wire;
mod wireguard;

use plumbline_experiment::Family;
use plumbline_record::CniList;

use crate::error::LabError;
use crate::hop::Hop;
use crate::journal::Journal;
use crate::need::Need;
use crate::topology::{Topology, Underlay};

pub use wire::WireFormat;

/// How packets get from one endpoint to the other.
pub trait Network: Sync {
    /// What it is called and what it takes.
    fn about(&self) -> &About;

    /// What it lacks here besides the drivers that it needs of the kernel;
    /// `None` when nothing. Changes nothing.
    fn lacks(&self) -> Result<Option<String>, LabError> {
        Ok(None)
    }

    /// The CNI configuration list that it is made by, and the programs of its plugins;
    /// `None` for a network of this program.
    fn list(&self) -> Result<Option<CniList>, LabError> {
        Ok(None)
    }

    /// Attaches the pods of a topology, and gives the devices that a packet
    /// from client to server crosses, in order. What fails half way is undone
    /// by the caller, from the journal.
    fn attach(&self, topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError>;

    /// The largest IP packet that passes from node to node, in bytes, where it is
    /// not the smallest MTU of the path's devices.
    fn path_mtu(&self, _: &Topology) -> Option<u32> {
        None
    }
}

/// What a network is called and what it takes.
#[derive(Clone, Debug)]
pub struct About {
    /// Name, as `--network` takes it.
    pub name: &'static str,
    /// Names of the systems that program this path.
    pub aliases: &'static [&'static str],
    /// The path in a sentence.
    pub summary: &'static str,
    /// Drivers that it needs.
    pub needs: &'static [&'static Need],
    /// What joins the nodes.
    pub underlay: Underlay,
    /// What the underlay carries for pods that talk across nodes.
    pub wire: WireFormat,
    /// IP versions that the real system has on this path.
    pub families: &'static [Family],
    /// Whether endpoints are in pods, as opposed to on the nodes.
    pub pods: bool,
}
