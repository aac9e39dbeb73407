//! Sending from our own pages instead of a copy of them (`MSG_ZEROCOPY`), and
//! the kernel's notices that it is done with them.

use std::io;
use std::mem;
use std::os::fd::AsRawFd;

use nix::errno::Errno;

use super::Socket;
use super::control::{self, Control, extended_error};
use crate::sockopt;

/// The kernel no longer needs the bytes of some sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroCopyNotice {
    /// How many sends this concerns; each is reported once.
    pub sends: u32,
    /// The kernel made a copy after all (`SO_EE_CODE_ZEROCOPY_COPIED`): it
    /// does wherever packets are received on the machine that sent them.
    pub copied: bool,
}

impl Socket {
    /// Allows [`send_zero_copy`](Self::send_zero_copy) on a TCP socket
    /// (`SO_ZEROCOPY`, Linux 4.14).
    pub fn allow_zero_copy(&self) -> io::Result<()> {
        sockopt::set_integer(self, libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1)
    }

    /// Sends as [`send`](Self::send), but the kernel may read the bytes later,
    /// as often as it must send them again: the bytes must therefore never
    /// change.
    ///
    /// `None` when the kernel cannot track more sends (`ENOBUFS`): too many are
    /// waiting for their notice (`net.core.optmem_max`), or too many pages are
    /// held (`RLIMIT_MEMLOCK`).
    ///
    /// # Errors
    /// As [`send`](Self::send).
    #[inline]
    pub fn send_zero_copy(&self, bytes: &'static [u8]) -> io::Result<Option<usize>> {
        let flags = libc::MSG_NOSIGNAL | libc::MSG_ZEROCOPY;
        match self.0.send_with_flags(bytes, flags) {
            Ok(taken) => Ok(Some(taken)),
            Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Reads the next notice about sends without a copy. While there are any,
    /// pollers report the socket as failed.
    ///
    /// # Errors
    /// `WouldBlock` when there is no notice.
    pub fn zero_copy_notice(&self) -> io::Result<ZeroCopyNotice> {
        let mut control = Control::<128>::EMPTY;
        // SAFETY: msghdr is a plain C structure, for which zero is valid.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        control.offer(&mut header);
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        // SAFETY: `header` points to `control`, which lives until after the
        // call, and to no other memory.
        let received = unsafe { libc::recvmsg(self.0.as_raw_fd(), &mut header, flags) };
        Errno::result(received)?;
        let mut found = None;
        control::each(control.received(&header), |level, kind, data| {
            found = found.or(notice(level, kind, data));
        });
        // Notices of something else do not concern any send.
        Ok(found.unwrap_or(ZeroCopyNotice {
            sends: 0,
            copied: false,
        }))
    }
}

/// The notice in a control message of an error queue, if it is one.
pub(super) fn notice(level: i32, kind: i32, data: &[u8]) -> Option<ZeroCopyNotice> {
    let error = extended_error(level, kind, data)?;
    let is_notice = error.ee_errno == 0 && error.ee_origin == ORIGIN_ZERO_COPY;
    is_notice.then(|| ZeroCopyNotice {
        // First and last number of the sends; the numbers wrap.
        sends: error.ee_data.wrapping_sub(error.ee_info).wrapping_add(1),
        copied: error.ee_code & CODE_COPIED != 0,
    })
}

/// `SO_EE_ORIGIN_ZEROCOPY` and `SO_EE_CODE_ZEROCOPY_COPIED` of
/// linux/errqueue.h, which libc does not have.
const ORIGIN_ZERO_COPY: u8 = 5;
const CODE_COPIED: u8 = 1;
