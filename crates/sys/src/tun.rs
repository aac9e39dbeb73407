//! TUN devices: packets of the kernel, read and written by a program.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use crate::ethtool;

/// A TUN device in the network namespace of the thread that made it. It
/// disappears when its last descriptor is closed.
#[derive(Debug)]
pub struct Tun {
    file: File,
}

impl Tun {
    /// Makes a device of this name that carries plain IP packets, without a
    /// driver header. Reads do not wait.
    ///
    /// # Errors
    ///
    /// `ENOENT` or `ENODEV` where the kernel lacks the driver or `/dev/net/tun` is
    /// not there; `EPERM` without `CAP_NET_ADMIN` in the namespace; `EINVAL` for a
    /// name of more than 15 bytes.
    pub fn open(name: &str) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")?;
        let mut request = ethtool::request_for(name)?;
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the request reads and writes one `ifreq`, which lives on this
        // stack; its name ends with a zero.
        let code = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
        nix::errno::Errno::result(code)?;
        Ok(Self { file })
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
