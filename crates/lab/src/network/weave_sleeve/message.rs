//! A datagram with frames, in the making.

use plumbline_sys::netlink::Mac;

use super::format::{ETHERNET, FRAME_HEADER, NAME, OVERHEAD, Peer, UDP_HEADER, UDP_OVERHEAD};

/// The most that UDP over IPv4 carries, in bytes.
const LONGEST: usize = 65_535 - UDP_OVERHEAD;
/// Frames of a datagram, and of one turn.
pub(super) const MOST_FRAMES: usize = 100;

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

/// A datagram that is ready to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Datagram<'a> {
    /// In one piece; the header of UDP is at its beginning.
    Whole(&'a [u8]),
    /// In fragments, where it has to be.
    Any(&'a [u8]),
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
    /// The longest packet that travels whole, without its Ethernet header.
    pub(super) mtu: usize,
    /// The most that a datagram carries whole.
    payload: usize,
}

impl Message {
    pub(super) fn new(own: Peer, peer: Peer, mtu: usize) -> Self {
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
            mtu: mtu.saturating_sub(OVERHEAD as usize),
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

    /// Whether what there is has to be sent before this frame is added.
    pub(super) fn is_full(&self, frame: &[u8], whole: bool) -> bool {
        let needs = FRAME_HEADER + frame.len();
        let fits = self.length + needs <= UDP_HEADER + self.payload;
        self.frames > 0 && (whole != self.whole || !fits || self.frames == MOST_FRAMES)
    }

    /// Adds a frame. One that no datagram holds is lost.
    pub(super) fn add(&mut self, frame: &[u8], whole: bool) {
        let needs = FRAME_HEADER + frame.len();
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

    /// What there is, if anything.
    pub(super) fn datagram(&mut self) -> Option<Datagram<'_>> {
        if self.frames == 0 {
            return None;
        }
        let length = (self.length as u16).to_be_bytes();
        if let Some(field) = self.bytes.get_mut(4..6) {
            field.copy_from_slice(&length);
        }
        if self.whole {
            self.bytes.get(..self.length).map(Datagram::Whole)
        } else {
            self.bytes.get(UDP_HEADER..self.length).map(Datagram::Any)
        }
    }

    /// Begins the next datagram.
    pub(super) fn clear(&mut self) {
        self.length = self.empty;
        self.frames = 0;
    }
}
