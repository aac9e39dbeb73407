//! What moves bytes: the interface between the event loop and the kernel.

mod epoll;
mod margin;
mod uring;
mod waiting;

use std::io;

use plumbline_sys::socket::Socket;

pub(crate) use epoll::Epoll;
pub(crate) use uring::Uring;

/// How a socket is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchMode {
    /// A byte stream: reported when something changes, room to send included.
    /// The caller must then read until [`Received::drained`].
    Stream,
    /// Datagrams or connections to accept: reported as long as there are any.
    Queue,
    /// Datagrams that are only sent: reported when there is room again.
    Sink,
}

/// Something happened to the socket in a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) slot: usize,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The other side will send no more; what it has sent must still be read.
    pub(crate) hangup: bool,
}

/// Bytes that arrived; none is the end of a stream.
#[derive(Debug)]
pub(crate) struct Received<'a> {
    pub(crate) bytes: &'a [u8],
    /// Whether nothing more was there. An end of the stream may still follow.
    pub(crate) drained: bool,
}

/// Sockets in numbered slots, and a way to wait for them.
///
/// The caller asks for bytes and gives bytes. The driver may make a system call
/// for each, or hand over what a ring has already completed. Nothing here
/// allocates once the sockets are in.
pub(crate) trait Driver {
    /// Name in the record.
    const NAME: &'static str;

    /// Puts a socket into an empty slot and starts watching it.
    fn insert(&mut self, slot: usize, socket: Socket, watch: WatchMode) -> io::Result<()>;

    /// Closes the socket in a slot, if there is one.
    fn remove(&mut self, slot: usize);

    /// The socket in a slot, for its options.
    fn socket(&self, slot: usize) -> Option<&Socket>;

    /// Waits until something happens or the clock reaches `until`; `now` is
    /// the caller's last reading. May return early with nothing. Gives the
    /// number of events.
    fn wait(&mut self, now: u64, until: u64) -> io::Result<usize>;

    /// Nanoseconds that all waits so far have spent polling without result.
    fn spun_ns(&self) -> u64;

    /// The `index`th event of the last wait. Until the next call,
    /// [`receive`](Self::receive) concerns this event.
    fn event(&mut self, index: usize) -> Event;

    /// What has arrived in a slot; `WouldBlock` when nothing has.
    fn receive(&mut self, slot: usize) -> io::Result<Received<'_>>;

    /// As [`receive`](Self::receive), with the arrival time of its last packet:
    /// wall clock, nanoseconds; `None` where the kernel did not stamp it
    /// (L-17).
    fn receive_stamped(&mut self, slot: usize) -> io::Result<(Received<'_>, Option<u64>)>;

    /// Sends what can be sent at once, and gives how many bytes that was.
    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<usize>;
}
