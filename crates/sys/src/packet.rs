//! Packet sockets (packet(7)): what capturing frames and forwarding them have
//! in common.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use socket2::{Domain, Socket, Type};

/// Every protocol, in network byte order, as the kernel wants it.
const EVERYTHING: u16 = (libc::ETH_P_ALL as u16).to_be();

/// A socket that receives nothing before it is [`bind`]ed, so that no frame of
/// another device is ever seen. Reads do not wait.
pub(crate) fn open() -> io::Result<OwnedFd> {
    let kind = Type::RAW.nonblocking().cloexec();
    Ok(Socket::new_raw(Domain::PACKET, kind, None)?.into())
}

/// Begins to receive what the device with this index carries.
pub(crate) fn bind(fd: &OwnedFd, device: u32) -> io::Result<()> {
    // SAFETY: an all-zero `sockaddr_ll` is a valid value of this plain C
    // structure.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = EVERYTHING;
    address.sll_ifindex = device as libc::c_int;
    // SAFETY: the descriptor is open; pointer and length describe a live
    // structure of the family that the kernel expects.
    let code = unsafe {
        let length = size_of_val(&address) as libc::socklen_t;
        libc::bind(fd.as_raw_fd(), std::ptr::from_ref(&address).cast(), length)
    };
    Ok(Errno::result(code).map(drop)?)
}
