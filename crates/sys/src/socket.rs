//! Non-blocking TCP and UDP sockets with the options that a load needs.

mod control;
mod errors;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod messages;
mod stamps;
mod zero_copy;

pub use errors::{TooLong, is_too_long};
pub use messages::{Messages, TRAIN_MESSAGES};
pub use stamps::{Departure, SendStamp};
pub use zero_copy::ZeroCopyNotice;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use socket2::{Domain, Protocol, Type};

use crate::sockopt;

/// A non-blocking socket; closed when dropped.
#[derive(Debug)]
pub struct Socket(socket2::Socket);

/// What the kernel reports about a TCP connection (`TCP_INFO`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Bytes that the other side's kernel has acknowledged; counts the
    /// handshake's SYN as one byte.
    pub bytes_acked: u64,
    /// Segments sent again.
    pub retransmits: u32,
    /// Both sides may still send.
    pub established: bool,
    /// Most bytes of a segment that is sent, options of TCP left out.
    pub send_mss: u32,
    /// Most bytes of a segment that the other side was told to send, options included.
    pub advertised_mss: u32,
}

impl Socket {
    /// Begins to connect, from a given source address or one that the kernel
    /// picks. The socket becomes writable when the attempt has ended;
    /// [`take_error`](Self::take_error) then says how.
    pub fn connect_tcp(to: SocketAddr, from: Option<IpAddr>) -> io::Result<Self> {
        let kind = Type::STREAM.nonblocking().cloexec();
        let socket = Self(new_raw(to, kind, Protocol::TCP)?);
        socket.0.set_tcp_nodelay(true)?;
        socket.start_from(from)?;
        match socket.0.connect(&to.into()) {
            Err(e) if e.raw_os_error() != Some(libc::EINPROGRESS) => Err(e),
            _ => Ok(socket),
        }
    }

    /// Listens on `at`; port 0 lets the kernel pick. With `reuse_port` several
    /// sockets share the port, and the kernel distributes connections among
    /// them. Connections inherit `TCP_NODELAY`.
    pub fn listen_tcp(at: SocketAddr, reuse_port: bool) -> io::Result<Self> {
        let kind = Type::STREAM.nonblocking().cloexec();
        let socket = new_raw(at, kind, Protocol::TCP)?;
        socket.set_tcp_nodelay(true)?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(reuse_port)?;
        socket.bind(&at.into())?;
        // The kernel reduces this to net.core.somaxconn.
        socket.listen(65_535)?;
        Ok(Self(socket))
    }

    /// Takes one connection from the queue of a listening socket;
    /// `WouldBlock` when there is none.
    pub fn accept(&self) -> io::Result<Self> {
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        let (socket, _) = self.0.accept4(flags)?;
        Ok(Self(socket))
    }

    /// Has TCP find the rate of the path in this way (`TCP_CONGESTION`). Connections inherit it
    /// from the socket that listens.
    ///
    /// # Errors
    ///
    /// Also a way that the kernel lacks, or lets only administrators choose
    /// (`net.ipv4.tcp_allowed_congestion_control`).
    pub fn set_congestion_control(&self, name: &str) -> io::Result<()> {
        self.0.set_tcp_congestion(name.as_bytes())
    }

