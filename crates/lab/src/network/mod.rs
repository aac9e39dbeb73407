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

use crate::need::Need;
use crate::{Hop, Journal, LabError, Topology, Underlay};

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

impl About {
    /// What most networks have: nodes joined by a link that carries the pods' own
    /// packets, of both IP versions.
    pub const PLAIN: Self = Self {
        name: "",
        aliases: &[],
        summary: "",
        needs: &[],
        underlay: Underlay::Wire,
        wire: WireFormat::Plain,
        families: Family::BOTH,
        pods: true,
    };

    /// The network that a function attaches pods to (see [`Network::attach`]).
    const fn attached_by(self, attach: Attach) -> Builtin {
        Builtin {
            about: self,
            attach,
            path_mtu: None,
        }
    }
}

type Attach = fn(&Topology, &mut Journal) -> Result<Vec<Hop>, LabError>;

/// A network that this program builds itself.
pub(crate) struct Builtin {
    about: About,
    attach: Attach,
    path_mtu: Option<fn(&Topology) -> u32>,
}

impl Builtin {
    /// With what [`Network::path_mtu`] gives.
    const fn with_path_mtu(mut self, path_mtu: fn(&Topology) -> u32) -> Self {
        self.path_mtu = Some(path_mtu);
        self
    }
}

impl Network for Builtin {
    fn about(&self) -> &About {
        &self.about
    }

    fn attach(&self, topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
        (self.attach)(topology, journal)
    }

    fn path_mtu(&self, topology: &Topology) -> Option<u32> {
        self.path_mtu.map(|path_mtu| path_mtu(topology))
    }
}
