//! Netlink without a protocol: one request, its answers, nothing in between.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use netlink_packet_core::{DecodeError, Emitable, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, NetlinkAddr, bind, recv, send};
use socket2::{Domain, SockRef, Socket, Type};

use super::NetlinkError;
use super::attribute::find;
use crate::sockopt;

/// Large enough for any datagram of a dump: the kernel sends at most 32 KiB.
const RECEIVE_BYTES: usize = 64 * 1024;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// The header of a message, and of the request that an error quotes.
const HEADER_BYTES: usize = 16;
const NLM_F_CAPPED: u16 = 0x100;
const NLM_F_ACK_TLVS: u16 = 0x200;
const NLMSGERR_ATTR_MSG: u16 = 1;

/// A netlink socket of any protocol. It always belongs to the network namespace
/// of the thread that opened it; any thread may use it.
#[derive(Debug)]
pub(super) struct Raw {
    fd: OwnedFd,
    state: Mutex<RawState>,
}

#[derive(Debug)]
struct RawState {
    sequence: u32,
    buffer: Vec<u8>,
}

/// What a request is, for the error text.
pub(super) struct Verb {
    pub(super) action: &'static str,
    pub(super) object: String,
}

impl Verb {
    pub(super) fn new(action: &'static str, object: impl Into<String>) -> Self {
        Self {
            action,
            object: object.into(),
        }
    }

    fn refused(self, errno: Errno, detail: Option<String>) -> NetlinkError {
        NetlinkError::Refused {
            action: self.action,
            object: self.object,
            errno,
            detail,
        }
    }

    pub(super) fn garbled(self, detail: impl ToString) -> NetlinkError {
        NetlinkError::Garbled {
            action: self.action,
            object: self.object,
            detail: detail.to_string(),
        }
    }
}

impl Raw {
    /// Opens a socket of a protocol, such as `NETLINK_ROUTE`, in the network
    /// namespace of the calling thread.
    pub(super) fn open(protocol: libc::c_int) -> Result<Self, NetlinkError> {
        let failed = |action| move |source: io::Error| NetlinkError::Socket { action, source };
        let (domain, kind) = (Domain::from(libc::AF_NETLINK), Type::RAW.cloexec());
        let socket = Socket::new_raw(domain, kind, Some(protocol.into()));
        let fd = OwnedFd::from(socket.map_err(failed("open"))?);
        bind(fd.as_raw_fd(), &NetlinkAddr::new(0, 0))
            .map_err(|errno| failed("bind")(errno.into()))?;
        // The kernel's own words in errors, without a copy of the request.
        for option in [libc::NETLINK_EXT_ACK, libc::NETLINK_CAP_ACK] {
            sockopt::set_integer(&fd, libc::SOL_NETLINK, option, 1).map_err(failed("configure"))?;
        }
        let state = RawState {
            sequence: 0,
            buffer: vec![0; RECEIVE_BYTES],
        };
        Ok(Self {
            fd,
            state: Mutex::new(state),
        })
    }

    /// Makes the send buffer as large as this user may have it, up to some bytes. Gives
    /// the most that one call sends.
    pub(super) fn widen(&self, bytes: usize) -> Result<usize, NetlinkError> {
        /// What netlink keeps of the buffer for itself.
        const KEPT: usize = 32;
        let socket = SockRef::from(&self.fd);
        let set = socket.set_send_buffer_size(bytes);
        let size = set.and_then(|()| socket.send_buffer_size());
        let size = size.map_err(|source| NetlinkError::Socket {
            action: "widen",
            source,
        })?;
        Ok(size.saturating_sub(KEPT))
    }

    /// Lets answers be lost where more come than are read, instead of an error in the
    /// place of the first.
    pub(super) fn lose_answers(&self) -> Result<(), NetlinkError> {
        let (level, option) = (libc::SOL_NETLINK, libc::NETLINK_NO_ENOBUFS);
        let set = sockopt::set_integer(&self.fd, level, option, 1);
        set.map_err(|source| NetlinkError::Socket {
            action: "configure",
            source,
        })
    }

