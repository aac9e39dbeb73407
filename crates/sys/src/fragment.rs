//! Keeping packets whole, or not.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::OwnedFd;

use socket2::{Domain, Protocol, Socket, Type};

use crate::sockopt;

/// Forbids fragments of what the socket sends: a datagram larger than the path
/// fails with `EMSGSIZE` instead (IP_MTU_DISCOVER in ip(7), IPV6_MTU_DISCOVER
/// in ipv6(7)). So the size that still passes is the path's MTU (N-4).
pub fn forbid(socket: &UdpSocket) -> io::Result<()> {
    if socket.local_addr()?.is_ipv4() {
        return discover_mtu(socket, libc::IP_PMTUDISC_DO);
    }
    let (level, option) = (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER);
    sockopt::set_integer(socket, level, option, libc::IP_PMTUDISC_DO)
}

/// Lets the kernel cut what an IPv4 socket sends into fragments, and lets routers
/// do so.
pub fn permit(socket: &UdpSocket) -> io::Result<()> {
    discover_mtu(socket, libc::IP_PMTUDISC_DONT)
}

/// A socket that sends UDP over IPv4 from `own` to `peer`, and never in fragments.
/// What is written to it begins with the header of UDP. It also gets a copy of every
/// UDP packet from `peer`.
///
/// # Errors
///
/// `EPERM` without `CAP_NET_RAW` in the network namespace of the calling thread.
pub fn whole_datagrams(own: Ipv4Addr, peer: Ipv4Addr) -> io::Result<OwnedFd> {
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::UDP))?;
    socket.bind(&SocketAddrV4::new(own, 0).into())?;
    socket.connect(&SocketAddrV4::new(peer, 0).into())?;
    discover_mtu(&socket, libc::IP_PMTUDISC_DO)?;
    Ok(socket.into())
}

fn discover_mtu(socket: &impl std::os::fd::AsFd, how: libc::c_int) -> io::Result<()> {
    sockopt::set_integer(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, how)
}
