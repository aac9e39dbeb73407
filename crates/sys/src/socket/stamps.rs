//! When the kernel handled a message: software time stamps of single sends and
//! of all receives (`SO_TIMESTAMPING`, L-17).
//!
//! Receives are stamped for the whole socket, sends only where
//! [`Socket::send_stamped`] asks for it. The stamps of a send come back on the
//! socket's error queue; a poller reports them as an error until they are read.
//! All stamps are wall-clock times ([`crate::clock::ClockPair`] converts them).

use std::io;
use std::ptr;

use super::Socket;
use super::control::{self, Control, extended_error, header};
use crate::sockopt;

/// Bytes of control messages: three stamps, an error with its address, and room
/// for what later kernels may add.
const CONTROL: usize = 256;

/// From `linux/errqueue.h` and `linux/net_tstamp.h`; libc does not have them.
const ORIGIN_TIMESTAMPING: u8 = 4;
const STAMP_SENT: u32 = 0;
const STAMP_QUEUED: u32 = 1;
/// Linux 6.2: the numbers of a stream start at what was written, not at what
/// was acknowledged, when stamps are switched on.
const OPT_ID_TCP: u32 = 1 << 16;

/// Where in the kernel a message was stamped on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// It reached the queue of the device (`TX_SCHED`).
    Queued,
    /// It was handed to the device (`TX_SOFTWARE`).
    Sent,
}

/// One time stamp of a sent message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendStamp {
    /// Where it was.
    pub at: Departure,
    /// Which message: over TCP the offset of its last byte in all that was
    /// sent since stamps were switched on, over UDP the number of stamped
    /// messages before it; both modulo 2³².
    pub id: u32,
    /// Wall clock, nanoseconds.
    pub realtime_ns: u64,
}

impl Socket {
    /// Switches on stamps: of everything that arrives, and of sends that ask
    /// for it. `Unsupported` where the kernel does not know them.
    ///
    /// Until the last such socket is closed, the kernel reads its clock for
    /// every packet that this machine receives.
    pub fn enable_stamps(&self) -> io::Result<()> {
        let base = libc::SOF_TIMESTAMPING_RX_SOFTWARE
            | libc::SOF_TIMESTAMPING_SOFTWARE
            | libc::SOF_TIMESTAMPING_OPT_ID
            | libc::SOF_TIMESTAMPING_OPT_TSONLY;
        let stream = self.0.r#type()? == socket2::Type::STREAM;
        if stream && self.set_timestamping(base | OPT_ID_TCP).is_ok() {
            return Ok(());
        }
        // Older kernels count from the acknowledged bytes, which is the same
        // while nothing is on its way yet.
        self.set_timestamping(base).map_err(|error| {
            io::Error::new(
                io::ErrorKind::Unsupported,
                format!("SO_TIMESTAMPING is refused: {error}"),
            )
        })
    }

    fn set_timestamping(&self, flags: u32) -> io::Result<()> {
        let (level, option) = (libc::SOL_SOCKET, libc::SO_TIMESTAMPING);
        sockopt::set_integer(self, level, option, flags as libc::c_int)
    }

