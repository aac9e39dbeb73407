//! Addresses of devices.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::socket::Verb;
use super::{NetlinkError, Socket};

impl Socket {
    /// Gives a device an address. IPv6 addresses skip duplicate address
    /// detection: they are usable at once and nothing is sent.
    pub fn add_address(
        &self,
        device: u32,
        address: IpAddr,
        prefix: u8,
    ) -> Result<(), NetlinkError> {
        let verb = Verb::new(
            "add address",
            format!("{address}/{prefix} to device {device}"),
        );
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
        let verb = Verb::new(
            "delete address",
            format!("{address}/{prefix} of device {device}"),
        );
        let message = RouteNetlinkMessage::DelAddress(message(device, address, prefix));
        self.execute(verb, message, 0)
    }
}

fn message(device: u32, address: IpAddr, prefix: u8) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.index = device;
    message.header.prefix_len = prefix;
    message.attributes.push(AddressAttribute::Local(address));
    message.attributes.push(AddressAttribute::Address(address));
    match address {
        IpAddr::V4(_) => message.header.family = AddressFamily::Inet,
        IpAddr::V6(_) => {
            message.header.family = AddressFamily::Inet6;
            message.header.flags = AddressHeaderFlags::Nodad;
            message
                .attributes
                .push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
    }
    message
}
