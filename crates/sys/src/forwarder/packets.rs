//! System calls on numbered descriptors, for code that must not allocate.

/// Reads one packet; `None` when there is none, or it could not be read.
pub(super) fn read(fd: libc::c_int, buffer: &mut [u8]) -> Option<usize> {
    // SAFETY: pointer and length describe a live buffer that nobody else uses.
    let length = unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(length).ok()
}

/// Receives one datagram without waiting; `None` when there is none.
pub(super) fn receive(fd: libc::c_int, buffer: &mut [u8]) -> Option<usize> {
    let length = buffer.len();
    // SAFETY: pointer and length describe a live buffer that nobody else uses.
    let length = unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), length, libc::MSG_DONTWAIT) };
    usize::try_from(length).ok()
}

/// Writes one packet, and tries again where there is no room for it yet. What the
/// kernel refuses for another reason is lost, as in any network.
pub(super) fn write(fd: libc::c_int, packet: &[u8]) {
    loop {
        // SAFETY: pointer and length describe a live buffer.
        let sent = unsafe { libc::write(fd, packet.as_ptr().cast(), packet.len()) };
        if sent >= 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::EAGAIN) {
            return;
        }
    }
}

/// Sends one datagram. What the kernel refuses is lost.
pub(super) fn send_to(fd: libc::c_int, datagram: &[u8], to: &libc::sockaddr_in) {
    // SAFETY: both pointers and lengths describe live values, the address one of
    // the family that the kernel expects.
    unsafe {
        libc::sendto(
            fd,
            datagram.as_ptr().cast(),
            datagram.len(),
            0,
            std::ptr::from_ref(to).cast(),
            size_of_val(to) as libc::socklen_t,
        );
    }
}

/// Waits until one of the descriptors can be read; says whether waiting works.
pub(super) fn wait<const N: usize>(fds: [libc::c_int; N]) -> bool {
    let mut polled = fds.map(|fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: pointer and number describe a live array.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, -1) };
    ready >= 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
}

/// An IPv4 address and port as the kernel wants it.
pub(super) fn address(to: std::net::SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: to.port().to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from(*to.ip()).to_be(),
        },
        sin_zero: [0; 8],
    }
}