    /// As [`send`](Self::send), and the kernel stamps the message when it
    /// reaches the device's queue and when it is handed to the device.
    /// [`send_stamp`](Self::send_stamp) reads the stamps.
    pub fn send_stamped(&self, bytes: &[u8]) -> io::Result<usize> {
        let wanted = libc::SOF_TIMESTAMPING_TX_SCHED | libc::SOF_TIMESTAMPING_TX_SOFTWARE;
        let mut control = Control::<CONTROL>::EMPTY;
        let mut part = libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        };
        let mut header = header(&mut part, &mut control);
        control.put(&mut header, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, wanted);
        // SAFETY: all buffers live until after the call, which only reads them.
        let sent = unsafe { libc::sendmsg(self.as_raw_fd(), &header, libc::MSG_NOSIGNAL) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// The next stamp of a sent message; `None` when there is no more now.
    /// Other entries of the error queue are skipped.
    pub fn send_stamp(&self) -> io::Result<Option<SendStamp>> {
        self.next_kept(departure)
    }

    /// As [`receive`](Self::receive), and when the last packet of what was
    /// read had arrived: wall clock, nanoseconds; `None` where the kernel did
    /// not stamp it.
    pub fn receive_stamped(&self, into: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
        let mut control = Control::<CONTROL>::EMPTY;
        let mut part = libc::iovec {
            iov_base: into.as_mut_ptr().cast(),
            iov_len: into.len(),
        };
        let mut header = header(&mut part, &mut control);
        let length = self.receive_message(&mut header, 0)?;
        Ok((length, software_stamp(control.received(&header))))
    }

    /// What can be read of the next entry of the error queue, by its control messages;
    /// `None` when there is no more now. Entries of which nothing can be read are skipped.
    pub(super) fn next_kept<T>(&self, read: fn(&[u8]) -> Option<T>) -> io::Result<Option<T>> {
        loop {
            let mut control = Control::<CONTROL>::EMPTY;
            let mut part = libc::iovec {
                iov_base: ptr::null_mut(),
                iov_len: 0,
            };
            let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
            let mut header = header(&mut part, &mut control);
            match self.receive_message(&mut header, flags) {
                Ok(_) => {
                    if let Some(found) = read(control.received(&header)) {
                        return Ok(Some(found));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    fn receive_message(&self, header: &mut libc::msghdr, flags: i32) -> io::Result<usize> {
        // SAFETY: `header` was made by `header` from buffers that the
        // callers own and that live until after the call.
        let received = unsafe { libc::recvmsg(self.as_raw_fd(), header, flags) };
        usize::try_from(received).map_err(|_| io::Error::last_os_error())
    }
}

/// The software stamp among the control messages of what was received.
pub(super) fn software_stamp(control: &[u8]) -> Option<u64> {
    let mut stamp = None;
    control::each(control, |level, kind, data| {
        if (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) {
            stamp = realtime(data);
        }
    });
    stamp
}

/// What the control messages of an error queue say about a message's way out.
pub(super) fn departure(control: &[u8]) -> Option<SendStamp> {
    let mut found = None;
    control::each(control, |level, kind, data| {
        found = found.or(extended_error(level, kind, data));
    });
    let error = found.filter(|error| error.ee_origin == ORIGIN_TIMESTAMPING)?;
    let at = match error.ee_info {
        STAMP_QUEUED => Departure::Queued,
        STAMP_SENT => Departure::Sent,
        _ => return None,
    };
    Some(SendStamp {
        at,
        id: error.ee_data,
        realtime_ns: software_stamp(control)?,
    })
}

/// The first of the three stamps of `scm_timestamping`, which is the software
/// one; zero means that there is none, and no clock is set to before 1970.
fn realtime(data: &[u8]) -> Option<u64> {
    // SAFETY: a timespec is made of integers only.
    let stamp: libc::timespec = unsafe { control::value(data)? };
    let (seconds, ns) = (u64::try_from(stamp.tv_sec), u64::try_from(stamp.tv_nsec));
    let ns = seconds
        .ok()?
        .checked_mul(1_000_000_000)?
        .checked_add(ns.ok()?)?;
    (ns > 0).then_some(ns)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::clock::ClockPair;

    fn patiently<T>(mut call: impl FnMut() -> io::Result<T>) -> T {
        let start = Instant::now();
        loop {
            match call() {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    assert!(start.elapsed() < Duration::from_secs(20), "nothing came");
                    std::thread::yield_now();
                }
                other => return other.unwrap(),
            }
        }
    }

    fn stamps(socket: &Socket) -> Vec<SendStamp> {
        std::iter::from_fn(|| socket.send_stamp().unwrap()).collect()
    }

    #[test]
    fn a_stamp_that_no_clock_shows_is_none() {
        let stamp = |seconds: i64, ns: i64| {
            let bytes = [seconds.to_ne_bytes(), ns.to_ne_bytes()].concat();
            realtime(&bytes)
        };
        assert_eq!(stamp(2, 7), Some(2_000_000_007));
        for (seconds, ns) in [(0, 0), (-1, 0), (i64::MAX, 0), (1, -1)] {
            assert_eq!(stamp(seconds, ns), None, "{seconds} {ns}");
        }
    }

    /// The kernel begins to stamp receives, of all sockets, some time after it was asked:
    /// waits for that.
    fn until_receives_are_stamped() {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let far = Socket::bind_udp(at, false).unwrap();
        let near = Socket::connect_udp(far.local_addr().unwrap(), None).unwrap();
        far.enable_stamps().unwrap();
        let start = Instant::now();
        loop {
            patiently(|| near.send(b"early"));
            let (_, stamp) = patiently(|| far.receive_stamped(&mut [0; 64]));
            if stamp.is_some() {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "no stamps");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends twice without and once with stamps, and gives what was reported
    /// of it, after checking that all happened in the order that it must.
    fn one_stamped_send(near: &Socket, far: &Socket) -> u32 {
        near.enable_stamps().unwrap();
        far.enable_stamps().unwrap();
        until_receives_are_stamped();
        for _ in 0..2 {
            patiently(|| near.send(b"plain"));
        }
        assert!(stamps(near).is_empty(), "nobody asked for these");
        let before = ClockPair::now();
        patiently(|| near.send_stamped(b"stamped!"));
        let told = stamps(near);
        let mut buffer = [0; 64];
        let mut arrived = None;
        let mut got = 0;
        while got < 18 {
            let (length, stamp) = patiently(|| far.receive_stamped(&mut buffer));
            got += length;
            arrived = stamp;
        }
        let after = ClockPair::now();
        let places: Vec<Departure> = told.iter().map(|it| it.at).collect();
        assert_eq!(places, [Departure::Queued, Departure::Sent]);
        let order = [
            before.realtime_ns - before.error_ns,
            told[0].realtime_ns,
            told[1].realtime_ns,
            arrived.expect("the kernel stamps what it receives"),
            after.realtime_ns + after.error_ns,
        ];
        assert!(order.is_sorted(), "{order:?}");
        assert_eq!(told[0].id, told[1].id);
        told[0].id
    }

    #[test]
    fn a_stream_counts_bytes_and_a_datagram_counts_stamped_messages() {
        for at in [
            SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            (Ipv6Addr::LOCALHOST, 0).into(),
        ] {
            let listener = Socket::listen_tcp(at, false).unwrap();
            let near = Socket::connect_tcp(listener.local_addr().unwrap(), None).unwrap();
            let far = patiently(|| listener.accept());
            assert_eq!(one_stamped_send(&near, &far), 5 + 5 + 8 - 1);

            let far = Socket::bind_udp(at, false).unwrap();
            let near = Socket::connect_udp(far.local_addr().unwrap(), None).unwrap();
            assert_eq!(one_stamped_send(&near, &far), 0);
        }
    }
}
