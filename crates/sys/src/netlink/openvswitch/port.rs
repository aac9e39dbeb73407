//! Ports of a datapath, by number.

/// A port of a datapath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatapathPort(pub(super) u32);

impl DatapathPort {
    /// The device that has the datapath's own name, and leads to the namespace's
    /// IP stack.
    pub const LOCAL: Self = Self(0);
}
