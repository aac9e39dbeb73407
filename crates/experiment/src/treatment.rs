//! One combination of factor levels.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Timing, Workload};

/// Index of a treatment in [`Plan::treatments`](crate::Plan::treatments).
pub type TreatmentId = usize;

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

/// One combination of levels: what a trial runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Treatment {
    /// Position in the plan.
    pub id: TreatmentId,
    /// Unique name in tables, such as `vxlan`, or `vxlan same-node` where
    /// placement varies too, or `host-gw#2` for the second copy in an A/A
    /// experiment. Says nothing of the workload: treatments of different
    /// workloads share labels, `label` and `workload.name` together are unique.
    pub label: String,
    /// Name of the network as the target knows it.
    pub network: String,
    /// Where the endpoints are.
    pub placement: Placement,
    /// IP version.
    pub family: Family,
    /// The load.
    pub workload: Workload,
    /// Phases of each trial.
    pub timing: Timing,
    /// The treatment that this one is compared with; `None` for a baseline itself.
    pub baseline: Option<TreatmentId>,
}
