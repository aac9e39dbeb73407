//! What packets go through between sender and receiver.

use std::borrow::Cow;
use std::net::IpAddr;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Enforcer, Neighbours, Policies, ServiceProxy, Services, Variant};

/// Where the two endpoints are.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Client and server on different nodes.
    #[default]
    CrossNode,
    /// Client and server on one node.
    SameNode,
}

impl Placement {
    /// As written in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CrossNode => "cross-node",
            Self::SameNode => "same-node",
        }
    }
}

/// The IP version of the path. Written `4` or `6` in files.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(try_from = "u8", into = "u8")]
pub enum Family {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both IP versions.
    pub const BOTH: &'static [Self] = &[Self::V4, Self::V6];

    /// Whether an address is of this family.
    pub fn holds(self, address: IpAddr) -> bool {
        address.is_ipv4() == (self == Self::V4)
    }
}

impl From<Family> for u8 {
    fn from(family: Family) -> Self {
        match family {
            Family::V4 => 4,
            Family::V6 => 6,
        }
    }
}

impl TryFrom<u8> for Family {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        match number {
            4 => Ok(Self::V4),
            6 => Ok(Self::V6),
            other => Err(format!("family is 4 or 6, not {other}")),
        }
    }
}

/// All that packets go through between sender and receiver. Nothing else
/// decides where a packet goes. Each field is a row of [`FACTORS`](crate::FACTORS).
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Scene {
    /// Name of the network as the target knows it; empty in a cluster that is
    /// measured with whatever network it has.
    pub network: String,
    /// What is set differently on the network, and what it is called then; left out for the
    /// network as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<Variant>,
    /// The path through a network that has several, such as `pod` or
    /// `node-port`; empty elsewhere.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Receivers that an address of the network's own spreads connections over.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub backends: u32,
    /// Where the endpoints are.
    #[serde(default)]
    pub placement: Placement,
    /// IP version.
    #[serde(default)]
    pub family: Family,
    /// Time that the receiver computes before each answer, beyond what the workload
    /// says, in nanoseconds: a difference that is known, to see whether it is found.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub planted_ns: u64,
    /// Services whose rules stand on the nodes; left out where there are none.
    #[serde(default, skip_serializing_if = "Services::is_none")]
    pub services: Services,
    /// Policies whose rules stand on the nodes; left out where there are none.
    #[serde(default, skip_serializing_if = "Policies::is_none")]
    pub policies: Policies,
    /// Who works beside the path; left out where nobody does.
    #[serde(default, skip_serializing_if = "Neighbours::is_none")]
    pub neighbours: Neighbours,
}

fn is_zero(ns: &u64) -> bool {
    *ns == 0
}

fn one() -> u32 {
    1
}

fn is_one(backends: &u32) -> bool {
    *backends == 1
}

impl Default for Scene {
    fn default() -> Self {
        Self {
            network: String::new(),
            variant: None,
            path: String::new(),
            backends: 1,
            placement: Placement::default(),
            family: Family::default(),
            planted_ns: 0,
            services: Services::default(),
            policies: Policies::default(),
            neighbours: Neighbours::default(),
        }
    }
}

impl Scene {
    /// A network, and the default of everything else.
    pub fn of(network: impl Into<String>) -> Self {
        Self {
            network: network.into(),
            ..Self::default()
        }
    }

    /// A network whose own system enforces policies in this way.
    #[must_use]
    pub fn enforced_by(mut self, enforcer: Enforcer) -> Self {
        self.policies.enforcer = enforcer;
        self
    }

    /// A network where services are served in this way if nothing else is said.
    #[must_use]
    pub fn served_by(mut self, proxy: ServiceProxy) -> Self {
        self.services.proxy = proxy;
        self
    }

