//! What a launched pod is told, and what its peer is asked.

use std::env;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// The variable of the environment that has the [`LaunchedOrder`] of a pod, as JSON.
pub const LAUNCHED: &str = "PLUMBLINE_LAUNCHED";

/// Names the variable by which a container in somebody else's pod knows for how many seconds it
/// stays there.
pub const LENT: &str = "PLUMBLINE_LENT";

/// What the program of a launched pod is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchedOrder {
    /// Who waits for it: the only address that it sends to.
    pub peer: SocketAddr,
    /// A word of the launch, which nobody else knows.
    pub launch: String,
    /// Its number in that.
    pub pod: u32,
}

impl LaunchedOrder {
    /// Of this process; `None` where it is no launched pod's.
    pub fn of_process() -> Option<Self> {
        serde_json::from_str(&env::var(LAUNCHED).ok()?).ok()
    }
}

/// What pods to wait for, and where.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MeetOrder {
    /// An address of this machine; the kernel picks the port.
    pub address: IpAddr,
    /// The word of the launch. What comes without it is nobody's.
    pub launch: String,
}

/// What a peer does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeetingPhase {
    /// Waits for pods, and asks those that came.
    Begins,
    /// Asks all that came, again and again: they end.
    Ends,
    /// Nothing.
    #[default]
    Over,
}

/// What a peer saw of a pod, by the agent's clock, nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetPod {
    /// Its number in the launch.
    pub pod: u32,
    /// When its network namespace was made; null where it does not see that.
    pub namespace_ns: Option<u64>,
    /// When the first process of its sandbox began; null where it does not see that.
    pub sandbox_ns: Option<u64>,
    /// When its program began.
    pub begun_ns: u64,
    /// When its first packet came.
    pub first_out_ns: u64,
    /// When the first question reached it; null where it has not said so.
    pub first_in_ns: Option<u64>,
    /// When its address answered last, while it ended: also that nobody listens there.
    pub answered_ns: Option<u64>,
}
