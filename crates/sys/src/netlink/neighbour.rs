//! Neighbours: static resolution, and forwarding entries of VXLAN.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::{Mac, TableEntry, family};

/// A static entry of a neighbour table or forwarding database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourSpec {
    device: u32,
    entry: NeighbourEntry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NeighbourEntry {
    Permanent { address: IpAddr, mac: Mac },
    Forward { mac: Mac, to: IpAddr },
}

impl NeighbourSpec {
    /// `address` is at `mac`, and is never resolved.
    pub fn permanent(device: u32, address: IpAddr, mac: Mac) -> Self {
        let entry = NeighbourEntry::Permanent { address, mac };
        Self { device, entry }
    }

    /// A VXLAN device sends frames for `mac` to the tunnel endpoint `to`.
    pub fn forward(device: u32, mac: Mac, to: IpAddr) -> Self {
        let entry = NeighbourEntry::Forward { mac, to };
        Self { device, entry }
    }
}

/// One that is there already is replaced.
impl TableEntry for NeighbourSpec {
    type Message = NeighbourMessage;
    const ADD: fn(NeighbourMessage) -> RouteNetlinkMessage = RouteNetlinkMessage::NewNeighbour;
    const DELETE: fn(NeighbourMessage) -> RouteNetlinkMessage = RouteNetlinkMessage::DelNeighbour;
    const FLAGS: u16 = NLM_F_CREATE | NLM_F_REPLACE;

    fn message(&self) -> NeighbourMessage {
        let mut message = NeighbourMessage::default();
        message.header.ifindex = self.device;
        message.header.state = NeighbourState::Permanent;
        let (family, flags, address, mac) = match self.entry {
            NeighbourEntry::Permanent { address, mac } => {
                (family(address), NeighbourFlags::empty(), address, mac)
            }
            NeighbourEntry::Forward { mac, to } => {
                (AddressFamily::Bridge, NeighbourFlags::Own, to, mac)
            }
        };
        message.header.family = family;
        message.header.flags = flags;
        let address = match address {
            IpAddr::V4(address) => NeighbourAddress::Inet(address),
            IpAddr::V6(address) => NeighbourAddress::Inet6(address),
        };
        message.attributes = vec![
            NeighbourAttribute::Destination(address),
            NeighbourAttribute::LinkLayerAddress(mac.to_vec()),
        ];
        message
    }
}

impl std::fmt::Display for NeighbourSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.entry {
            NeighbourEntry::Permanent { address, .. } => write!(f, "neighbour {address}")?,
            NeighbourEntry::Forward { to, .. } => write!(f, "neighbour forwarding to {to}")?,
        }
        write!(f, " on device {}", self.device)
    }
}
