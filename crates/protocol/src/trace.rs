//! What programs at the kernel's tracepoints are asked for, and what they saw.

use serde::{Deserialize, Serialize};

/// What an agent does to follow requests through its kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "trace", rename_all = "kebab-case")]
pub enum TraceOrder {
    /// Say which namespace it is in. This takes no right.
    Place,
    /// Follow these, and no others any more.
    Follow(Followed),
    /// End, and say what was seen.
    Tell,
    /// See which datagrams are dropped that have payloads of so many bytes which begin so.
    WatchDrops {
        /// How they begin.
        key: [u8; 8],
        /// How long they are.
        payload_bytes: u32,
    },
    /// End that, and say which were.
    TellDrops,
}

/// What came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "traced", rename_all = "kebab-case")]
pub enum TraceAnswer {
    /// The namespace.
    Place(TracedPlace),
    /// The programs run.
    Follows,
    /// What was seen.
    Seen(Traces),
    /// Which datagrams were dropped.
    Dropped {
        /// By place and reason.
        drops: Vec<DroppedDatagrams>,
    },
    /// The kernel or the rights lack something.
    Lacks {
        /// What is missing, and how to get it.
        needs: String,
    },
}

/// A namespace with its devices, by the numbers of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedPlace {
    /// A random number that every kernel draws at its start: two places with the same
    /// number are of one kernel.
    pub boot: String,
    /// Its inode.
    pub namespace: u32,
    /// Its devices.
    pub devices: Vec<TracedDevice>,
}

/// A device, as far as it tells what crosses it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedDevice {
    /// Its number in its namespace.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its driver, such as `veth`; empty for loopback and for hardware.
    pub kind: String,
    /// Its queueing discipline.
    pub discipline: String,
    /// The driver of the device that it is a port of, such as `bridge`.
    pub port_of: Option<String>,
}

/// What the kernel did with a packet, or with its message, when it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hook {
    /// A program handed it to TCP.
    Sent,
    /// It is at the queueing discipline of a device.
    Queued,
    /// It is at the driver of a device.
    Transmitted,
    /// It was put into the receive queue of a CPU.
    Arrived,
    /// It was taken from there.
    Received,
    /// It was looked up in a routing table.
    Routed,
    /// It is at the socket that it is for.
    Delivered,
    /// That socket tells who waits for it.
    Ready,
    /// A program has it.
    Read,
    /// It came to one of netfilter's hooks.
    Filtering,
    /// It left that.
    Filtered,
}

impl Hook {
    /// The hook that the programs call by this number; `None` for one that they do not have.
    pub fn of(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::Sent,
            2 => Self::Queued,
            3 => Self::Transmitted,
            4 => Self::Arrived,
            5 => Self::Received,
            6 => Self::Routed,
            7 => Self::Delivered,
            8 => Self::Ready,
            9 => Self::Read,
            10 => Self::Filtering,
            11 => Self::Filtered,
            _ => return None,
        })
    }
}

/// What of a journey is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FollowedPart {
    /// All of it: both ends are on one kernel.
    #[default]
    Whole,
    /// What the sender's kernel sees.
    Sender,
    /// What the receiver's kernel sees.
    Receiver,
}

/// Whom to follow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Followed {
    /// What of each journey.
    pub part: FollowedPart,
    /// Inode of the sender's namespace.
    pub client: u32,
    /// Port that it sends to.
    pub port: u16,
    /// Inode of the receiver's namespace; counts for the receiver's part only.
    pub server: u32,
    /// Port that the receiver listens on; counts as `server` does.
    pub listening: u16,
    /// One of so many requests is followed. 0: a rehearsal, in which the programs are called and
    /// read the clock at each place, and follow nobody.
    pub one_in: u64,
    /// Journeys that took longer are left out, nanoseconds.
    pub longest_ns: u64,
    /// How long after the first requests none is followed, nanoseconds.
    pub warm_up_ns: u64,
    /// Inodes of the namespaces in which packets are seen; empty for all of them.
    pub inside: Vec<u32>,
}

/// A place by its numbers, and the time that journeys took to get there from the one before,
/// summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedStep {
    /// Inode of the namespace.
    pub namespace: u32,
    /// Number of the device in it; 0 at a socket.
    pub device: u32,
    /// What was done there.
    pub hook: Hook,
    /// Whether it is the first sight of what comes from another kernel.
    pub comes: bool,
    /// Of all journeys, nanoseconds.
    pub sum_ns: u64,
}

/// Journeys, or parts of them, that were seen at the same places in the same order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedRoute {
    /// How many.
    pub journeys: u64,
    /// From their first step to their last, summed up, nanoseconds; the time of the programs
    /// that saw them is in it, and in no step.
    pub lasted_ns: u64,
    /// The places.
    pub steps: Vec<TracedStep>,
}

/// Packets that were dropped on a journey, last seen at a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedDrop {
    /// Inode of the namespace.
    pub namespace: u32,
    /// Number of the device in it.
    pub device: u32,
    /// What was done there.
    pub hook: Hook,
    /// The kernel's word for why.
    pub reason: String,
    /// How many.
    pub packets: u64,
}

/// Datagrams of a probe that the kernel dropped in one place for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedDatagrams {
    /// Inode of the namespace.
    pub namespace: u32,
    /// Number of the device in it; 0 before one was chosen.
    pub device: u32,
    /// The kernel's word for why, of its `enum skb_drop_reason`.
    pub reason: String,
    /// How many.
    pub packets: u64,
}

/// What was seen.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Traces {
    /// The sender's requests past the first ones that were answered within the limit, followed or
    /// not; 0 by the receiver's part, and in a rehearsal.
    pub answered: u64,
    /// From the first sight of each until the sender had read the answer, summed up over these,
    /// nanoseconds; the time of the programs is in it.
    pub answered_ns: u64,
    /// Whole journeys, or the part that was asked for.
    pub routes: Vec<TracedRoute>,
    /// What was dropped.
    pub drops: Vec<TracedDrop>,
    /// Journeys above the limit.
    pub too_long: u64,
    /// Journeys whose packet was lost sight of.
    pub lost: u64,
    /// Journeys with more steps, or of more kinds, than there is room for.
    pub no_room: u64,
}