    /// The same scene on another path of the network.
    #[must_use]
    pub fn by(self, path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            ..self
        }
    }

    /// The network alone as it is called: by the name of the variant, where it is one.
    pub fn network_name(&self) -> &str {
        let variant = self.variant.as_ref();
        variant.map_or(&*self.network, |it| &*it.name)
    }

    /// What the network under test is called: `vxlan`, `calico/pod`,
    /// `cluster-ip:3`, `host+2us`, `vxlan-no-gro`.
    pub fn name(&self) -> Cow<'_, str> {
        let path = self.path_name();
        let name = match (self.network_name(), &*path) {
            (network, "") => Cow::Borrowed(network),
            ("", _) => path,
            (network, path) => Cow::Owned(format!("{network}/{path}")),
        };
        match self.planted_ns {
            0 => name,
            _ => Cow::Owned(format!("{name}+{}", self.planted())),
        }
    }

    /// The planted time as words of networks end in it, such as `2us`.
    pub(crate) fn planted(&self) -> String {
        let time = SignedDuration::from_nanos_i128(self.planted_ns.into());
        format!("{time:#}").replace('µ', "u").replace(' ', "")
    }

    /// The path with its backends where there are several, such as
    /// `cluster-ip:3`; empty where the network has one path.
    pub fn path_name(&self) -> Cow<'_, str> {
        match self.backends {
            1 => Cow::Borrowed(&*self.path),
            backends => Cow::Owned(format!("{}:{backends}", self.path)),
        }
    }

    /// All but the network under test: two scenes for which this is equal may be
    /// compared, and their difference is the network's.
    #[must_use]
    pub fn but_network(&self) -> Self {
        Self {
            network: String::new(),
            variant: None,
            path: String::new(),
            backends: 1,
            planted_ns: 0,
            ..self.clone()
        }
    }

    /// Without its dressing: what is laid on a path that stands, or works beside it, and
    /// is taken off again.
    #[must_use]
    pub fn undressed(&self) -> Self {
        Self {
            services: Services::default(),
            policies: Policies::default(),
            neighbours: Neighbours::default(),
            ..self.clone()
        }
    }

    /// The same with less laid on the path, the nearest first: without neighbours, without
    /// policies too, and with nothing.
    pub(crate) fn barer(&self) -> Vec<Self> {
        let alone = Self {
            neighbours: Neighbours::default(),
            ..self.clone()
        };
        let without_policies = Self {
            policies: Policies::default(),
            ..alone.clone()
        };
        let mut barer = vec![alone, without_policies, self.undressed()];
        barer.retain(|it| it != self);
        barer
    }

    /// Whether the same rules are laid on the paths of both.
    pub fn has_rules_of(&self, other: &Self) -> bool {
        self.services == other.services && self.policies == other.policies
    }

    /// Whether rules are laid on its path.
    pub fn has_rules(&self) -> bool {
        !(self.services.is_none() && self.policies.is_none())
    }

    /// Whether packets may wait on the path for longer than a turn.
    pub(crate) fn holds_packets(&self) -> bool {
        let variant = self.variant.as_ref();
        variant.is_some_and(|it| it.tuning.holds_packets())
    }

    /// Whether the same is laid on the paths of both.
    pub fn is_dressed_as(&self, other: &Self) -> bool {
        let of = |it: &Self| (it.services, it.policies, it.neighbours);
        of(self) == of(other)
    }

    /// Whether something is laid on its path.
    pub fn is_dressed(&self) -> bool {
        self.has_rules() || !self.neighbours.is_none()
    }

    /// Without what says nothing in this scene, so that scenes that differ in nothing
    /// else are equal.
    #[must_use]
    pub(crate) fn normalised(self) -> Self {
        Self {
            services: self.services.normalised(),
            policies: self.policies.normalised(),
            neighbours: self.neighbours.normalised(),
            ..self
        }
    }

    /// Puts the network of another scene in the place of this one's, and what is its own
    /// where services and policies are left to that.
    #[must_use]
    pub fn with_network_of(&self, other: &Self) -> Self {
        Self {
            network: other.network.clone(),
            variant: other.variant.clone(),
            path: other.path.clone(),
            backends: other.backends,
            planted_ns: other.planted_ns,
            services: self.services.by_own(other.services.proxy),
            policies: self.policies.by_own(other.policies.enforcer),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scene_is_called_by_its_network_and_path() {
        assert_eq!(Scene::of("vxlan").name(), "vxlan");
        assert_eq!(Scene::default().by("pod").name(), "pod");
        let spread = Scene {
            backends: 3,
            ..Scene::of("calico").by("cluster-ip")
        };
        assert_eq!(spread.name(), "calico/cluster-ip:3");
    }

    #[test]
    fn services_are_left_to_the_network_where_nothing_is_said() {
        let network = Scene::of("vxlan").served_by(ServiceProxy::Nftables);
        let with = |count, proxy| {
            let services = Services {
                count,
                proxy,
                ..Services::default()
            };
            let asked = Scene {
                services,
                ..Scene::default()
            };
            asked.with_network_of(&network).services.proxy
        };
        assert_eq!(with(7, ServiceProxy::Own), ServiceProxy::Nftables);
        let legacy = ServiceProxy::IptablesLegacy;
        assert_eq!(with(7, legacy), legacy);
        assert_eq!(with(0, ServiceProxy::Own), ServiceProxy::Own);
    }

    #[test]
    fn scenes_of_two_networks_are_equal_but_for_these() {
        let here = Scene::of("calico").by("pod");
        assert_eq!(here.but_network(), Scene::of("flannel").but_network());
        let there = Scene {
            placement: Placement::SameNode,
            ..here.clone()
        };
        assert_ne!(here.but_network(), there.but_network());
    }
}
