//! What is to be built, checked before anything is.

use plumbline_experiment::{Family, Link, Placement, Tuning};

use crate::agent::Launcher;
use crate::error::LabError;
use crate::link;
use crate::network::Network;
use crate::network::catalogue::Catalogue;
use crate::place::has_ipv6;
use crate::standing::StandingNetwork;
use crate::topology::{Company, Topology};

/// A path to be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSpec {
    /// Name or alias of the network.
    pub network: String,
    /// Where the endpoints are.
    pub placement: Placement,
    /// IP version.
    pub family: Family,
    /// MTU of the underlay in bytes.
    pub mtu: u32,
}

/// A path that this kernel can build.
#[derive(Clone, Copy)]
pub struct Validated {
    /// The network.
    pub network: &'static dyn Network,
    placement: Placement,
    family: Family,
    link: Link,
    /// What is set differently on it.
    tuning: Tuning,
    /// Pods beside its endpoints.
    company: Company,
}

/// The largest MTU that the kernel gives a veth (`ETH_MAX_MTU`).
const MOST_MTU: u32 = 65_535;

impl PathSpec {
    /// Checks the name, the MTU and what the kernel has. Changes nothing.
    pub fn validate(&self, catalogue: &Catalogue) -> Result<Validated, LabError> {
        let network = catalogue.find(&self.network)?;
        // IPv6 wants 1280 bytes inside any tunnel (RFC 8200, section 5), IPv4
        // 576 (RFC 791, section 3.1). The most that a network takes off is 100
        // bytes (`kopeio-vxlan`), for IPv6 80 (`wireguard`).
        let least = match self.family {
            Family::V4 => 576 + 100,
            Family::V6 => 1280 + 80,
        };
        if !(least..=MOST_MTU).contains(&self.mtu) {
            return Err(LabError::Mtu {
                mtu: self.mtu,
                least,
            });
        }
        let unsupported = |needs| LabError::Unsupported {
            what: network.about().name.into(),
            needs,
        };
        if !network.about().families.contains(&self.family) {
            let (has, lacks) = match self.family {
                Family::V4 => (6, 4),
                Family::V6 => (4, 6),
            };
            return Err(LabError::Family {
                network: network.about().name,
                has,
                lacks,
            });
        }
        if self.family == Family::V6 && !has_ipv6() {
            return Err(unsupported(
                "needs IPv6 (CONFIG_IPV6, not disabled at boot); use family 4".into(),
            ));
        }
        match catalogue.probe.missing(network)? {
            Some(needs) => Err(unsupported(needs)),
            None => Ok(Validated {
                network,
                placement: self.placement,
                family: self.family,
                link: Link {
                    mtu: self.mtu,
                    ..Link::default()
                },
                tuning: Tuning::default(),
                company: Company::default(),
            }),
        }
    }
}

impl Validated {
    /// With a link that has a rate and a distance; its MTU counts no more than
    /// the one that was validated. Changes nothing.
    ///
    /// # Errors
    ///
    /// [`LabError::Unsupported`] where the kernel cannot give a link what is
    /// asked for.
    pub fn over(self, link: Link, catalogue: &Catalogue) -> Result<Self, LabError> {
        match catalogue.probe.lacking(&link::needs(&link))? {
            Some(needs) => Err(LabError::Unsupported {
                what: format!("a link ({link})"),
                needs,
            }),
            None => Ok(Self {
                link: Link {
                    mtu: self.link.mtu,
                    ..link
                },
                ..self
            }),
        }
    }

    /// With settings of its own. Its MTU counts no more than the one that was validated.
    #[must_use]
    pub fn tuned(self, tuning: Tuning) -> Self {
        Self { tuning, ..self }
    }

    /// With pods beside its endpoints.
    #[must_use]
    pub fn beside(self, company: Company) -> Self {
        Self { company, ..self }
    }

    /// Makes nodes and pods that no network has attached yet.
    pub fn topology(self) -> Result<Topology, LabError> {
        let (about, placement) = (self.network.about(), self.placement);
        let topology = Topology::build(
            about.underlay,
            about.pods,
            self.company,
            placement,
            self.family,
            (self.link, self.tuning),
        )?;
        topology.put_between_nodes()?;
        Ok(topology)
    }

    /// Builds nodes, pods and the network. What fails half way is undone.
    pub fn build(self, launcher: &Launcher) -> Result<StandingNetwork, LabError> {
        let topology = self.topology()?;
        StandingNetwork::attach(self.network, topology, launcher)
    }
}