    /// Sends a request of this type with this body, and gives every answer to
    /// `each`, until the kernel acknowledges or a dump ends.
    pub(super) fn exchange(
        &self,
        verb: Verb,
        kind: u16,
        flags: u16,
        body: &[u8],
        each: impl FnMut(&NetlinkMessage<'_>) -> Result<(), DecodeError>,
    ) -> Result<(), NetlinkError> {
        let mut state = self.state();
        state.sequence = state.sequence.wrapping_add(1);
        let sequence = state.sequence;
        let request = message(kind, flags, sequence, body);
        self.converse(&mut state, verb, sequence, &request, each)
    }

    /// Sends messages that all have this sequence number, and waits for the first
    /// acknowledgement or error of one of them.
    pub(super) fn transact(
        &self,
        verb: Verb,
        sequence: u32,
        messages: &[u8],
    ) -> Result<(), NetlinkError> {
        self.converse(&mut self.state(), verb, sequence, messages, |_| Ok(()))
    }

    fn state(&self) -> MutexGuard<'_, RawState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn converse(
        &self,
        state: &mut RawState,
        verb: Verb,
        sequence: u32,
        request: &[u8],
        mut each: impl FnMut(&NetlinkMessage<'_>) -> Result<(), DecodeError>,
    ) -> Result<(), NetlinkError> {
        self.send(request)?;
        loop {
            let length = self.receive(&mut state.buffer)?;
            let answers = NetlinkMessages {
                rest: &state.buffer[..length],
            };
            for answer in answers {
                let Some(answer) = answer else {
                    return Err(verb.garbled("a truncated message"));
                };
                // Left over from a request that failed half-way.
                if answer.sequence != sequence {
                    continue;
                }
                match answer.kind {
                    NLMSG_DONE => return Ok(()),
                    NLMSG_ERROR => {
                        return match answer.error() {
                            Some((0, _)) => Ok(()),
                            Some((code, detail)) => Err(verb.refused(errno(code), detail)),
                            None => Err(verb.garbled("a truncated error")),
                        };
                    }
                    _ => {
                        if let Err(error) = each(&answer) {
                            return Err(verb.garbled(error));
                        }
                    }
                }
            }
        }
    }

    fn send(&self, bytes: &[u8]) -> Result<(), NetlinkError> {
        let sent = send(self.fd.as_raw_fd(), bytes, MsgFlags::empty());
        sent.map(|_| ()).map_err(|errno| NetlinkError::Socket {
            action: "send on",
            source: errno.into(),
        })
    }

    fn receive(&self, buffer: &mut [u8]) -> Result<usize, NetlinkError> {
        loop {
            match recv(self.fd.as_raw_fd(), buffer, MsgFlags::empty()) {
                Err(Errno::EINTR) => {}
                Ok(length) => return Ok(length),
                Err(errno) => {
                    return Err(NetlinkError::Socket {
                        action: "receive from",
                        source: errno.into(),
                    });
                }
            }
        }
    }
}

impl AsFd for Raw {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A request as it is sent: its header, and its body, which is aligned.
pub(super) fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    // A request is far below 4 GiB.
    header.length = (HEADER_BYTES + body.len()) as u32;
    header.message_type = kind;
    header.flags = NLM_F_REQUEST | flags;
    header.sequence_number = sequence;
    let mut bytes = vec![0; HEADER_BYTES];
    header.emit(&mut bytes);
    bytes.extend(body);
    bytes
}

/// `ENOTSUPP` is internal to the kernel and has no name outside; some drivers
/// return it where others return `EOPNOTSUPP`.
fn errno(code: i32) -> Errno {
    const ENOTSUPP: i32 = 524;
    match code {
        ENOTSUPP => Errno::EOPNOTSUPP,
        code => Errno::from_raw(code),
    }
}

/// One message of a datagram, its body not yet read.
pub(super) struct NetlinkMessage<'a> {
    /// The type of the message.
    pub(super) kind: u16,
    flags: u16,
    sequence: u32,
    /// The whole message, its header included.
    pub(super) bytes: &'a [u8],
}

impl NetlinkMessage<'_> {
    /// What follows the header.
    pub(super) fn body(&self) -> &[u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or(&[])
    }

    /// The number of an error message, 0 for success, and its text.
    pub(super) fn error(&self) -> Option<(i32, Option<String>)> {
        let code = i32::from_ne_bytes(
            self.bytes
                .get(HEADER_BYTES..HEADER_BYTES + 4)?
                .try_into()
                .ok()?,
        );
        Some((code.saturating_neg(), self.detail()))
    }

    /// The text among the attributes that follow the quoted request.
    fn detail(&self) -> Option<String> {
        if self.flags & NLM_F_ACK_TLVS == 0 {
            return None;
        }
        let quoted = if self.flags & NLM_F_CAPPED != 0 {
            HEADER_BYTES
        } else {
            let length = self.bytes.get(HEADER_BYTES + 4..HEADER_BYTES + 8)?;
            align(u32::from_ne_bytes(length.try_into().ok()?) as usize)
        };
        let attributes = self.bytes.get(HEADER_BYTES + 4 + quoted..)?;
        let text = find(attributes, NLMSGERR_ATTR_MSG)?;
        let text = text.strip_suffix(&[0]).unwrap_or(text);
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

/// The messages of one datagram; `None` for a torn one, then the end.
pub(super) struct NetlinkMessages<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> Iterator for NetlinkMessages<'a> {
    type Item = Option<NetlinkMessage<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let head = std::mem::take(&mut self.rest);
        let Ok(message) = NetlinkBuffer::new_checked(head) else {
            return Some(None);
        };
        let length = message.length() as usize;
        self.rest = head.get(align(length)..).unwrap_or(&[]);
        Some(Some(NetlinkMessage {
            kind: message.message_type(),
            flags: message.flags(),
            sequence: message.sequence_number(),
            bytes: &head[..length],
        }))
    }
}

fn align(length: usize) -> usize {
    length.next_multiple_of(4)
}
