//! The epoll driver.

use std::io;
use std::os::fd::AsFd;

use plumbline_experiment::Wait;
use plumbline_sys::clock::now_ns;
use plumbline_sys::poll::{Interest, Poller, Trigger};
use plumbline_sys::socket::Socket;

use super::{Driver, Event, Received, Watch};

/// Events per wait.
const EVENTS: usize = 256;
/// Sleeps of the calibration, and the length of each.
const CALIBRATION_SLEEPS: usize = 24;
const CALIBRATION_NS: u64 = 50_000;
/// Bounds of the margin.
const LEAST_MARGIN_NS: u64 = 1_000;
const MOST_MARGIN_NS: u64 = 30_000;

/// Readiness by epoll: edge-triggered for streams, whose room to send is then
/// watched without further calls, and level-triggered for queues, of which one
/// message at a time is taken. Level-triggered streams were tried: with 1 and
/// with 64 connections no difference showed in CPU or rate.
pub(crate) struct Epoll {
    poller: Poller,
    sockets: Vec<Option<(Socket, Watch)>>,
    buffer: Vec<u8>,
    /// How long before a deadline the sleep ends and the polling begins;
    /// `None` never sleeps.
    margin: Option<u64>,
}

impl Epoll {
    /// A driver with `slots` empty slots that reads at most `buffer` bytes at
    /// once. [`Wait::Block`] sleeps up to shortly before a deadline, by a
    /// margin that is measured here on the calling thread.
    pub(crate) fn new(slots: usize, buffer: usize, wait: Wait) -> io::Result<Self> {
        let mut poller = Poller::new(EVENTS)?;
        let margin = match wait {
            Wait::Spin => None,
            Wait::Block => Some(wake_up_delay(&mut poller)?),
        };
        Ok(Self {
            poller,
            sockets: (0..slots).map(|_| None).collect(),
            buffer: vec![0; buffer],
            margin,
        })
    }

    /// A driver that sleeps without a margin, for those who keep no deadlines.
    pub(crate) fn relaxed(slots: usize, buffer: usize) -> io::Result<Self> {
        Ok(Self {
            poller: Poller::new(EVENTS)?,
            sockets: (0..slots).map(|_| None).collect(),
            buffer: vec![0; buffer],
            margin: Some(0),
        })
    }

    /// Adds empty slots at the end.
    pub(crate) fn grow(&mut self, slots: usize) {
        self.sockets.resize_with(slots, || None);
    }
}

/// How late this thread wakes from a short sleep: the median of a few sleeps,
/// within bounds. Sleeping that much less meets half of the deadlines to a
/// microsecond, the others within the spread of the wake-ups, for next to no
/// polling (L-18). A larger margin would poll more than it gains: on a virtual
/// machine whose wake-ups took 25 µs, 25 µs brought the median lag from 21 to
/// 0.2 µs at no measurable CPU; 40 µs cost a third more CPU for the same.
fn wake_up_delay(poller: &mut Poller) -> io::Result<u64> {
    let mut late = [0; CALIBRATION_SLEEPS];
    for delay in &mut late {
        let start = now_ns();
        poller.wait(CALIBRATION_NS)?;
        *delay = (now_ns() - start).saturating_sub(CALIBRATION_NS);
    }
    late.sort_unstable();
    Ok(late[CALIBRATION_SLEEPS / 2].clamp(LEAST_MARGIN_NS, MOST_MARGIN_NS))
}

impl Driver for Epoll {
    const NAME: &'static str = "epoll";

    fn insert(&mut self, slot: usize, socket: Socket, watch: Watch) -> io::Result<()> {
        let (interest, trigger) = match watch {
            Watch::Stream | Watch::Sink => (Interest::ReadWrite, Trigger::Edge),
            Watch::Queue => (Interest::Read, Trigger::Level),
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
        let timeout = match self.margin {
            None => 0,
            Some(margin) => until.saturating_sub(now).saturating_sub(margin),
        };
        self.poller.wait(timeout)
    }

    #[inline]
    fn event(&self, index: usize) -> Event {
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
        Ok(Received {
            bytes: &self.buffer[..length],
            // A stream that gave less than asked for is empty (epoll(7)); a
            // queue reports what is left by itself.
            drained: *watch == Watch::Queue || length < self.buffer.len(),
        })
    }

    #[inline]
    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<usize> {
        match &self.sockets[slot] {
            Some((socket, _)) => socket.send(bytes),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}
