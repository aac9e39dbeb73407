//! Addresses of devices.

use std::net::IpAddr;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage,
};

use super::socket::Verb;
use super::{NetlinkError, NetlinkSocket, TableEntry, family};

/// An address as the kernel shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// Index of its device.
    pub device: u32,
    /// The address.
    pub address: IpAddr,
    /// Length of its prefix in bits.
    pub prefix: u8,
    /// Whether the kernel does not use it yet.
    pub tentative: bool,
}

/// An address to be given to a device. IPv6 addresses skip duplicate address
/// detection: they are usable at once and nothing is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressSpec {
    device: u32,
    address: IpAddr,
    prefix: u8,
}

impl AddressSpec {
    /// An address with the length of its prefix in bits, for the device with this
    /// index.
    pub fn new(device: u32, address: IpAddr, prefix: u8) -> Self {
        Self {
            device,
            address,
            prefix,
        }
    }
}

impl std::fmt::Display for AddressSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (address, prefix, device) = (self.address, self.prefix, self.device);
        write!(f, "address {address}/{prefix} of device {device}")
    }
}

impl TableEntry for AddressSpec {
    type Message = AddressMessage;
    const ADD: fn(AddressMessage) -> RouteNetlinkMessage = RouteNetlinkMessage::NewAddress;
    const DELETE: fn(AddressMessage) -> RouteNetlinkMessage = RouteNetlinkMessage::DelAddress;

    fn message(&self) -> AddressMessage {
        let address = self.address;
        let mut message = AddressMessage::default();
        message.header.index = self.device;
        message.header.prefix_len = self.prefix;
        message.attributes.push(AddressAttribute::Local(address));
        message.attributes.push(AddressAttribute::Address(address));
        message.header.family = family(address);
        if address.is_ipv6() {
            message.header.flags = AddressHeaderFlags::Nodad;
            let flags = AddressAttribute::Flags(AddressFlags::Nodad);
            message.attributes.push(flags);
        }
        message
    }
}

impl NetlinkSocket {
    /// All addresses of the namespace.
    pub fn addresses(&self) -> Result<Vec<Address>, NetlinkError> {
        let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        let mut addresses = Vec::new();
        self.query(Verb::new("list", "addresses"), request, true, |answer| {
            if let RouteNetlinkMessage::NewAddress(message) = answer {
                addresses.extend(read(&message));
            }
        })?;
        Ok(addresses)
    }
}

pub(super) fn read(message: &AddressMessage) -> Option<Address> {
    let header = &message.header;
    let mut attributes = message.attributes.iter();
    attributes.find_map(|attribute| match attribute {
        AddressAttribute::Address(address) => Some(Address {
            device: header.index,
            address: *address,
            prefix: header.prefix_len,
            tentative: header.flags.contains(AddressHeaderFlags::Tentative),
        }),
        _ => None,
    })
}
