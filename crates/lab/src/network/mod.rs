//! The networks. Each is one file and one entry in [`ALL`].

mod aws_cni;
mod aws_vpc;
mod bridge;
mod calico;
mod calico_ipip;
mod calico_vxlan;
pub(crate) mod cilium;
pub mod cni;
mod flannel_udp;
mod geneve;
mod gre;
mod host;
mod host_gw;
mod ipip;
mod ipvlan;
mod kopeio_gre;
pub(crate) mod kopeio_ipsec;
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
use plumbline_sys::netlink::IpvlanMode;

use crate::error::LabError;
use crate::hop::Hop;
use crate::journal::Journal;
use crate::probe::{Need, Probe};
use crate::topology::{Topology, Underlay};

pub use wire::Wire;

/// How packets get from one endpoint to the other.
pub trait Network: Sync {
    /// What it is called and what it takes.
    fn about(&self) -> &About;

    /// What it lacks here besides the drivers that it needs of the kernel;
    /// `None` when nothing. Changes nothing.
    fn lacks(&self) -> Result<Option<String>, LabError> {
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
    pub needs: &'static [Need],
    /// What joins the nodes.
    pub underlay: Underlay,
    /// What the underlay carries for pods that talk across nodes.
    pub wire: Wire,
    /// IP versions that the real system has on this path.
    pub families: &'static [Family],
    /// Whether endpoints are in pods, as opposed to on the nodes.
    pub pods: bool,
}

/// All networks, the baseline first.
pub static ALL: &[&dyn Network] = &[
    &host::Host,
    &routed::Routed,
    &romana::Romana,
    &host_gw::HostGw,
    &kube_router::KubeRouter::OneSubnet,
    &aws_vpc::AwsVpc,
    &aws_cni::AwsCni,
    &macvlan::Macvlan,
    &ipvlan::Ipvlan(IpvlanMode::L2),
    &ipvlan::Ipvlan(IpvlanMode::L3),
    &ipvlan::Ipvlan(IpvlanMode::L3s),
    &vxlan::Vxlan,
    &flannel_udp::FlannelUdp,
    &weave_fastdp::WeaveFastdp,
    &weave_sleeve::WeaveSleeve,
    &calico_vxlan::CalicoVxlan,
    &cilium::Cilium::Native,
    &cilium::Cilium::Vxlan,
    &cilium::Cilium::Geneve,
    &kopeio_vxlan::KopeioVxlan,
    &geneve::Geneve,
    &ipip::IpIp,
    &calico_ipip::CalicoIpip,
    &kube_router::KubeRouter::TwoSubnets,
    &gre::Gre,
    &kopeio_gre::KopeioGre,
    &kopeio_ipsec::KopeioIpsec,
    &wireguard::WireGuard,
];

/// What `usual` stands for: the baseline, and one network for each way in which
/// packets get from node to node. Every network more makes all intervals of a
/// short run wider.
pub const USUAL: &[&str] = &[
    "host",
    "routed",
    "host-gw",
    "aws-vpc",
    "macvlan",
    "vxlan",
    "calico-vxlan",
];

/// The network of this name or alias.
pub fn find(name: &str) -> Result<&'static dyn Network, LabError> {
    ALL.iter()
        .copied()
        .find(|network| network.about().name == name || network.about().aliases.contains(&name))
        .ok_or_else(|| LabError::UnknownNetwork {
            name: name.into(),
            known: names().collect::<Vec<_>>().join(", "),
        })
}

/// The names of all networks.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|network| network.about().name)
}

/// A row of `plumbline list networks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Name.
    pub name: &'static str,
    /// Names of the systems that program this path.
    pub aliases: &'static [&'static str],
    /// The path in a sentence.
    pub summary: &'static str,
    /// IP versions that the real system has on this path.
    pub families: &'static [Family],
    /// What is missing here, and how to get it; `None` when it can be built.
    pub needs: Option<String>,
}

impl Listing {
    /// Whether the network can be built here.
    pub fn available(&self) -> bool {
        self.needs.is_none()
    }

    /// What is missing for these IP versions; `None` when the network can be
    /// built for each of them.
    pub fn needs_for(&self, families: &[Family]) -> Option<String> {
        let lacks = |family: &&Family| !self.families.contains(family);
        let lacking = families.iter().find(lacks).map(|family| {
            let version = u8::from(*family);
            format!("the system that it is modelled on has no IPv{version} on this path")
        });
        lacking.or_else(|| self.needs.clone())
    }
}

/// All networks, and what each lacks here. To be called in private namespaces.
pub fn list() -> Result<Vec<Listing>, LabError> {
    let probe = Probe::default();
    ALL.iter()
        .map(|network| {
            let About {
                name,
                aliases,
                summary,
                families,
                ..
            } = *network.about();
            Ok(Listing {
                name,
                aliases,
                summary,
                families,
                needs: probe.missing(*network)?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_aliases_are_unique() {
        let mut seen = std::collections::BTreeSet::new();
        for network in ALL {
            let about = network.about();
            for name in about.aliases.iter().chain([&about.name]) {
                assert!(seen.insert(*name), "{name} is there twice");
            }
        }
    }

    #[test]
    fn the_usual_networks_exist() {
        for name in USUAL {
            assert_eq!(find(name).unwrap().about().name, *name);
        }
    }

    #[test]
    fn the_networks_of_ready_made_experiments_exist() {
        for (name, text) in plumbline_experiment::ready_made() {
            let experiment = plumbline_experiment::Experiment::parse(text, name).unwrap();
            if !matches!(experiment.target(), "" | "lab") {
                // Its networks are pairs of hosts, or of clusters.
                continue;
            }
            let expand = |word: &str| match word {
                "all" | "usual" => Ok(USUAL.iter().map(|name| (*name).to_owned()).collect()),
                word => match find(word) {
                    Ok(network) => Ok(vec![network.about().name.to_owned()]),
                    Err(error) => Err(error.to_string()),
                },
            };
            if let Err(error) = experiment.draft(1, &expand) {
                panic!("{error}");
            }
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = find("token-ring").err().expect("unknown").to_string();
        assert!(
            error.contains("`token-ring`") && error.contains("host-gw"),
            "{error}"
        );
    }
}
