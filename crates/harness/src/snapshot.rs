//! What a path has counted until one moment.

use plumbline_record::{DeviceCounters, NodeRules, ProcessCpu, ProtocolCounters};

/// Counters of a path at one moment, as running totals.
#[derive(Clone, Debug, Default)]
pub struct PathSnapshot {
    /// Devices in the order of the path.
    pub devices: Vec<DeviceCounters>,
    /// Namespaces of the path.
    pub protocols: Vec<ProtocolCounters>,
    /// What stands on the path's nodes, where something was laid there.
    pub rules: Vec<NodeRules>,
    /// CPU time of processes that forward packets of the path; `None` where it cannot be
    /// seen which they are.
    pub forwarders: Option<ProcessCpu>,
}
