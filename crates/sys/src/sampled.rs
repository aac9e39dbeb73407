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

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    const SIZE: u32 = 64;

    /// Which of these frames pass the filter: numbers, and how many bytes of headers are before
    /// the message.
    fn passed(one_in: u32, frames: &[(u64, usize)]) -> Vec<u64> {
        let (sender, receiver) = UnixDatagram::pair().unwrap();
        receiver.set_nonblocking(true).unwrap();
        let receiver = Socket::from(std::os::fd::OwnedFd::from(receiver));
        receiver.attach_filter(&filter(SIZE, one_in)).unwrap();
        let receiver = UnixDatagram::from(std::os::fd::OwnedFd::from(receiver));
        let mut seen = Vec::new();
        for (number, headers) in frames {
            let mut frame = vec![0xff; headers + SIZE as usize];
            frame[*headers..headers + 8].copy_from_slice(&number.to_le_bytes());
            // One that does not pass is refused on some kernels and lost on others.
            let _ = sender.send(&frame);
            if receiver.recv(&mut [0; FRAME]).is_ok() {
                seen.push(*number);
            }
        }
        seen
    }

    #[test]
    fn multiples_pass_whatever_headers_are_before_them() {
        let numbers = [
            0, 1, 2, 3, 16, 24, 255, 256, 257, 512, 1024, 32_768, 65_536, 65_792,
        ];
        for one_in in [1, 2, 16, 256, 1024, 65_536] {
            let frames = numbers.map(|number| (number, 66));
            let multiples = numbers.into_iter().filter(|it| it % u64::from(one_in) == 0);
            let expected: Vec<u64> = multiples.collect();
            assert_eq!(passed(one_in, &frames), expected, "one in {one_in}");
        }
        let tunnelled = [(4, 66), (4, 116), (4, 40)];
        assert_eq!(passed(4, &tunnelled), [4, 4, 4]);
    }

    #[test]
    fn what_is_too_short_or_no_number_of_ours_does_not_pass() {
        let short = LEAST_HEADERS as usize - 1;
        assert_eq!(passed(1, &[(0, short), (1 << 32, 66), (u64::MAX, 66)]), []);
    }
}
