//! What packets go through between sender and receiver.

use std::borrow::Cow;
use std::net::IpAddr;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Policies, Services};

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
            path: String::new(),
            backends: 1,
            placement: Placement::default(),
            family: Family::default(),
            planted_ns: 0,
            services: Services::default(),
            policies: Policies::default(),
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

    /// The same scene on another path of the network.
    #[must_use]
    pub fn by(self, path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            ..self
        }
    }

    /// What the network under test is called: `vxlan`, `calico/pod`,
    /// `cluster-ip:3`, `host+2us`.
    pub fn name(&self) -> Cow<'_, str> {
        let path = self.path_name();
        let name = match (self.network.as_str(), &*path) {
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
            path: String::new(),
            backends: 1,
            planted_ns: 0,
            ..self.clone()
        }
    }

    /// Without its dressing: what is laid on a path that stands, and taken off again.
    #[must_use]
    pub fn undressed(&self) -> Self {
        Self {
            services: Services::default(),
            policies: Policies::default(),
            ..self.clone()
        }
    }

    /// The same with less laid on the path, the nearest first: without policies, and with
    /// nothing.
    pub(crate) fn barer(&self) -> Vec<Self> {
        let without_policies = Self {
            policies: Policies::default(),
            ..self.clone()
        };
        let mut barer = vec![without_policies, self.undressed()];
        barer.retain(|it| it != self);
        barer
    }

    /// Whether the same is laid on the paths of both.
    pub fn is_dressed_as(&self, other: &Self) -> bool {
        self.services == other.services && self.policies == other.policies
    }

    /// Whether something is laid on its path.
    pub fn is_dressed(&self) -> bool {
        !(self.services.is_none() && self.policies.is_none())
    }

    /// Without what says nothing in this scene, so that scenes that differ in nothing
    /// else are equal.
    #[must_use]
    pub(crate) fn normalised(self) -> Self {
        Self {
            services: self.services.normalised(),
            policies: self.policies.normalised(),
            ..self
        }
    }

    /// Puts the network of another scene in the place of this one's.
    #[must_use]
    pub(crate) fn with_network_of(&self, other: &Self) -> Self {
        Self {
            network: other.network.clone(),
            path: other.path.clone(),
            backends: other.backends,
            planted_ns: other.planted_ns,
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
