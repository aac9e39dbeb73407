//! Packets in and out of descriptors, without allocating.

use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, SockaddrIn, recv, sendto};

/// Reads one packet; `None` when there is none, or it could not be read.
pub fn read(from: &impl AsFd, buffer: &mut [u8]) -> Option<usize> {
    nix::unistd::read(from, buffer).ok()
}

/// Receives one datagram without waiting; `None` when there is none.
pub fn receive(from: &impl AsFd, buffer: &mut [u8]) -> Option<usize> {
    recv(from.as_fd().as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT).ok()
}

/// Writes one packet, and tries again where there is no room for it yet. A packet
/// that the kernel refuses for another reason is lost, as in any network.
pub fn write(to: &impl AsFd, packet: &[u8]) {
    while nix::unistd::write(to, packet) == Err(Errno::EAGAIN) {}
}

/// Sends one datagram. One that the kernel refuses is lost.
pub fn send_to(by: &impl AsFd, datagram: &[u8], to: SocketAddrV4) {
    let socket = by.as_fd().as_raw_fd();
    let _ = sendto(socket, datagram, &SockaddrIn::from(to), MsgFlags::empty());
}

/// Waits until one of the descriptors can be read; false when waiting fails.
pub fn wait<const N: usize>(for_any: [&dyn AsFd; N]) -> bool {
    let mut polled = for_any.map(|one| PollFd::new(one.as_fd(), PollFlags::POLLIN));
    matches!(
        poll(&mut polled, PollTimeout::NONE),
        Ok(_) | Err(Errno::EINTR)
    )
}
