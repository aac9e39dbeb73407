//! Counters as the kernel keeps them, and their differences over a window.

use std::iter::Sum;
use std::ops::Add;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CPU time of a whole machine by context, in nanoseconds, over a window.
///
/// `busy_ns` is derived from the idle time, which a tickless kernel keeps to
/// the microsecond; the split by context is sampled at ticks on most kernels
/// and so is coarser (see docs/method.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuTime {
    /// Wall time of the window times the number of online CPUs.
    pub capacity_ns: u64,
    /// Capacity minus idle, iowait and steal.
    pub busy_ns: u64,
    /// User and nice.
    pub user_ns: u64,
    /// System, without interrupts.
    pub system_ns: u64,
    /// Hardware interrupts.
    pub irq_ns: u64,
    /// Soft interrupts, where most of a network's receive cost is (N-10).
    pub softirq_ns: u64,
    /// Idle while a disk request was outstanding.
    pub iowait_ns: u64,
    /// Taken by the hypervisor.
    pub steal_ns: u64,
    /// Idle.
    pub idle_ns: u64,
    /// Soft interrupt time of the CPU that had most of it (N-9).
    pub busiest_softirq_ns: u64,
}

/// CPU time of one process over a window, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessCpu {
    /// In user space.
    pub user_ns: u64,
    /// In the kernel on the process's account.
    pub system_ns: u64,
}

impl ProcessCpu {
    /// Whether there was none.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Add for ProcessCpu {
    type Output = Self;

    /// Of two processes in the same window.
    fn add(self, other: Self) -> Self {
        Self {
            user_ns: self.user_ns + other.user_ns,
            system_ns: self.system_ns + other.system_ns,
        }
    }
}

impl Sum for ProcessCpu {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

/// What one device of the path carried over a window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceCounters {
    /// Where the device is: `node1`, `pod2`, …
    pub namespace: String,
    /// Device name.
    pub device: String,
    /// Packets received, after any aggregation (GRO) below the device (N-1).
    pub rx_packets: u64,
    /// Packets sent, before any segmentation below the device.
    pub tx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets dropped on the way in.
    pub rx_dropped: u64,
    /// Packets dropped on the way out.
    pub tx_dropped: u64,
    /// Receive and transmit errors.
    pub errors: u64,
}

impl DeviceCounters {
    /// What was counted since an earlier state of the same device.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            namespace: self.namespace.clone(),
            device: self.device.clone(),
            rx_packets: self.rx_packets.saturating_sub(earlier.rx_packets),
            tx_packets: self.tx_packets.saturating_sub(earlier.tx_packets),
            rx_bytes: self.rx_bytes.saturating_sub(earlier.rx_bytes),
            tx_bytes: self.tx_bytes.saturating_sub(earlier.tx_bytes),
            rx_dropped: self.rx_dropped.saturating_sub(earlier.rx_dropped),
            tx_dropped: self.tx_dropped.saturating_sub(earlier.tx_dropped),
            errors: self.errors.saturating_sub(earlier.errors),
        }
    }
}

/// Protocol counters of one network namespace over a window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProtocolCounters {
    /// Which namespace: `node1`, `pod2`, …
    pub namespace: String,
    /// TCP segments sent again.
    pub tcp_retransmits: u64,
    /// TCP retransmission timeouts.
    pub tcp_timeouts: u64,
    /// Segments or datagrams with a wrong checksum, TCP and UDP (N-3).
    pub checksum_errors: u64,
    /// Datagrams dropped because a receive buffer was full.
    pub udp_receive_buffer_errors: u64,
    /// Datagrams dropped because a send buffer was full.
    pub udp_send_buffer_errors: u64,
    /// Fragments made or put together; any growth voids a trial (N-4).
    pub ip_fragments: u64,
}

impl ProtocolCounters {
    /// What was counted since an earlier state of the same namespace.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            namespace: self.namespace.clone(),
            tcp_retransmits: self.tcp_retransmits.saturating_sub(earlier.tcp_retransmits),
            tcp_timeouts: self.tcp_timeouts.saturating_sub(earlier.tcp_timeouts),
            checksum_errors: self.checksum_errors.saturating_sub(earlier.checksum_errors),
            udp_receive_buffer_errors: self
                .udp_receive_buffer_errors
                .saturating_sub(earlier.udp_receive_buffer_errors),
            udp_send_buffer_errors: self
                .udp_send_buffer_errors
                .saturating_sub(earlier.udp_send_buffer_errors),
            ip_fragments: self.ip_fragments.saturating_sub(earlier.ip_fragments),
        }
    }
}

/// Soft interrupt receive queues of the whole machine over a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SoftnetCounters {
    /// Packets processed.
    pub processed: u64,
    /// Packets dropped because a CPU's backlog was full.
    pub dropped: u64,
    /// Times that a poll ran out of budget with work left.
    pub squeezed: u64,
}
