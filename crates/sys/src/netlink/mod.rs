//! Routing netlink, blocking: links, addresses, routes, rules, neighbours.
//!
//! A [`Socket`] stays in the network namespace it was opened in, whichever
//! thread uses it afterwards. So a namespace is configured from outside with
//! no change of namespace per call (see [`crate::namespace::Namespace`]).

mod address;
mod device;
mod error;
mod link;
mod neighbour;
mod route;
mod rule;
mod socket;

pub use self::address::Address;
pub use self::device::{DeviceStats, Link};
pub use self::error::NetlinkError;
pub use self::link::{IpvlanMode, LinkSpec, Vxlan};
pub use self::neighbour::NeighbourSpec;
pub use self::route::{Route, RouteSpec};
pub use self::rule::RuleSpec;
pub use self::socket::Socket;

/// A hardware address of an Ethernet device.
pub type Mac = [u8; 6];
