//! A sample of the messages that a device carries, each with the moment at which the kernel saw
//! it (packet(7), `SO_TIMESTAMPNS`).
//!
//! A message is at the end of its frame, whatever headers are before it, and begins with its
//! number, little-endian, in 8 bytes.

use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, LinkAddr, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use socket2::{SockFilter, Socket};

use crate::{packet, sockopt};

/// Room for what is not read soon enough: some thousand small frames.
const BUFFER_BYTES: libc::c_int = 1 << 22;
/// The shortest headers before a message: IPv4 and TCP.
const LEAST_HEADERS: u32 = 40;
/// The largest frame that a small message is in.
const FRAME: usize = 2048;

/// Sees a sample of the messages of a device, in both directions.
#[derive(Debug)]
pub struct MessageTap {
    socket: Socket,
    size: usize,
}

/// A message that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TappedMessage {
    /// Its number.
    pub number: u64,
    /// Whether the device sent it, as opposed to received.
    pub sent: bool,
    /// When, in nanoseconds of the wall clock.
    pub at_ns: u64,
}

impl MessageTap {
    /// Begins to see messages of `size` bytes, 8 at least, on the device with this index in
    /// the network namespace of the calling thread: those whose number is a multiple of
    /// `one_in`, a power of two up to 65,536.
    ///
    /// # Errors
    ///
    /// `EPERM` without `CAP_NET_RAW` in that namespace; `ENODEV` without such a device.
    pub fn open(device: u32, size: u32, one_in: u32) -> io::Result<Self> {
        let fd = packet::open()?;
        sockopt::set_integer(&fd, libc::SOL_SOCKET, libc::SO_RCVBUF, BUFFER_BYTES)?;
        let socket = Socket::from(fd);
        socket.attach_filter(&filter(size, one_in))?;
        setsockopt(&socket, ReceiveTimestampns, &true)?;
        let fd = socket.into();
        packet::bind(&fd, device)?;
        Ok(Self {
            socket: Socket::from(fd),
            size: size as usize,
        })
    }

    /// The oldest message that was not yet taken; `None` when there is none.
    ///
    /// # Errors
    ///
    /// `ENETDOWN` once the device is gone.
    pub fn take(&self) -> io::Result<Option<TappedMessage>> {
        let mut frame = [0; FRAME];
        let mut control = nix::cmsg_space!(TimeSpec);
        loop {
            let mut parts = [IoSliceMut::new(&mut frame)];
            let fd = self.socket.as_raw_fd();
            let none = MsgFlags::empty();
            let (length, kind, at) =
                match recvmsg::<LinkAddr>(fd, &mut parts, Some(&mut control), none) {
                    Ok(got) => {
                        let stamp = got.cmsgs()?.find_map(|message| match message {
                            ControlMessageOwned::ScmTimestampns(at) => Some(at),
                            _ => None,
                        });
                        (got.bytes, got.address.map(|from| from.pkttype()), stamp)
                    }
                    Err(Errno::EINTR) => continue,
                    Err(Errno::EAGAIN) => return Ok(None),
                    Err(errno) => return Err(errno.into()),
                };
            let start = length.checked_sub(self.size);
            let number = start.and_then(|at| frame.get(at..at + 8)?.try_into().ok());
            // What is larger than a frame of ours, or was not stamped, is not one of them.
            if let (Some(number), Some(at)) = (number, at) {
                return Ok(Some(TappedMessage {
                    number: u64::from_le_bytes(number),
                    sent: kind == Some(libc::PACKET_OUTGOING),
                    at_ns: (at.tv_sec() as u64) * 1_000_000_000 + at.tv_nsec() as u64,
                }));
            }
        }
    }
}

/// Keeps frames whose last `size` bytes begin with a number below 2³² that is a multiple of
/// `one_in`.
fn filter(size: u32, one_in: u32) -> [SockFilter; 10] {
    let statement = |code: u32, k| SockFilter::new(code as u16, 0, 0, k);
    let jump = |code: u32, k, yes, no| SockFilter::new((libc::BPF_JMP | code) as u16, yes, no, k);
    let last = one_in.saturating_sub(1);
    // The two lowest bytes, as a word in network order has them.
    let mask = (last & 0xff) << 8 | last >> 8 & 0xff;
    [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_LEN, 0),
        jump(libc::BPF_JGE | libc::BPF_K, size + LEAST_HEADERS, 0, 7),
        statement(libc::BPF_ALU | libc::BPF_SUB | libc::BPF_K, size),
        statement(libc::BPF_MISC | libc::BPF_TAX, 0),
        statement(libc::BPF_LD | libc::BPF_H | libc::BPF_IND, 0),
        jump(libc::BPF_JSET | libc::BPF_K, mask, 3, 0),
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_IND, 4),
        jump(libc::BPF_JEQ | libc::BPF_K, 0, 0, 1),
        statement(libc::BPF_RET | libc::BPF_K, FRAME as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0),
    ]
}
