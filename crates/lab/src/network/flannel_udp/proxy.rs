//! IP packets in UDP between TUN devices, as Flannel's `udp` backend carries them
//! (flannel-io/flannel@1ba5635, `pkg/backend/udp/proxy_amd64.c`): one thread, one
//! buffer, packets of both sides by turns for as long as either has one, and only
//! then a wait for both. A packet is the whole datagram; there is no header of
//! the protocol's own. The TTL goes down on either side.
//!
//! Left out: the ICMP answer for packets to no known node, which no packet of a
//! lab needs, and the control socket by which routes come and go.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

use super::{Forwarder, raw};
use crate::tun::Tun;

/// Where packets for a network go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlannelRoute {
    /// The network's address.
    pub network: Ipv4Addr,
    /// Its prefix length, in bits.
    pub prefix: u8,
    /// The node that it is on, with its UDP port.
    pub node: SocketAddrV4,
}

const TUN: libc::c_int = 0;
const SOCKET: libc::c_int = 1;
/// The shortest IPv4 header, in bytes.
const HEADER: usize = 20;

impl Forwarder {
    /// Starts a process that carries what comes from `tun` by `socket` to the
    /// nodes of `routes`, and what comes from them into `tun`. `mtu`, in bytes, is
    /// the longest packet.
    ///
    /// It dies with the calling thread.
    pub fn flannel(
        tun: Tun,
        socket: UdpSocket,
        routes: &[FlannelRoute],
        mtu: u32,
    ) -> io::Result<Self> {
        let mut routes: Vec<Entry> = routes.iter().map(Entry::new).collect();
        let mut buffer = vec![0; mtu as usize];
        let forward = || forward(&mut routes, &mut buffer);
        // SAFETY: `forward` makes system calls and looks into memory that was
        // allocated before.
        unsafe { Self::start(c"flannel-udp", &[tun.into(), socket.into()], forward) }
    }
}

/// A route, ready for comparing and sending.
#[derive(Clone, Copy)]
struct Entry {
    network: u32,
    mask: u32,
    node: libc::sockaddr_in,
}

impl Entry {
    fn new(route: &FlannelRoute) -> Self {
        let mask = u32::MAX
            .checked_shl(32 - u32::from(route.prefix.min(32)))
            .unwrap_or(0);
        Self {
            network: u32::from(route.network) & mask,
            mask,
            node: raw::address(route.node),
        }
    }
}

fn forward(routes: &mut [Entry], buffer: &mut [u8]) {
    while raw::wait([TUN, SOCKET]) {
        // As long as there are packets, asking for one in vain now and then costs
        // less than waiting for each.
        loop {
            let sent = to_socket(routes, buffer);
            let received = to_tun(buffer);
            if !sent && !received {
                break;
            }
        }
    }
}

/// Takes a packet from the device; says whether there was one.
fn to_socket(routes: &mut [Entry], buffer: &mut [u8]) -> bool {
    let Some(length @ HEADER..) = raw::read(TUN, buffer) else {
        return false;
    };
    let Some(packet) = buffer.get_mut(..length) else {
        return true;
    };
    if let Some(node) = find(routes, packet)
        && hop(packet)
    {
        raw::send_to(SOCKET, packet, &node);
    }
    true
}

/// Takes a packet from the other nodes; says whether there was one.
fn to_tun(buffer: &mut [u8]) -> bool {
    let Some(length @ HEADER..) = raw::receive(SOCKET, buffer) else {
        return false;
    };
    if let Some(packet) = buffer.get_mut(..length)
        && hop(packet)
    {
        raw::write(TUN, packet);
    }
    true
}

/// The node of a packet's destination. The route moves to the front: packets to
/// one destination come one after the other.
fn find(routes: &mut [Entry], packet: &[u8]) -> Option<libc::sockaddr_in> {
    let &[a, b, c, d] = packet.get(16..20)? else {
        return None;
    };
    let destination = u32::from_be_bytes([a, b, c, d]);
    let matches = |it: &Entry| destination & it.mask == it.network;
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
            Entry::new(&FlannelRoute {
                network: Ipv4Addr::new(198, 19, third, 0),
                prefix: 24,
                node: SocketAddrV4::new(Ipv4Addr::new(198, 18, 0, last), 8285),
            })
        };
        let mut routes = [route(1, 1), route(2, 2), route(3, 3)];
        let mut packet = [0; HEADER];
        packet[16..20].copy_from_slice(&[198, 19, 3, 9]);
        let node = find(&mut routes, &packet).expect("known");
        assert_eq!(node.sin_addr.s_addr.to_ne_bytes(), [198, 18, 0, 3]);
        assert_eq!(routes[0].node.sin_addr.s_addr, node.sin_addr.s_addr);
        packet[17] = 20;
        assert!(find(&mut routes, &packet).is_none());
    }
}
