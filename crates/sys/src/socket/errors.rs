//! What becomes of datagrams that are longer than their path takes (`IP_RECVERR` in ip(7),
//! `IPV6_RECVERR` in ipv6(7)).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Socket;
use super::control::{self, extended_error};
use crate::sockopt;

/// From `linux/errqueue.h`.
const ORIGIN_LOCAL: u8 = 1;

/// Somebody says that a datagram was too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The longest packet that goes on, headers included, in bytes; 0 where it was not said.
    pub mtu: u32,
    /// Who answered by ICMP; `None` where the own stack refused.
    pub router: Option<IpAddr>,
}

/// Whether a send failed because of the size of what was sent (`EMSGSIZE`).
pub fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMSGSIZE)
}

impl Socket {
    /// Forbids fragments of what a connected UDP socket sends, and has the kernel keep what
    /// is answered to them. A datagram that is longer than the path is known to take fails
    /// with `EMSGSIZE`, and so does the next one after somebody on the way has refused one;
    /// [`too_long`](Self::too_long) tells the two apart.
    pub fn forbid_fragments(&self) -> io::Result<()> {
        let (level, discover, report) = match self.local_addr()?.is_ipv4() {
            true => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_RECVERR),
            false => (
                libc::IPPROTO_IPV6,
                libc::IPV6_MTU_DISCOVER,
                libc::IPV6_RECVERR,
            ),
        };
        sockopt::set_integer(self, level, discover, libc::IP_PMTUDISC_DO)?;
        sockopt::set_integer(self, level, report, 1)
    }

    /// The next word that a datagram was too long; `None` when there is no more now. Other
    /// errors that the kernel has kept are skipped.
    pub fn too_long(&self) -> io::Result<Option<TooLong>> {
        self.next_kept(told)
    }
}

pub(super) fn told(control: &[u8]) -> Option<TooLong> {
    let mut found = None;
    control::each(control, |level, kind, data| {
        if let Some(error) = extended_error(level, kind, data) {
            let behind = data.get(size_of::<libc::sock_extended_err>()..);
            found = Some((error, behind.and_then(address)));
        }
    });
    let (error, from) = found?;
    (error.ee_errno == libc::EMSGSIZE as u32).then_some(TooLong {
        mtu: error.ee_info,
        router: from.filter(|_| error.ee_origin != ORIGIN_LOCAL),
    })
}

/// The address in the bytes of a `sockaddr_in` or `sockaddr_in6`.
fn address(bytes: &[u8]) -> Option<IpAddr> {
    let family = u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?);
    match i32::from(family) {
        libc::AF_INET => {
            let octets: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            Some(Ipv4Addr::from(octets).into())
        }
        libc::AF_INET6 => {
            let octets: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            Some(Ipv6Addr::from(octets).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn the_own_stack_is_told_from_a_router() {
        let at: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
        let far = Socket::bind_udp(at, false).unwrap();
        let near = Socket::connect_udp(far.local_addr().unwrap(), None).unwrap();
        near.forbid_fragments().unwrap();
        assert_eq!(near.too_long().unwrap(), None);
        // Loopback takes 65,536 bytes, of which IP can say 65,535.
        let error = near.send(&[0; 65_535]).unwrap_err();
        assert!(is_too_long(&error), "{error}");
        if let Some(told) = near.too_long().unwrap() {
            assert_eq!(told.router, None);
        }
    }

    #[test]
    fn addresses_are_read_from_their_bytes() {
        let mut v4 = [0; 16];
        v4[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
        v4[4..8].copy_from_slice(&[198, 18, 0, 1]);
        assert_eq!(address(&v4), Some(Ipv4Addr::new(198, 18, 0, 1).into()));
        let mut v6 = [0; 28];
        v6[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
        v6[23] = 1;
        assert_eq!(address(&v6), Some(Ipv6Addr::LOCALHOST.into()));
        assert_eq!(address(&[0; 28]), None);
        assert_eq!(address(&v4[..6]), None);
    }
}
