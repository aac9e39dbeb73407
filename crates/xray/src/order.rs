//! How to look.

use plumbline_experiment::Link;
use plumbline_tracer::AtSockets;

/// How to look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct XrayOrder {
    /// How often each network is looked at.
    pub rounds: usize,
    /// One of so many requests is followed.
    pub one_in: u64,
    /// By taps, whatever else could be had.
    pub taps: bool,
    /// Netfilter's hooks on the nodes apart.
    pub netfilter: bool,
    /// Each node's half of the way apart, though one kernel could see all of it.
    pub by_node: bool,
    /// What is seen at sockets at most, though the kernel may show more.
    pub at_sockets: Option<AtSockets>,
    /// What joins the nodes of a lab.
    pub link: Link,
}

impl Default for XrayOrder {
    fn default() -> Self {
        Self {
            rounds: 12,
            one_in: 8,
            taps: false,
            netfilter: false,
            by_node: false,
            at_sockets: None,
            link: Link::default(),
        }
    }
}
