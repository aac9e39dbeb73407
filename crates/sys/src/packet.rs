//! Packet sockets (packet(7)): what capturing frames and forwarding them have
//! in common.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Every protocol, in network byte order, as the kernel wants it.
const EVERYTHING: u16 = (libc::ETH_P_ALL as u16).to_be();

/// A socket that receives nothing before it is [`bind`]ed, so that no frame of
/// another device is ever seen. Reads do not wait.
pub(crate) fn open() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: makes a descriptor; takes no pointer.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
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
    let answer = unsafe {
        libc::bind(
            fd.as_raw_fd(),
            std::ptr::from_ref(&address).cast(),
            size_of_val(&address) as libc::socklen_t,
        )
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Sets an option of a socket to a plain C value.
///
/// # Safety
///
/// What the value points to, if it does, must live as long as the call.
pub(crate) unsafe fn set<T: Copy>(
    fd: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the descriptor is open; pointer and length describe a live value,
    // and the caller guarantees what it points to.
    let answer = unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of_val(value) as libc::socklen_t,
        )
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
