//! A stream: one connection of TCP, as full as it gets.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};

use plumbline_protocol::{SentStream, StreamOrder};
use plumbline_sys::clock::now_ns;
use plumbline_sys::poll::{Interest, Poller, Trigger};
use plumbline_sys::socket::Socket;

/// Longest sleep without a look at `stop`.
const LOOK_NS: u64 = 20_000_000;
/// Bytes of one write.
const WRITE_BYTES: usize = 1 << 16;

/// Sends a stream. What keeps it from being connected is part of what is seen.
pub(super) fn send(order: &StreamOrder, stop: &AtomicBool) -> SentStream {
    match sent(order, stop) {
        Ok(seen) => seen,
        Err(error) => SentStream {
            refused: Some(error.to_string()),
            ..SentStream::default()
        },
    }
}

fn sent(order: &StreamOrder, stop: &AtomicBool) -> io::Result<SentStream> {
    let socket = Socket::connect_tcp(order.to, None)?;
    let mut poller = Poller::new(1)?;
    poller.add(socket.as_fd(), 0, Interest::ReadWrite, Trigger::Edge)?;
    let asked = now_ns();
    while !is_connected(&socket)? {
        if now_ns() > asked + order.connect_ns || stop.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        poller.wait(LOOK_NS)?;
    }
    let begun = now_ns();
    let end = begun + order.length_ns;
    let mut bytes = vec![0xa5; WRITE_BYTES];
    bytes[..8].copy_from_slice(&order.key.to_be_bytes());
    // The first bytes of all are the key, and are written whole.
    let mut is_broken = socket.send(&bytes[..8]).is_err();
    while now_ns() < end && !is_broken && !stop.load(Ordering::SeqCst) {
        match socket.send(&bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let left = end.saturating_sub(now_ns());
                poller.wait(left.min(LOOK_NS))?;
            }
            sent => is_broken = sent.is_err(),
        }
    }
    let info = socket.tcp_info()?;
    let length_ns = now_ns() - begun;
    // What still waits is of no use to anybody.
    socket.reset()?;
    Ok(SentStream {
        refused: None,
        // The handshake counts as one byte.
        acked: info.bytes_acked.saturating_sub(1),
        length_ns,
        retransmits: info.retransmits,
        send_mss: info.send_mss,
    })
}

/// Whether the connection stands.
///
/// # Errors
///
/// How the attempt ended.
fn is_connected(socket: &Socket) -> io::Result<bool> {
    match socket.take_error()? {
        Some(error) => Err(error),
        None => Ok(socket.tcp_info()?.established),
    }
}
