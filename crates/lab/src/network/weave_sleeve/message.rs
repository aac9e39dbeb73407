//! A datagram with frames, in the making.

use super::{
    ETHERNET, FRAME_HEADER, LONGEST, MOST_FRAMES, NAME, SLEEVE_OVERHEAD, SOCKET, SOCKET_DF,
    SleevePeer, UDP_HEADER, UDP_OVERHEAD,
};
use crate::forwarder::raw;
use crate::netlink::Mac;

/// How a frame is to travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// In one piece.
    Whole,
    /// In fragments, where it has to be.
    Any,
    /// It would have to travel whole, and does not fit.
    TooLong,
}

/// A datagram in the making, behind the header of UDP that a raw socket needs.
pub(super) struct Message {
    pub(super) bytes: Vec<u8>,
    /// Bytes without any frame.
    empty: usize,
    pub(super) length: usize,
    pub(super) frames: usize,
    whole: bool,
    own: Mac,
    peer: Mac,
    to: libc::sockaddr_in,
    /// The longest packet that travels whole, without its Ethernet header.
    pub(super) mtu: usize,
    /// The most that a datagram carries whole.
    payload: usize,
}

impl Message {
    pub(super) fn new(own: SleevePeer, peer: SleevePeer, mtu: usize) -> Self {
        let mut bytes = vec![0; UDP_HEADER + LONGEST];
        bytes[..2].copy_from_slice(&own.address.port().to_be_bytes());
        bytes[2..4].copy_from_slice(&peer.address.port().to_be_bytes());
        bytes[UDP_HEADER..UDP_HEADER + NAME].copy_from_slice(&own.name);
        Self {
            bytes,
            empty: UDP_HEADER + NAME,
            length: UDP_HEADER + NAME,
            frames: 0,
            whole: true,
            own: own.name,
            peer: peer.name,
            to: raw::address(peer.address),
            mtu: mtu.saturating_sub(SLEEVE_OVERHEAD as usize),
            payload: mtu.saturating_sub(UDP_OVERHEAD),
        }
    }

    pub(super) fn fate(&self, frame: &[u8]) -> Fate {
        let ipv4 = frame.get(12..14) == Some(&[0x08, 0x00]);
        let whole = ipv4 && frame.get(20).is_some_and(|flags| flags & 0x40 != 0);
        match whole {
            false => Fate::Any,
            true if frame.len() > self.mtu + ETHERNET => Fate::TooLong,
            true => Fate::Whole,
        }
    }

    /// Adds a frame, after sending what it does not fit to. One that no datagram
    /// holds is lost.
    pub(super) fn add(&mut self, frame: &[u8], whole: bool) {
        let needs = FRAME_HEADER + frame.len();
        let fits = self.length + needs <= UDP_HEADER + self.payload;
        if self.frames > 0 && (whole != self.whole || !fits || self.frames == MOST_FRAMES) {
            self.send();
        }
        self.whole = whole;
        let Ok(length) = u16::try_from(frame.len()) else {
            return;
        };
        let Some(room) = self.bytes.get_mut(self.length..self.length + needs) else {
            return;
        };
        let parts = [&self.own[..], &self.peer, &length.to_be_bytes(), frame];
        let mut rest = room;
        for part in parts {
            let Some((here, after)) = rest.split_at_mut_checked(part.len()) else {
                return;
            };
            here.copy_from_slice(part);
            rest = after;
        }
        self.length += needs;
        self.frames += 1;
    }

    /// Sends what there is, if anything.
    pub(super) fn send(&mut self) {
        if self.frames > 0 {
            let length = (self.length as u16).to_be_bytes();
            if let Some(field) = self.bytes.get_mut(4..6) {
                field.copy_from_slice(&length);
            }
            if self.whole {
                raw::write(SOCKET_DF, self.bytes.get(..self.length).unwrap_or(&[]));
            } else {
                let datagram = self.bytes.get(UDP_HEADER..self.length).unwrap_or(&[]);
                raw::send_to(SOCKET, datagram, &self.to);
            }
        }
        self.length = self.empty;
        self.frames = 0;
    }
}
