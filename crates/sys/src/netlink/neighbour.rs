//! Neighbours: static resolution, proxies, and forwarding entries of VXLAN.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::socket::Verb;
use super::{Mac, NetlinkError, NetlinkSocket, family};

/// A static entry of a neighbour table or forwarding database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourSpec {
    device: u32,
    entry: NeighbourEntry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NeighbourEntry {
    Permanent { address: IpAddr, mac: Mac },
    Proxy { address: IpAddr },
    Forward { mac: Mac, to: IpAddr },
}

impl NeighbourSpec {
    /// `address` is at `mac`, and is never resolved.
    pub fn permanent(device: u32, address: IpAddr, mac: Mac) -> Self {
        let entry = NeighbourEntry::Permanent { address, mac };
        Self { device, entry }
    }

    /// The device answers for `address`.
    pub fn proxy(device: u32, address: IpAddr) -> Self {
        let entry = NeighbourEntry::Proxy { address };
        Self { device, entry }
    }

    /// A VXLAN device sends frames for `mac` to the tunnel endpoint `to`.
    pub fn forward(device: u32, mac: Mac, to: IpAddr) -> Self {
        let entry = NeighbourEntry::Forward { mac, to };
        Self { device, entry }
    }

    fn message(&self) -> NeighbourMessage {
        let mut message = NeighbourMessage::default();
        message.header.ifindex = self.device;
        message.header.state = NeighbourState::Permanent;
        let (family, flags, address, mac) = match self.entry {
            NeighbourEntry::Permanent { address, mac } => {
                (family(address), NeighbourFlags::empty(), address, Some(mac))
            }
            NeighbourEntry::Proxy { address } => {
                (family(address), NeighbourFlags::Proxy, address, None)
            }
            NeighbourEntry::Forward { mac, to } => {
                (AddressFamily::Bridge, NeighbourFlags::Own, to, Some(mac))
            }
        };
        message.header.family = family;
        message.header.flags = flags;
        let address = match address {
            IpAddr::V4(address) => NeighbourAddress::Inet(address),
            IpAddr::V6(address) => NeighbourAddress::Inet6(address),
        };
        let mac = mac.map(|mac| NeighbourAttribute::LinkLayerAddress(mac.to_vec()));
        let destination = NeighbourAttribute::Destination(address);
        message
            .attributes
            .extend([destination].into_iter().chain(mac));
        message
    }
}

impl std::fmt::Display for NeighbourSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.entry {
            NeighbourEntry::Permanent { address, .. } => write!(f, "{address}")?,
            NeighbourEntry::Proxy { address } => write!(f, "proxy {address}")?,
            NeighbourEntry::Forward { to, .. } => write!(f, "forwarding to {to}")?,
        }
        write!(f, " on device {}", self.device)
    }
}

impl NetlinkSocket {
    /// Adds an entry, or replaces the existing one.
    pub fn add_neighbour(&self, neighbour: &NeighbourSpec) -> Result<(), NetlinkError> {
        let verb = Verb::new("add neighbour", neighbour.to_string());
        let message = RouteNetlinkMessage::NewNeighbour(neighbour.message());
        self.execute(verb, message, NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Deletes an entry.
    pub fn delete_neighbour(&self, neighbour: &NeighbourSpec) -> Result<(), NetlinkError> {
        let verb = Verb::new("delete neighbour", neighbour.to_string());
        let message = RouteNetlinkMessage::DelNeighbour(neighbour.message());
        self.execute(verb, message, 0)
    }
}
