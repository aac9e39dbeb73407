//! IP packets in UDP between TUN devices, as Flannel's `udp` backend carries them
//! (flannel-io/flannel@1ba5635, `pkg/backend/udp/proxy_amd64.c`): one thread, one
//! buffer, packets of both sides by turns for as long as either has one, and only
//! then a wait for both. A packet is the whole datagram; there is no header of
//! the protocol's own. The TTL goes down on either side.
//!
//! Left out: the ICMP answer for packets to no known node, which no packet of a
//! lab needs, and the control socket by which routes come and go.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use plumbline_sys::forwarder::{Carrier, packets};
use plumbline_sys::tun::Tun;

/// The shortest IPv4 header, in bytes.
const HEADER: usize = 20;

/// Where packets for a network go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProxyRoute {
    network: u32,
    mask: u32,
    node: SocketAddrV4,
}

impl ProxyRoute {
    /// Packets for a network, by its address and the length of its prefix in bits, go
    /// to `node` and its UDP port.
    pub(super) fn new(network: Ipv4Addr, prefix: u8, node: SocketAddrV4) -> Self {
        let mask = u32::MAX
            .checked_shl(32 - u32::from(prefix.min(32)))
            .unwrap_or(0);
        Self {
            network: u32::from(network) & mask,
            mask,
            node,
        }
    }
}

/// Carries what comes from a device by a socket to the nodes of its routes, and what
/// comes from them into the device.
pub(super) struct Proxy {
    tun: Tun,
    socket: UdpSocket,
    routes: Vec<ProxyRoute>,
    buffer: Vec<u8>,
}

impl Proxy {
    /// `mtu`, in bytes, is the longest packet.
    pub(super) fn new(tun: Tun, socket: UdpSocket, routes: Vec<ProxyRoute>, mtu: u32) -> Self {
        Self {
            tun,
            socket,
            routes,
            buffer: vec![0; mtu as usize],
        }
    }

    /// Takes a packet from the device; says whether there was one.
    fn send(&mut self) -> bool {
        let Some(length @ HEADER..) = packets::read(&self.tun, &mut self.buffer) else {
            return false;
        };
        let Some(packet) = self.buffer.get_mut(..length) else {
            return true;
        };
        if let Some(node) = find(&mut self.routes, packet)
            && hop(packet)
        {
            packets::send_to(&self.socket, packet, node);
        }
        true
    }

    /// Takes a packet from the other nodes; says whether there was one.
    fn receive(&mut self) -> bool {
        let Some(length @ HEADER..) = packets::receive(&self.socket, &mut self.buffer) else {
            return false;
        };
        if let Some(packet) = self.buffer.get_mut(..length)
            && hop(packet)
        {
            packets::write(&self.tun, packet);
        }
        true
    }
}

impl Carrier for Proxy {
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.tun.as_fd(), self.socket.as_fd()]
    }

    fn carry(&mut self) {
        while packets::wait([&self.tun, &self.socket]) {
            // As long as there are packets, asking for one in vain now and then costs
            // less than waiting for each.
            loop {
                let sent = self.send();
                let received = self.receive();
                if !sent && !received {
                    break;
                }
            }
        }
    }
}

/// The node of a packet's destination. The route moves to the front: packets to
/// one destination come one after the other.
fn find(routes: &mut [ProxyRoute], packet: &[u8]) -> Option<SocketAddrV4> {
    let &[a, b, c, d] = packet.get(16..20)? else {
        return None;
    };
    let destination = u32::from_be_bytes([a, b, c, d]);
    let matches = |it: &ProxyRoute| destination & it.mask == it.network;
    let at = routes.iter().position(matches)?;
    routes.swap(0, at);
    routes.first().map(|route| route.node)
}

/// Takes one from a packet's TTL and mends its checksum (RFC 1624); says whether
/// it may go on.
fn hop(packet: &mut [u8]) -> bool {
    let Some([.., ttl, _protocol, high, low]) = packet.first_chunk_mut::<12>() else {
        return false;
    };
    *ttl = ttl.saturating_sub(1);
    if *ttl == 0 {
        return false;
    }
    let sum = u32::from(u16::from_be_bytes([*high, *low])) + 0x100;
    // The carry comes round; all ones and all zeroes are the same sum.
    let sum = (sum & 0xffff) + (sum >> 16);
    [*high, *low] = (sum as u16).to_be_bytes();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksum(header: &[u8]) -> u16 {
        let words = header
            .chunks(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum: u32 = words.sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        !((sum & 0xffff) + (sum >> 16)) as u16
    }

    #[test]
    fn the_checksum_stays_right_for_every_ttl_and_many_headers() {
        for identification in (0..=u16::MAX).step_by(97) {
            for ttl in 2..=255 {
                let mut header = [
                    0x45, 0, 0, 60, 0, 0, 0x40, 0, ttl, 6, 0, 0, 198, 19, 1, 2, 198, 19, 2, 2,
                ];
                header[4..6].copy_from_slice(&identification.to_be_bytes());
                let sum = checksum(&header).to_be_bytes();
                header[10..12].copy_from_slice(&sum);
                assert!(hop(&mut header));
                assert_eq!(header[8], ttl - 1);
                assert_eq!(checksum(&header), 0, "{identification} {ttl}");
            }
        }
    }

    #[test]
    fn a_packet_at_its_end_goes_nowhere() {
        let mut header = [0; HEADER];
        header[8] = 1;
        assert!(!hop(&mut header));
        assert!(!hop(&mut [0; 3]));
    }

    #[test]
    fn the_route_that_was_used_is_the_first() {
        let route = |third, last| {
            let node = SocketAddrV4::new(Ipv4Addr::new(198, 18, 0, last), 8285);
            ProxyRoute::new(Ipv4Addr::new(198, 19, third, 0), 24, node)
        };
        let mut routes = [route(1, 1), route(2, 2), route(3, 3)];
        let mut packet = [0; HEADER];
        packet[16..20].copy_from_slice(&[198, 19, 3, 9]);
        let node = find(&mut routes, &packet).expect("known");
        assert_eq!(node.ip().octets(), [198, 18, 0, 3]);
        assert_eq!(routes[0].node, node);
        packet[17] = 20;
        assert!(find(&mut routes, &packet).is_none());
    }
}
