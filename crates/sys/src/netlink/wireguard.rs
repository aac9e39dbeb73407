//! WireGuard devices by generic netlink (`linux/wireguard.h`).

use std::net::{IpAddr, SocketAddr};

use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP};

use super::NetlinkError;
use super::attribute::{attribute, find, named, nested};
use super::generic::{Generic, GenericFamily};
use super::raw::Verb;

const VERSION: u8 = 1;

const WG_CMD_GET_DEVICE: u8 = 0;
const WG_CMD_SET_DEVICE: u8 = 1;
const WGDEVICE_A_IFNAME: u16 = 2;
const WGDEVICE_A_PRIVATE_KEY: u16 = 3;
const WGDEVICE_A_PUBLIC_KEY: u16 = 4;
const WGDEVICE_A_FLAGS: u16 = 5;
const WGDEVICE_A_LISTEN_PORT: u16 = 6;
const WGDEVICE_A_PEERS: u16 = 8;
const WGDEVICE_F_REPLACE_PEERS: u32 = 1;
const WGPEER_A_PUBLIC_KEY: u16 = 1;
const WGPEER_A_FLAGS: u16 = 3;
const WGPEER_A_ENDPOINT: u16 = 4;
const WGPEER_A_ALLOWEDIPS: u16 = 9;
const WGPEER_F_REPLACE_ALLOWEDIPS: u32 = 2;
const WGALLOWEDIP_A_FAMILY: u16 = 1;
const WGALLOWEDIP_A_IPADDR: u16 = 2;
const WGALLOWEDIP_A_CIDR_MASK: u16 = 3;

/// A key of Curve25519.
pub type WireguardKey = [u8; 32];

/// The other end of a WireGuard tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireguardPeer {
    /// Its public key.
    pub key: WireguardKey,
    /// Where it listens.
    pub endpoint: SocketAddr,
    /// The network behind it, and the length of its prefix in bits: what may be
    /// sent to it and accepted from it.
    pub allowed: (IpAddr, u8),
}

/// A generic netlink socket that sets up WireGuard devices of the network
/// namespace in which it was opened.
#[derive(Debug)]
pub struct Wireguard {
    socket: Generic,
    family: GenericFamily,
}

impl Wireguard {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// [`NetlinkError::is_gone`] on a kernel without WireGuard.
    pub fn open() -> Result<Self, NetlinkError> {
        let socket = Generic::open()?;
        let family = socket.family("wireguard", VERSION)?;
        Ok(Self { socket, family })
    }

    /// Sets a device's private key and listening port, and returns its public
    /// key.
    pub fn set_key(
        &self,
        device: &str,
        private: &WireguardKey,
        port: u16,
    ) -> Result<WireguardKey, NetlinkError> {
        let attributes = [
            device_name(device),
            attribute(WGDEVICE_A_FLAGS, &WGDEVICE_F_REPLACE_PEERS.to_ne_bytes()),
            attribute(WGDEVICE_A_PRIVATE_KEY, private),
            attribute(WGDEVICE_A_LISTEN_PORT, &port.to_ne_bytes()),
        ];
        self.set("set the key of", device, &attributes)?;
        self.public_key(device)
    }

    /// Adds a peer to a device.
    pub fn add_peer(&self, device: &str, peer: &WireguardPeer) -> Result<(), NetlinkError> {
        let peers = nested(WGDEVICE_A_PEERS, &[nested(0, &peer.attributes())]);
        self.set("add a peer to", device, &[device_name(device), peers])
    }

    fn set(
        &self,
        action: &'static str,
        device: &str,
        attributes: &[Vec<u8>],
    ) -> Result<(), NetlinkError> {
        let verb = Verb::new(action, format!("`{device}`"));
        let command = (WG_CMD_SET_DEVICE, NLM_F_ACK);
        let body = attributes.concat();
        self.socket
            .exchange(verb, self.family, command, &body, |_| {})
    }

    fn public_key(&self, device: &str) -> Result<WireguardKey, NetlinkError> {
        let verb = || Verb::new("read the key of", format!("`{device}`"));
        let (command, name) = ((WG_CMD_GET_DEVICE, NLM_F_DUMP), device_name(device));
        let mut key = None;
        self.socket
            .exchange(verb(), self.family, command, &name, |answer| {
                let found = find(answer, WGDEVICE_A_PUBLIC_KEY);
                key = key.or(found.and_then(|bytes| bytes.try_into().ok()));
            })?;
        key.ok_or_else(|| verb().garbled("it has none"))
    }
}

