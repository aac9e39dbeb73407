//! Addresses of devices.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage,
};

use super::socket::Verb;
use super::{NetlinkError, NetlinkSocket, family};

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

    /// Gives a device an address. IPv6 addresses skip duplicate address
    /// detection: they are usable at once and nothing is sent.
    pub fn add_address(
        &self,
        device: u32,
        address: IpAddr,
        prefix: u8,
    ) -> Result<(), NetlinkError> {
        let object = format!("{address}/{prefix} to device {device}");
        let verb = Verb::new("add address", object);
        let message = RouteNetlinkMessage::NewAddress(message(device, address, prefix));
        self.execute(verb, message, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Takes an address from a device.
    pub fn delete_address(
        &self,
        device: u32,
        address: IpAddr,
        prefix: u8,
    ) -> Result<(), NetlinkError> {
        let object = format!("{address}/{prefix} of device {device}");
        let verb = Verb::new("delete address", object);
        let message = RouteNetlinkMessage::DelAddress(message(device, address, prefix));
        self.execute(verb, message, 0)
    }
}

fn read(message: &AddressMessage) -> Option<Address> {
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

fn message(device: u32, address: IpAddr, prefix: u8) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.index = device;
    message.header.prefix_len = prefix;
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
