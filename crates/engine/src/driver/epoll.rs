//! The epoll driver.

use std::io;
use std::os::fd::AsFd;

use plumbline_experiment::Wait;
use plumbline_sys::poll::{Interest, Poller, Trigger};
use plumbline_sys::socket::Socket;

use super::waiting::Waiting;
use super::{Driver, Event, Received, WatchMode};

/// Events per wait.
const EVENTS: usize = 256;

/// Readiness by epoll: edge-triggered for streams, whose room to send is then
/// watched without further calls, and level-triggered for queues, of which one
/// message at a time is taken. Level-triggered streams were tried: with 1 and
/// with 64 connections neither CPU nor rate differed.
pub(crate) struct Epoll {
    poller: Poller,
    sockets: Vec<Option<(Socket, WatchMode)>>,
    buffer: Vec<u8>,
    waiting: Waiting,
}

impl Epoll {
    /// A driver with `slots` empty slots that reads at most `buffer` bytes at
    /// once and waits so as to meet deadlines. Make it on the thread that will
    /// wait: this measures how late that thread wakes.
    pub(crate) fn new(slots: usize, buffer: usize, wait: Wait) -> io::Result<Self> {
        let mut poller = Poller::new(EVENTS)?;
        let waiting = Waiting::punctual(wait, |sleep| poller.wait(sleep))?;
        Ok(Self::with(poller, slots, buffer, waiting))
    }

    /// A driver for callers without deadlines.
    pub(crate) fn relaxed(slots: usize, buffer: usize) -> io::Result<Self> {
        let poller = Poller::new(EVENTS)?;
        Ok(Self::with(poller, slots, buffer, Waiting::relaxed()))
    }

    fn with(poller: Poller, slots: usize, buffer: usize, waiting: Waiting) -> Self {
        Self {
            poller,
            sockets: (0..slots).map(|_| None).collect(),
            buffer: vec![0; buffer],
            waiting,
        }
    }

    /// Adds empty slots at the end.
    pub(crate) fn grow(&mut self, slots: usize) {
        self.sockets.resize_with(slots, || None);
    }
}

impl Driver for Epoll {
    const NAME: &'static str = "epoll";

    fn insert(&mut self, slot: usize, socket: Socket, watch: WatchMode) -> io::Result<()> {
        let (interest, trigger) = match watch {
            WatchMode::Stream | WatchMode::Sink => (Interest::ReadWrite, Trigger::Edge),
            WatchMode::Queue => (Interest::Read, Trigger::Level),
        };
        self.poller
            .add(socket.as_fd(), slot as u64, interest, trigger)?;
        self.sockets[slot] = Some((socket, watch));
        Ok(())
    }

    fn remove(&mut self, slot: usize) {
        self.sockets[slot] = None;
    }

    fn socket(&self, slot: usize) -> Option<&Socket> {
        self.sockets[slot].as_ref().map(|(socket, _)| socket)
    }

    #[inline]
    fn wait(&mut self, now: u64, until: u64) -> io::Result<usize> {
        self.waiting
            .wait(now, until, |sleep| self.poller.wait(sleep))
    }

    fn spun_ns(&self) -> u64 {
        self.waiting.spun_ns()
    }

    #[inline]
    fn event(&mut self, index: usize) -> Event {
        let ready = self.poller.ready(index);
        Event {
            slot: ready.token as usize,
            readable: ready.readable,
            writable: ready.writable,
            hangup: ready.hangup,
        }
    }

    #[inline]
    fn receive(&mut self, slot: usize) -> io::Result<Received<'_>> {
        let Some((socket, watch)) = &self.sockets[slot] else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let length = socket.receive(&mut self.buffer)?;
        Ok(received(&self.buffer, length, *watch))
    }

    fn receive_stamped(&mut self, slot: usize) -> io::Result<(Received<'_>, Option<u64>)> {
        let Some((socket, watch)) = &self.sockets[slot] else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let (length, arrival) = socket.receive_stamped(&mut self.buffer)?;
        Ok((received(&self.buffer, length, *watch), arrival))
    }

    #[inline]
    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<usize> {
        match &self.sockets[slot] {
            Some((socket, _)) => socket.send(bytes),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

/// What a read of `length` bytes into `buffer` means.
#[inline]
fn received(buffer: &[u8], length: usize, watch: WatchMode) -> Received<'_> {
    Received {
        bytes: &buffer[..length],
        // A stream that gave less than asked for is empty (epoll(7)); a queue
        // reports what is left by itself.
        drained: watch == WatchMode::Queue || length < buffer.len(),
    }
}
