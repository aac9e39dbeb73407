//! Ethernet frames in UDP between taps, as Weave's `sleeve` carries them
//! (weaveworks/weave@006262e, `router/sleeve.go`; @02a7875, `router/crypto.go`,
//! without a password; @06101d1, `router/pcap.go`): frames are captured from a
//! device and packed into a datagram for as long as more are there and fit, and
//! unpacked and put into a device on the other side.
//!
//! A datagram is the sender's name, and then for each frame the names of the
//! nodes that it comes from and goes to, its length and itself. What may not be
//! fragmented travels so that it is not, by a raw socket; a frame that is then
//! too long is answered with the length that is not.
//!
//! Each direction is a process, as it is a chain of goroutines there. Left out:
//! what those hand to each other, and one copy more of each datagram; the table
//! of hardware addresses, for between two nodes there is one way to go; the
//! search for the path's MTU, which is given; heartbeats.

mod message;
mod too_long;

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::OwnedFd;

use socket2::{Domain, Protocol, Socket, Type};

use super::{Forwarder, raw};
use crate::netlink::Mac;
use crate::packet;
use crate::tap::{Ring, Tap};
use message::{Fate, Message};
use too_long::{ANSWER, too_long};

/// A node that frames come from and go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SleevePeer {
    /// What it is called: the hardware address of its bridge.
    pub name: Mac,
    /// Where it listens.
    pub address: SocketAddrV4,
}

/// What encapsulation takes of the underlay's MTU, in bytes: the headers of IPv4
/// and UDP, the sender's name, what precedes a frame, and its Ethernet header.
pub const SLEEVE_OVERHEAD: u32 = (UDP_OVERHEAD + NAME + FRAME_HEADER + ETHERNET) as u32;

const TAP: libc::c_int = 0;
const SOCKET: libc::c_int = 1;
const SOCKET_DF: libc::c_int = 2;

const NAME: usize = 6;
const FRAME_HEADER: usize = NAME + NAME + 2;
const ETHERNET: usize = 14;
const UDP_HEADER: usize = 8;
const UDP_OVERHEAD: usize = 20 + UDP_HEADER;
/// The most that UDP over IPv4 carries, in bytes.
const LONGEST: usize = 65_535 - UDP_OVERHEAD;
/// Frames of a datagram, and of one turn.
const MOST_FRAMES: usize = 100;

/// What a node's two processes share: the tap, and the sockets between nodes.
#[derive(Debug)]
pub struct Sleeve {
    descriptors: [OwnedFd; 3],
    own: SleevePeer,
    peer: SleevePeer,
}

impl Sleeve {
    /// Opens all in the network namespace of the calling thread; `device` is the
    /// index of the one whose frames are carried.
    ///
    /// # Errors
    ///
    /// Those of [`Tap::open`], of binding the port of `own`, and of raw sockets,
    /// which need `CAP_NET_RAW` in that namespace.
    pub fn open(device: u32, own: SleevePeer, peer: SleevePeer) -> io::Result<Self> {
        let tap = Tap::open(device)?;
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, own.address.port()))?;
        let socket = OwnedFd::from(socket);
        discover_mtu(&socket, libc::IP_PMTUDISC_DONT)?;
        Ok(Self {
            descriptors: [tap.into(), socket, socket_df(own, peer)?],
            own,
            peer,
        })
    }
}

impl Forwarder {
    /// Starts two processes that carry frames between a tap and another node: one
    /// what comes in at the tap, one what the other node sends. `mtu` is that of
    /// the path between the nodes, in bytes.
    ///
    /// They die with the calling thread.
    pub fn sleeve(sleeve: Sleeve, mtu: u32) -> io::Result<[Self; 2]> {
        let Sleeve {
            descriptors,
            own,
            peer,
        } = sleeve;
        let mut message = Message::new(own, peer, mtu as usize);
        let mut answer = [0; ANSWER];
        let send = || send_frames(&mut message, &mut answer);
        // SAFETY: `send_frames` makes system calls and looks into memory that was
        // allocated before, or that the kernel shares.
        let sender = unsafe { Self::start(c"sleeve-send", &descriptors, send)? };
        let mut buffer = vec![0; 1 << 16];
        let receive = || receive_frames(own.name, peer.name, &mut buffer);
        // SAFETY: `receive_frames` makes system calls and looks into memory that
        // was allocated before.
        let receiver = unsafe { Self::start(c"sleeve-receive", &descriptors, receive)? };
        Ok([sender, receiver])
    }
}

/// A socket that sends UDP, header and all, and never in fragments. As in Weave
/// it also gets a copy of every datagram from the peer until it is full, since
/// nobody takes them.
fn socket_df(own: SleevePeer, peer: SleevePeer) -> io::Result<OwnedFd> {
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::UDP))?;
    socket.bind(&SocketAddrV4::new(*own.address.ip(), 0).into())?;
    socket.connect(&SocketAddrV4::new(*peer.address.ip(), 0).into())?;
    let socket = OwnedFd::from(socket);
    discover_mtu(&socket, libc::IP_PMTUDISC_DO)?;
    Ok(socket)
}

fn discover_mtu(socket: &OwnedFd, how: libc::c_int) -> io::Result<()> {
    // SAFETY: an integer points to nothing.
    unsafe { packet::set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, &how) }
}

fn send_frames(message: &mut Message, answer: &mut [u8; ANSWER]) {
    let Some(mut ring) = Ring::map(TAP) else {
        return;
    };
    while raw::wait([TAP]) {
        for _ in 0..MOST_FRAMES {
            let Some(frame) = ring.frame() else {
                break;
            };
            match message.fate(frame) {
                Fate::TooLong => {
                    message.send();
                    if let Some(answer) = too_long(frame, message.mtu, answer) {
                        raw::write(TAP, answer);
                    }
                }
                fate => message.add(frame, fate == Fate::Whole),
            }
            ring.release();
        }
        message.send();
    }
}

fn receive_frames(own: Mac, peer: Mac, buffer: &mut [u8]) {
    loop {
        while let Some(length) = raw::receive(SOCKET, buffer) {
            if let Some(datagram) = buffer.get(..length) {
                unpack(datagram, own, peer, |frame| raw::write(TAP, frame));
            }
        }
        if !raw::wait([SOCKET]) {
            return;
        }
    }
}

/// Gives each frame of a datagram from `peer` for `own` to `each`.
fn unpack(datagram: &[u8], own: Mac, peer: Mac, mut each: impl FnMut(&[u8])) {
    let Some((name, mut rest)) = datagram.split_first_chunk::<NAME>() else {
        return;
    };
    if *name != peer {
        return;
    }
    while let Some((header, frames)) = rest.split_first_chunk::<FRAME_HEADER>() {
        let [.., high, low] = *header;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let Some((frame, after)) = frames.split_at_checked(length) else {
            return;
        };
        if header.starts_with(&peer) && header.get(NAME..NAME + NAME) == Some(&own[..]) {
            each(frame);
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests;
