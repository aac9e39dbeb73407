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

use std::sync::Arc;

use plumbline_experiment::{Enforcer, Family, Scene, ServiceProxy};
use plumbline_record::CniList;

use crate::need::Need;
use crate::{Hop, Journal, LabError, Pod, Topology, UPLINK, Underlay};

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

    /// Whether a further pod can be attached while it stands.
    fn takes_pods(&self) -> bool {
        false
    }

    /// How many addresses of a node further pods can have: so many that other nodes have a
    /// route to, of those that no pod that stands has.
    fn room(&self) -> usize {
        ROOM
    }

    /// Attaches a further pod while it stands, and gives what takes the pod off again. The
    /// journal is that pod's alone.
    ///
    /// # Errors
    ///
    /// A network that [takes none](Self::takes_pods), and a step that failed; what it left
    /// goes with the pod's namespace.
    fn join(&self, _: &Topology, _: &Pod, _: &mut Journal) -> Result<Leave, LabError> {
        Err(takes_no_pods(self.about().name))
    }

    /// The largest IP packet that passes from node to node, in bytes, where it is
    /// not the smallest MTU of the path's devices.
    fn path_mtu(&self, _: &Topology) -> Option<u32> {
        None
    }
}

/// Addresses of a node's subnet for pods that come and go.
const ROOM: usize = 190;

/// Takes a pod off its network, and notes the steps in the journal.
pub type Leave = Box<dyn FnOnce(&mut Journal) -> Result<(), LabError> + Send>;

/// Why no pod can be launched on a network.
pub(crate) fn takes_no_pods(network: &str) -> LabError {
    LabError::Unsupported {
        what: format!("launching pods on `{network}`"),
        needs: "a network that attaches one pod after the other while it stands, as the bridges, \
                the networks of Calico and Romana, macvlan, ipvlan and `cni:FILE` do; this one has no pods, \
                or makes all of them together"
            .to_owned(),
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
    /// How the real system enforces policies; `nft` where it enforces none.
    pub enforcer: Enforcer,
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
        enforcer: Enforcer::Nft,
    };

    /// The network as a level of an experiment.
    pub fn scene(&self) -> Scene {
        scene(self.name, self.enforcer)
    }

    /// The network that a function attaches pods to (see [`Network::attach`]).
    const fn attached_by(self, attach: Attach) -> Builtin {
        Builtin {
            about: self,
            attach,
            join: None,
            room: ROOM,
            path_mtu: None,
        }
    }
}

/// A network as a level of an experiment, with the system that enforces policies there.
/// Services are served as kube-proxy does it by default.
pub(crate) fn scene(network: impl Into<String>, enforcer: Enforcer) -> Scene {
    let proxy = ServiceProxy::IptablesLegacy;
    Scene::of(network).enforced_by(enforcer).served_by(proxy)
}

type Attach = fn(&Topology, &mut Journal) -> Result<Vec<Hop>, LabError>;

/// Attaches a further pod, whose device goes with all that was made for it.
type Join = fn(&Topology, &Pod, &mut Journal) -> Result<(), LabError>;

/// A network that this program builds itself.
pub(crate) struct Builtin {
    about: About,
    attach: Attach,
    join: Option<Join>,
    room: usize,
    path_mtu: Option<fn(&Topology) -> u32>,
}

impl Builtin {
    /// With what [`Network::join`] does.
    const fn joined_by(mut self, join: Join) -> Self {
        self.join = Some(join);
        self
    }

    /// With what [`Network::room`] gives.
    const fn with_room(mut self, room: usize) -> Self {
        self.room = room;
        self
    }

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

    fn takes_pods(&self) -> bool {
        self.join.is_some()
    }

    fn room(&self) -> usize {
        self.room
    }

    fn join(
        &self,
        topology: &Topology,
        pod: &Pod,
        journal: &mut Journal,
    ) -> Result<Leave, LabError> {
        let join = self.join.ok_or_else(|| takes_no_pods(self.about.name))?;
        join(topology, pod, journal)?;
        let place = Arc::clone(&pod.place);
        Ok(Box::new(move |journal: &mut Journal| {
            place.ask(|netlink| netlink.delete_link(UPLINK))?;
            journal.done("device");
            Ok(())
        }))
    }

    fn path_mtu(&self, topology: &Topology) -> Option<u32> {
        self.path_mtu.map(|path_mtu| path_mtu(topology))
    }
}
