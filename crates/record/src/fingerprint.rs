//! The environment of a run: what must match before two runs compare (C-13).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Names, among [`Fingerprint::versions`], of what kube-proxy does on the sender's and on the
/// receiver's node: a mode, or [`KUBE_PROXY_SILENT`].
pub const KUBE_PROXY_FACTS: [&str; 2] = ["client node kube-proxy", "server node kube-proxy"];

/// What a kube-proxy is said to do that was asked and did not answer.
pub const KUBE_PROXY_SILENT: &str = "none answers";

/// What must match before two runs compare.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fingerprint {
    /// `uname -r`.
    pub kernel: String,
    /// Kernel command line.
    pub kernel_command_line: String,
    /// Machine architecture, such as `x86_64`.
    pub architecture: String,
    /// CPU model name.
    pub cpu_model: String,
    /// Microcode revision, where shown.
    pub microcode: Option<String>,
    /// Online CPUs.
    pub cpus: u32,
    /// Threads per core (SMT), where known.
    pub threads_per_core: Option<u32>,
    /// Hypervisor, where seen.
    pub hypervisor: Option<String>,
    /// CPU frequency governor, where there is one.
    pub governor: Option<String>,
    /// How soon an idle CPU has to be back, microseconds, where that is demanded and shown;
    /// with 0 they do not halt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_up_limit_us: Option<u32>,
    /// How many of the CPUs a process of idle priority kept from halting, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spinning_cpus: Option<u32>,
    /// What of the machine `plumbline tune` had set, by its names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tuned: Vec<String>,
    /// Clock source.
    pub clock_source: String,
    /// Measured cost of reading the clock, nanoseconds.
    pub clock_read_ns: u64,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Whether interrupt time is accounted apart (CONFIG_IRQ_TIME_ACCOUNTING), where known.
    pub irq_time_accounting: Option<bool>,
    /// Sysctls that change network cost.
    pub sysctls: BTreeMap<String, String>,
    /// Devices of each network's path: network name to devices.
    pub devices: BTreeMap<String, Vec<DeviceFingerprint>>,
    /// Entries in the connection tracking table and its size, where it exists.
    pub conntrack: Option<(u64, u64)>,
    /// Versions of programs that take part (servers, plugins).
    pub versions: BTreeMap<String, String>,
    /// What made the networks that a CNI configuration list describes, by the names of
    /// the networks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cni: BTreeMap<String, CniList>,
    /// Which machine this is: a digest of its identity. Only where a run can be
    /// on other machines than the run before; in a lab the machine is the user's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The other machines that take part, where the endpoints are on several:
    /// `server`, or network and side, such as `vm client`, or the name of a node in a mesh;
    /// and the other clusters, where there are several.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, Fingerprint>,
}

/// A CNI configuration list and the programs that it calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CniList {
    /// The file, as it was read.
    pub text: String,
    /// Its plugins in their order, each followed by the one that gives it addresses.
    pub plugins: Vec<CniPlugin>,
}

/// The program of a CNI plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CniPlugin {
    /// Its type, which is the name of its file.
    pub kind: String,
    /// The version that it was built as, where it says one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
}

/// One device of a path as it was set up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceFingerprint {
    /// Where it is.
    pub namespace: String,
    /// Device name.
    pub device: String,
    /// Driver, such as `veth` or `vxlan`.
    pub driver: String,
    /// MTU in bytes.
    pub mtu: u32,
    /// MTU in bytes of the routes that leave by it to the other end, where they
    /// have one of their own: the smallest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_mtu: Option<u32>,
    /// Queueing discipline.
    pub qdisc: String,
    /// Offloads that are on (names as in `ethtool -k`).
    pub offloads: Vec<String>,
}