impl WireguardPeer {
    fn attributes(&self) -> [Vec<u8>; 4] {
        let (network, prefix) = self.allowed;
        let (family, bytes) = match network {
            IpAddr::V4(address) => (libc::AF_INET as u16, address.octets().to_vec()),
            IpAddr::V6(address) => (libc::AF_INET6 as u16, address.octets().to_vec()),
        };
        let allowed = [
            attribute(WGALLOWEDIP_A_FAMILY, &family.to_ne_bytes()),
            attribute(WGALLOWEDIP_A_IPADDR, &bytes),
            attribute(WGALLOWEDIP_A_CIDR_MASK, &[prefix]),
        ];
        [
            attribute(WGPEER_A_PUBLIC_KEY, &self.key),
            attribute(WGPEER_A_FLAGS, &WGPEER_F_REPLACE_ALLOWEDIPS.to_ne_bytes()),
            attribute(WGPEER_A_ENDPOINT, &socket_address(self.endpoint)),
            nested(WGPEER_A_ALLOWEDIPS, &[nested(0, &allowed)]),
        ]
    }
}

/// struct sockaddr_in, struct sockaddr_in6.
fn socket_address(address: SocketAddr) -> Vec<u8> {
    let (family, length) = match address {
        SocketAddr::V4(_) => (libc::AF_INET as u16, size_of::<libc::sockaddr_in>()),
        SocketAddr::V6(_) => (libc::AF_INET6 as u16, size_of::<libc::sockaddr_in6>()),
    };
    let mut bytes = family.to_ne_bytes().to_vec();
    bytes.extend(address.port().to_be_bytes());
    match address {
        SocketAddr::V4(address) => bytes.extend(address.ip().octets()),
        SocketAddr::V6(address) => {
            bytes.extend(address.flowinfo().to_be_bytes());
            bytes.extend(address.ip().octets());
            bytes.extend(address.scope_id().to_ne_bytes());
        }
    }
    bytes.resize(length, 0);
    bytes
}

fn device_name(device: &str) -> Vec<u8> {
    named(WGDEVICE_A_IFNAME, device)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kernels without WireGuard are common, so the message is checked against
    /// its description in linux/wireguard.h.
    #[test]
    fn a_peer_is_written_as_the_kernel_reads_it() {
        let peer = WireguardPeer {
            key: [7; 32],
            endpoint: "198.18.0.2:51820".parse().expect("an address"),
            allowed: ("198.19.2.0".parse().expect("an address"), 24),
        };
        let peers = nested(WGDEVICE_A_PEERS, &[nested(0, &peer.attributes())]);
        let request = [device_name("wg0"), peers].concat();
        assert_eq!(find(&request, WGDEVICE_A_IFNAME), Some(&b"wg0\0"[..]));
        let list = find(&request, WGDEVICE_A_PEERS).expect("peers");
        let peer = find(list, 0).expect("a peer");
        assert_eq!(find(peer, WGPEER_A_PUBLIC_KEY), Some(&[7; 32][..]));
        let endpoint = find(peer, WGPEER_A_ENDPOINT).expect("an endpoint");
        assert_eq!(endpoint.len(), 16);
        assert_eq!(endpoint[2..8], [0xca, 0x6c, 198, 18, 0, 2]);
        let allowed = find(find(peer, WGPEER_A_ALLOWEDIPS).expect("a list"), 0);
        let allowed = allowed.expect("a network");
        assert_eq!(
            find(allowed, WGALLOWEDIP_A_IPADDR),
            Some(&[198, 19, 2, 0][..])
        );
        assert_eq!(find(allowed, WGALLOWEDIP_A_CIDR_MASK), Some(&[24][..]));
    }

    #[test]
    fn endpoints_of_ipv6_are_those_of_the_kernel() {
        let bytes = socket_address("[2001:2::2]:51820".parse().expect("an address"));
        assert_eq!(bytes.len(), 28);
        assert_eq!(bytes[2..8], [0xca, 0x6c, 0, 0, 0, 0]);
        assert_eq!(bytes[8..12], [0x20, 0x01, 0, 2]);
        assert_eq!(bytes[23], 2);
    }
}
