//! Ethernet frames in UDP between taps, as Weave's `sleeve` carries them
//! (weaveworks/weave@006262e, `router/sleeve.go`; @02a7875, `router/crypto.go`,
//! without a password; @06101d1, `router/pcap.go`): frames are captured from a
//! device and packed into a datagram for as long as more are there and fit, and
//! unpacked and put into a device on the other side.
//!
//! A datagram is the sender's name, and then for each frame the names of the
//! nodes that it comes from and goes to, its length and itself. What must not be
//! fragmented is sent by a raw socket; a frame that is then too long is answered
//! with the length that fits.
//!
//! Each direction is a process, as it is a chain of goroutines there. Left out:
//! what those hand to each other, and one copy more of each datagram; the table
//! of hardware addresses, for between two nodes there is one way to go; the
//! search for the path's MTU, which is given; heartbeats.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use plumbline_sys::forwarder::{Carrier, Forwarder, packets};
use plumbline_sys::fragment;
use plumbline_sys::netlink::Mac;
use plumbline_sys::tap::{Tap, TapRing};

use super::format::{FRAME_HEADER, NAME, Peer};
use super::message::{Datagram, Fate, MOST_FRAMES, Message};
use super::too_long::{ANSWER, too_long};

/// What a node's two processes share: the tap, and the sockets between nodes.
#[derive(Debug)]
pub(super) struct Sleeve {
    tap: Tap,
    socket: UdpSocket,
    /// Sends what must not be fragmented. As in Weave it also gets a copy of every
    /// datagram from the peer until it is full, since nothing reads them.
    whole: OwnedFd,
    own: Peer,
    peer: Peer,
}

impl Sleeve {
    /// Opens all in the network namespace of the calling thread; `device` is the
    /// index of the one whose frames are carried.
    ///
    /// # Errors
    ///
    /// Those of [`Tap::open`], of binding the port of `own`, and of raw sockets,
    /// which need `CAP_NET_RAW` in that namespace.
    pub(super) fn open(device: u32, own: Peer, peer: Peer) -> io::Result<Self> {
        let tap = Tap::open(device)?;
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, own.address.port()))?;
        fragment::permit(&socket)?;
        let whole = fragment::whole_datagrams(*own.address.ip(), *peer.address.ip())?;
        Ok(Self {
            tap,
            socket,
            whole,
            own,
            peer,
        })
    }

    /// Starts two processes that carry frames between the tap and the other node: one
    /// what comes in at the tap, one what the other node sends. `mtu` is that of the
    /// path between the nodes, in bytes.
    ///
    /// They die with the calling thread.
    pub(super) fn start(&self, mtu: u32) -> io::Result<[Forwarder; 2]> {
        let mut sender = Sender {
            sleeve: self,
            message: Message::new(self.own, self.peer, mtu as usize),
            answer: [0; ANSWER],
        };
        let mut receiver = Receiver {
            sleeve: self,
            buffer: vec![0; 1 << 16],
        };
        Ok([
            Forwarder::start(c"sleeve-send", &mut sender)?,
            Forwarder::start(c"sleeve-receive", &mut receiver)?,
        ])
    }
}

/// Carries what comes in at the tap.
struct Sender<'a> {
    sleeve: &'a Sleeve,
    message: Message,
    answer: [u8; ANSWER],
}

impl Sender<'_> {
    fn take(&mut self, frame: &[u8]) {
        let fate = self.message.fate(frame);
        if fate == Fate::TooLong {
            self.send();
            if let Some(answer) = too_long(frame, self.message.mtu, &mut self.answer) {
                packets::write(&self.sleeve.tap, answer);
            }
            return;
        }
        let whole = fate == Fate::Whole;
        if self.message.is_full(frame, whole) {
            self.send();
        }
        self.message.add(frame, whole);
    }

    /// Sends what there is, if anything.
    fn send(&mut self) {
        let Sleeve {
            socket,
            whole,
            peer,
            ..
        } = self.sleeve;
        match self.message.datagram() {
            Some(Datagram::Whole(bytes)) => packets::write(whole, bytes),
            Some(Datagram::Any(bytes)) => packets::send_to(socket, bytes, peer.address),
            None => {}
        }
        self.message.clear();
    }
}

impl Carrier for Sender<'_> {
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let Sleeve {
            tap, socket, whole, ..
        } = self.sleeve;
        vec![tap.as_fd(), socket.as_fd(), whole.as_fd()]
    }

    fn carry(&mut self) {
        let Some(mut ring) = TapRing::map(&self.sleeve.tap) else {
            return;
        };
        while packets::wait([&self.sleeve.tap]) {
            for _ in 0..MOST_FRAMES {
                let Some(frame) = ring.frame() else {
                    break;
                };
                self.take(frame);
                ring.release();
            }
            self.send();
        }
    }
}

/// Carries what the other node sends.
struct Receiver<'a> {
    sleeve: &'a Sleeve,
    buffer: Vec<u8>,
}

impl Carrier for Receiver<'_> {
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.sleeve.tap.as_fd(), self.sleeve.socket.as_fd()]
    }

    fn carry(&mut self) {
        let Sleeve {
            tap,
            socket,
            own,
            peer,
            ..
        } = self.sleeve;
        loop {
            while let Some(length) = packets::receive(socket, &mut self.buffer) {
                if let Some(datagram) = self.buffer.get(..length) {
                    unpack(datagram, own.name, peer.name, |frame| {
                        packets::write(tap, frame)
                    });
                }
            }
            if !packets::wait([socket]) {
                return;
            }
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
