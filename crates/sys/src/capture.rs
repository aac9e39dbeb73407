//! Frames of a device as they pass, in both directions (packet(7)).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{LinkAddr, recvfrom};

use crate::{packet, sockopt};

/// A few hundred small frames, each of which the kernel charges with about two
/// kilobytes.
const BUFFER_BYTES: libc::c_int = 1 << 20;

/// Sees what a device sends and receives once it is open, as its driver sees
/// it: before routing on the way in, after everything else on the way out.
#[derive(Debug)]
pub struct Capture {
    fd: OwnedFd,
}

/// A frame that passed.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Whether the device sent it, as opposed to received.
    pub sent: bool,
    /// From the Ethernet header on, at most as much as was asked for.
    pub bytes: &'a [u8],
}

impl Capture {
    /// Begins to capture from the device with this index in the network
    /// namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// `EPERM` without `CAP_NET_RAW` in that namespace; `ENODEV` without such
    /// a device.
    pub fn open(device: u32) -> io::Result<Self> {
        let fd = packet::open()?;
        // The kernel gives at most net.core.rmem_max.
        sockopt::set_integer(&fd, libc::SOL_SOCKET, libc::SO_RCVBUF, BUFFER_BYTES)?;
        packet::bind(&fd, device)?;
        Ok(Self { fd })
    }

    /// The oldest frame that was not yet taken, as much of it as `buffer`
    /// holds; `None` when there is none.
    ///
    /// # Errors
    ///
    /// `ENETDOWN` once the device is gone.
    pub fn take<'a>(&self, buffer: &'a mut [u8]) -> io::Result<Option<Frame<'a>>> {
        loop {
            match recvfrom::<LinkAddr>(self.fd.as_raw_fd(), buffer) {
                Ok((length, from)) => {
                    let kind = from.map(|address| address.pkttype());
                    return Ok(Some(Frame {
                        sent: kind == Some(libc::PACKET_OUTGOING),
                        bytes: &buffer[..length],
                    }));
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// How many frames found no room since the capture began, or since the last
    /// call (`PACKET_STATISTICS`).
    ///
    /// # Errors
    ///
    /// None on a kernel that has packet sockets.
    pub fn missed(&self) -> io::Result<u32> {
        // SAFETY: struct tpacket_stats is two integers: tp_packets, tp_drops.
        let [_, drops]: [u32; 2] =
            unsafe { sockopt::get(&self.fd, libc::SOL_PACKET, libc::PACKET_STATISTICS)? };
        Ok(drops)
    }
}
