//! Keeping packets whole.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// Forbids fragments of what the socket sends: a datagram larger than the path
/// fails with `EMSGSIZE` instead (IP_MTU_DISCOVER in ip(7), IPV6_MTU_DISCOVER
/// in ipv6(7)). So the size that still passes is the path's MTU (N-4).
pub fn forbid(socket: &UdpSocket) -> io::Result<()> {
    let (level, option, value) = if socket.local_addr()?.is_ipv4() {
        (
            libc::IPPROTO_IP,
            libc::IP_MTU_DISCOVER,
            libc::IP_PMTUDISC_DO,
        )
    } else {
        (
            libc::IPPROTO_IPV6,
            libc::IPV6_MTU_DISCOVER,
            libc::IPV6_PMTUDISC_DO,
        )
    };
    // SAFETY: the descriptor is open, and the value pointer and length describe
    // a live integer for the duration of the call.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(&value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if answer == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
