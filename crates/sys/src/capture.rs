//! Frames of a device as they pass, in both directions (packet(7)).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::packet;

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
        // SAFETY: an integer points to nothing. The kernel gives of what is asked
        // for what net.core.rmem_max allows.
        unsafe { packet::set(&fd, libc::SOL_SOCKET, libc::SO_RCVBUF, &BUFFER_BYTES)? };
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
            // SAFETY: an all-zero `sockaddr_ll` is a valid value of this plain C
            // structure.
            let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
            let mut size = size_of_val(&from) as libc::socklen_t;
            // SAFETY: the descriptor is open; both pointers lead to live values
            // that nobody else uses during the call, with lengths that are theirs.
            let length = unsafe {
                libc::recvfrom(
                    self.fd.as_raw_fd(),
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    0,
                    std::ptr::from_mut(&mut from).cast(),
                    &mut size,
                )
            };
            if let Ok(length) = usize::try_from(length) {
                return Ok(Some(Frame {
                    sent: from.sll_pkttype == libc::PACKET_OUTGOING,
                    bytes: &buffer[..length],
                }));
            }
            match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                error => return Err(error),
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
        // struct tpacket_stats: tp_packets, tp_drops.
        let mut stats = [0u32; 2];
        let mut length = size_of_val(&stats) as libc::socklen_t;
        // SAFETY: the descriptor is open; value pointer and length describe a
        // live array into which the kernel writes at most `length` bytes.
        let answer = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                stats.as_mut_ptr().cast(),
                &mut length,
            )
        };
        if answer < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(stats[1])
    }
}
