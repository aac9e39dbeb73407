//! What a tracer is asked for, and what it saw.

use crate::place::Hook;

/// Whom to follow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Followed {
    /// Inode of the sender's namespace.
    pub(crate) client: u32,
    /// Port that it sends to.
    pub(crate) port: u16,
    /// One of so many requests is followed.
    pub(crate) one_in: u64,
    /// Journeys that took longer are left out, nanoseconds.
    pub(crate) longest_ns: u64,
}

/// A place by its numbers, and the time that journeys took to get there from the one before,
/// summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TracedStep {
    pub(crate) namespace: u32,
    pub(crate) device: u32,
    pub(crate) hook: Hook,
    pub(crate) sum_ns: u64,
}

/// Journeys that were seen at the same places in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TracedRoute {
    pub(crate) journeys: u64,
    pub(crate) steps: Vec<TracedStep>,
}

/// Packets that were dropped on a journey, last seen at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TracedDrop {
    pub(crate) namespace: u32,
    pub(crate) device: u32,
    pub(crate) hook: Hook,
    /// The kernel's word for why.
    pub(crate) reason: String,
    pub(crate) packets: u64,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traces {
    pub(crate) routes: Vec<TracedRoute>,
    pub(crate) drops: Vec<TracedDrop>,
    /// Journeys above the limit.
    pub(crate) too_long: u64,
    /// Journeys whose packet was lost sight of.
    pub(crate) lost: u64,
    /// Journeys with more steps, or of more kinds, than there is room for.
    pub(crate) no_room: u64,
}
