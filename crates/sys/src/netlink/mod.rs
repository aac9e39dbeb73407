//! Netlink, blocking: links, addresses, routes, rules, neighbours, queueing
//! disciplines, IPsec, nftables.
//!
//! A [`NetlinkSocket`] stays in the network namespace it was opened in, whichever
//! thread uses it afterwards. So a namespace is configured from outside with
//! no change of namespace per call (see [`crate::namespace::Namespace`]).

mod address;
mod attribute;
mod device;
mod entry;
mod error;
mod filter;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod generic;
mod ipvs;
mod link;
mod neighbour;
mod nftables;
mod openvswitch;
mod qdisc;
mod raw;
mod route;
mod rule;
mod socket;
mod tunnel;
mod wireguard;
mod xfrm;

pub use self::address::{Address, AddressSpec};
pub use self::attribute::octets;
pub use self::device::{DeviceInfo, VxlanState};
pub use self::entry::TableEntry;
pub use self::error::NetlinkError;
pub use self::filter::Hooks;
pub use self::ipvs::Ipvs;
pub use self::link::{CollectMetadata, LinkNumber, LinkSpec, VxlanProperties};
pub use self::neighbour::NeighbourSpec;
pub use self::nftables::{NftElement, NftExpression, NftFamily, NftVerdict, NftWriter};
pub use self::openvswitch::{Datapath, DatapathPort, Flow, FlowAction, FlowTunnel};
pub use self::qdisc::{Distance, Parent, TokenBucket};
pub use self::route::{Route, RouteSpec};
pub use self::rule::{RuleSelector, RuleSpec};
pub use self::socket::NetlinkSocket;
pub use self::tunnel::TunnelEnds;
pub use self::wireguard::{Wireguard, WireguardKey, WireguardPeer};
pub use self::xfrm::{EspCipher, EspPolicy, EspState, PolicyDirection, XfrmSocket};

pub use netlink_packet_route::link::IpVlanMode;

/// A hardware address of an Ethernet device.
pub type Mac = [u8; 6];

fn family(address: std::net::IpAddr) -> netlink_packet_route::AddressFamily {
    match address.is_ipv4() {
        true => netlink_packet_route::AddressFamily::Inet,
        false => netlink_packet_route::AddressFamily::Inet6,
    }
}
