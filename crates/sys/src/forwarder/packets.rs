//! Packets in and out of descriptors, without allocating.

use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd};

/// Reads one packet; `None` when there is none, or it could not be read.
pub fn read(from: &impl AsFd, buffer: &mut [u8]) -> Option<usize> {
    let fd = from.as_fd().as_raw_fd();
    // SAFETY: pointer and length describe a live buffer that nobody else uses.
    let length = unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(length).ok()
}

/// Receives one datagram without waiting; `None` when there is none.
pub fn receive(from: &impl AsFd, buffer: &mut [u8]) -> Option<usize> {
    let (fd, length) = (from.as_fd().as_raw_fd(), buffer.len());
    // SAFETY: pointer and length describe a live buffer that nobody else uses.
    let length = unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), length, libc::MSG_DONTWAIT) };
    usize::try_from(length).ok()
}

/// Writes one packet, and tries again where there is no room for it yet. What the
/// kernel refuses for another reason is lost, as in any network.
pub fn write(to: &impl AsFd, packet: &[u8]) {
    let fd = to.as_fd().as_raw_fd();
    loop {
        // SAFETY: pointer and length describe a live buffer.
        let sent = unsafe { libc::write(fd, packet.as_ptr().cast(), packet.len()) };
        if sent >= 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::EAGAIN) {
            return;
        }
    }
}

/// Sends one datagram. What the kernel refuses is lost.
pub fn send_to(by: &impl AsFd, datagram: &[u8], to: SocketAddrV4) {
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: to.port().to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from(*to.ip()).to_be(),
        },
        sin_zero: [0; 8],
    };
    // SAFETY: both pointers and lengths describe live values, the address one of
    // the family that the kernel expects.
    unsafe {
        libc::sendto(
            by.as_fd().as_raw_fd(),
            datagram.as_ptr().cast(),
            datagram.len(),
            0,
            std::ptr::from_ref(&address).cast(),
            size_of_val(&address) as libc::socklen_t,
        )
    };
}

/// Waits until one of the descriptors can be read; says whether waiting works.
pub fn wait<const N: usize>(for_any: [&dyn AsFd; N]) -> bool {
    let mut polled = for_any.map(|one| libc::pollfd {
        fd: one.as_fd().as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: pointer and number describe a live array.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, -1) };
    ready >= 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
}
