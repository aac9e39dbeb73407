//! The networks that a lab knows: those of this program, and those that are in a
//! file. A new network is entered in [`ALL`].

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use plumbline_experiment::Family;
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use super::cni::{self, Cni};
use super::{
    About, Network, aws_cni, aws_vpc, calico_ipip, calico_vxlan, cilium, flannel_udp, geneve, gre,
    host, host_gw, ipip, ipvlan, kopeio_gre, kopeio_ipsec, kopeio_vxlan, kube_router, macvlan,
    romana, routed, vxlan, weave_fastdp, weave_sleeve, wireguard,
};
use crate::error::LabError;
use crate::probe::Probe;

/// All networks, the baseline first.
pub static ALL: &[&dyn Network] = &[
    &host::NETWORK,
    &routed::NETWORK,
    &romana::NETWORK,
    &host_gw::NETWORK,
    &kube_router::ONE_SUBNET,
    &aws_vpc::NETWORK,
    &aws_cni::NETWORK,
    &macvlan::NETWORK,
    &ipvlan::L2,
    &ipvlan::L3,
    &ipvlan::L3S,
    &vxlan::NETWORK,
    &flannel_udp::NETWORK,
    &weave_fastdp::NETWORK,
    &weave_sleeve::NETWORK,
    &calico_vxlan::NETWORK,
    &cilium::NATIVE,
    &cilium::VXLAN,
    &cilium::GENEVE,
    &kopeio_vxlan::NETWORK,
    &geneve::NETWORK,
    &ipip::NETWORK,
    &calico_ipip::NETWORK,
    &kube_router::TWO_SUBNETS,
    &gre::NETWORK,
    &kopeio_gre::NETWORK,
    &kopeio_ipsec::NETWORK,
    &wireguard::NETWORK,
];

/// What `usual` stands for: the baseline, and one network for each way in which
/// packets get from node to node. Each further network makes all intervals of
/// a short run wider.
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

/// Knows networks by name, and whether they can be built here.
pub struct Catalogue {
    pub(crate) probe: Probe,
    /// Networks in files, by their names.
    files: RefCell<BTreeMap<String, &'static Cni>>,
    cni_directories: Vec<PathBuf>,
}

impl Default for Catalogue {
    fn default() -> Self {
        Self::new(cni::default_directories())
    }
}

impl Catalogue {
    /// CNI plugins are looked for in these directories.
    pub fn new(cni_directories: Vec<PathBuf>) -> Self {
        Self {
            probe: Probe::default(),
            files: RefCell::default(),
            cni_directories,
        }
    }

    /// The network of this name or alias, or of the configuration list that
    /// `cni:FILE` or `cni:FILE@DIR` names. A file is read once for each name.
    ///
    /// # Errors
    ///
    /// [`LabError::UnknownNetwork`], or why the file is no such list.
    pub fn find(&self, name: &str) -> Result<&'static dyn Network, LabError> {
        if !name.starts_with(cni::PREFIX) {
            return find(name);
        }
        let mut files = self.files.borrow_mut();
        if let Some(known) = files.get(name) {
            return Ok(*known);
        }
        // Networks live as long as the program; it is given a handful of files.
        let name: &'static str = name.to_owned().leak();
        let network = Cni::read(name, &self.cni_directories)?;
        let network: &'static Cni = Box::leak(Box::new(network));
        files.insert(name.into(), network);
        Ok(network)
    }
}

/// A row of `plumbline list networks`.
#[derive(Clone, Debug)]
pub struct NetworkListing {
    /// The network.
    pub about: &'static About,
    /// What is missing here, and how to get it; `None` when it can be built.
    pub needs: Option<String>,
}

/// The names of the fields are an interface: scripts read them.
impl Serialize for NetworkListing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("NetworkListing", 5)?;
        fields.serialize_field("name", self.about.name)?;
        fields.serialize_field("aliases", self.about.aliases)?;
        fields.serialize_field("available", &self.available())?;
        fields.serialize_field("needs", &self.needs)?;
        fields.serialize_field("description", self.about.summary)?;
        fields.end()
    }
}

impl NetworkListing {
    /// Whether the network can be built here.
    pub fn available(&self) -> bool {
        self.needs.is_none()
    }

    /// What is missing for these IP versions; `None` when the network can be
    /// built for each of them.
    pub fn needs_for(&self, families: &[Family]) -> Option<String> {
        let lacks = |family: &&Family| !self.about.families.contains(family);
        let lacking = families.iter().find(lacks).map(|family| {
            let version = u8::from(*family);
            format!("the system that it is modelled on has no IPv{version} on this path")
        });
        lacking.or_else(|| self.needs.clone())
    }
}

/// All networks, and what each lacks here. To be called in private namespaces.
pub fn list() -> Result<Vec<NetworkListing>, LabError> {
    let probe = Probe::default();
    let listings = ALL.iter().map(|network| {
        Ok(NetworkListing {
            about: network.about(),
            needs: probe.missing(*network)?,
        })
    });
    listings.collect()
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
    fn a_network_has_the_enforcer_of_its_system() {
        use plumbline_experiment::Enforcer;

        for network in ALL {
            let about = network.about();
            let system = match about.name {
                "routed" => "calico",
                name => name,
            };
            let wanted = match system.split('-').next() {
                Some("calico") => Enforcer::CalicoIptables,
                Some("romana") => Enforcer::Romana,
                Some("kube") => Enforcer::KubeRouter,
                Some("weave") => Enforcer::WeaveNpc,
                Some("cilium") => Enforcer::Cilium,
                _ => Enforcer::Nft,
            };
            assert_eq!(about.enforcer, wanted, "{}", about.name);
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
        use plumbline_experiment::{Asked, Scene};

        for (name, text) in plumbline_experiment::ready_made() {
            let experiment = plumbline_experiment::Experiment::parse(text, name).unwrap();
            if !matches!(experiment.target(), "" | "lab") {
                // Its networks are pairs of hosts, or of clusters.
                continue;
            }
            let expand = |asked: &Asked<'_>| match asked.network.name() {
                None => Ok(USUAL.iter().copied().map(Scene::of).collect()),
                Some(word) => match find(word) {
                    Ok(network) => Ok(vec![Scene::of(network.about().name)]),
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
