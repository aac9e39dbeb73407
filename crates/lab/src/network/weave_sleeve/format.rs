//! The format of sleeve's datagrams: the sender's name, and then for each frame the
//! names of the nodes that it comes from and goes to, its length and itself.

use std::net::SocketAddrV4;

use plumbline_sys::netlink::Mac;

/// A node that frames come from and go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    /// What it is called: the hardware address of its bridge.
    pub(super) name: Mac,
    /// Where it listens.
    pub(super) address: SocketAddrV4,
}

/// Bytes of a name.
pub(super) const NAME: usize = 6;
/// Bytes before each frame.
pub(super) const FRAME_HEADER: usize = NAME + NAME + 2;
/// Bytes of an Ethernet header.
pub(super) const ETHERNET: usize = 14;
/// Bytes of the header of UDP.
pub(super) const UDP_HEADER: usize = 8;
/// Bytes of the headers of IPv4 and UDP.
pub(super) const UDP_OVERHEAD: usize = 20 + UDP_HEADER;
/// What encapsulation takes of the underlay's MTU, in bytes: the headers of IPv4
/// and UDP, the sender's name, what precedes a frame, and its Ethernet header.
pub(super) const OVERHEAD: u32 = (UDP_OVERHEAD + NAME + FRAME_HEADER + ETHERNET) as u32;