    /// Another descriptor of the same socket.
    pub fn duplicate(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// A UDP socket that sends to `to` and receives only from there; its source
    /// address is `from`, or one that the kernel picks.
    pub fn connect_udp(to: SocketAddr, from: Option<IpAddr>) -> io::Result<Self> {
        let kind = Type::DGRAM.nonblocking().cloexec();
        let socket = Self(new_raw(to, kind, Protocol::UDP)?);
        socket.start_from(from)?;
        socket.0.connect(&to.into())?;
        Ok(socket)
    }

    /// Binds to a source address, but leaves its port open until the connect,
    /// so that a port may serve for several destinations.
    fn start_from(&self, from: Option<IpAddr>) -> io::Result<()> {
        let Some(from) = from else {
            return Ok(());
        };
        sockopt::set_integer(self, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
        self.0.bind(&SocketAddr::new(from, 0).into())
    }

    /// A UDP socket bound to `at`; see [`listen_tcp`](Self::listen_tcp).
    pub fn bind_udp(at: SocketAddr, reuse_port: bool) -> io::Result<Self> {
        let kind = Type::DGRAM.nonblocking().cloexec();
        let socket = new_raw(at, kind, Protocol::UDP)?;
        socket.set_reuse_port(reuse_port)?;
        socket.bind(&at.into())?;
        Ok(Self(socket))
    }

    /// Asks for kernel buffers of this many bytes. Without privileges the
    /// kernel gives at most `net.core.rmem_max` and `wmem_max`.
    pub fn set_buffers(&self, receive: usize, send: usize) -> io::Result<()> {
        self.0.set_recv_buffer_size(receive)?;
        self.0.set_send_buffer_size(send)
    }

    /// Reads into `into` and gives the number of bytes; 0 is the end of a TCP
    /// stream.
    #[inline]
    pub fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        let (fd, flags) = (self.as_raw_fd(), 0_usize);
        let (start, length) = (into.as_mut_ptr(), into.len());
        // SAFETY: the descriptor is open; the kernel writes at most `length`
        // bytes into `into`, and no address where the pointers are null. Not
        // through the C library: with threads its call is a cancellation point,
        // whose bookkeeping is a tenth of our own time for a request.
        let got = unsafe {
            libc::syscall(
                libc::SYS_recvfrom,
                fd,
                start,
                length,
                flags,
                0_usize,
                0_usize,
            )
        };
        bytes_or_error(got)
    }

    /// Sends what the kernel takes of `bytes` and returns how many that was. A
    /// closed connection is an error, not a signal.
    #[inline]
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        let (fd, flags) = (self.as_raw_fd(), libc::MSG_NOSIGNAL as usize);
        let (start, length) = (bytes.as_ptr(), bytes.len());
        // SAFETY: the descriptor is open, and the kernel only reads `bytes`;
        // a null address means the one connected to. Why not by the C library:
        // see `receive`.
        let taken =
            unsafe { libc::syscall(libc::SYS_sendto, fd, start, length, flags, 0_usize, 0_usize) };
        bytes_or_error(taken)
    }

    /// As [`send`](Self::send), to an address: for a socket that is not connected.
    pub fn send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.0.send_to(bytes, &to.into())
    }

    /// Closes a connection at once: the other side is told by a reset, and neither keeps
    /// the port for packets that may be late.
    pub fn reset(self) -> io::Result<()> {
        self.0.set_linger(Some(Duration::ZERO))
    }

    /// How the connection attempt ended, or the error that broke the
    /// connection; reading clears it.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.0.take_error()
    }

    /// The address that this side is bound to.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let address = self.0.local_addr()?;
        address
            .as_socket()
            .ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))
    }

    /// Largest packet, headers included, that the path of a connected socket
    /// is known to take, in bytes (`IP_MTU`, `IPV6_MTU`).
    pub fn path_mtu(&self) -> io::Result<usize> {
        let (level, name) = if self.local_addr()?.is_ipv4() {
            (libc::IPPROTO_IP, libc::IP_MTU)
        } else {
            (libc::IPPROTO_IPV6, libc::IPV6_MTU)
        };
        // SAFETY: any bytes are an integer.
        let mtu: libc::c_int = unsafe { sockopt::get(self, level, name)? };
        Ok(mtu as usize)
    }

    /// Acknowledged bytes and retransmissions of a TCP connection.
    pub fn tcp_info(&self) -> io::Result<TcpInfo> {
        // SAFETY: tcp_info is made of integers only.
        let info: libc::tcp_info =
            unsafe { sockopt::get(self, libc::IPPROTO_TCP, libc::TCP_INFO)? };
        Ok(TcpInfo {
            bytes_acked: info.tcpi_bytes_acked,
            retransmits: info.tcpi_total_retrans,
            established: info.tcpi_state == TCP_ESTABLISHED,
            send_mss: info.tcpi_snd_mss,
            advertised_mss: info.tcpi_advmss,
        })
    }

    fn as_raw_fd(&self) -> libc::c_int {
        self.0.as_raw_fd()
    }
}

/// What a call that moves bytes has returned.
#[inline]
fn bytes_or_error(code: libc::c_long) -> io::Result<usize> {
    usize::try_from(code).map_err(|_| io::Error::last_os_error())
}

/// State of a connection whose handshake is done and of which neither side has
/// sent its end (include/net/tcp_states.h).
const TCP_ESTABLISHED: u8 = 1;

fn new_raw(address: SocketAddr, kind: Type, protocol: Protocol) -> io::Result<socket2::Socket> {
    socket2::Socket::new_raw(Domain::for_address(address), kind, Some(protocol))
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests;
