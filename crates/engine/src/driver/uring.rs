//! The io_uring driver.

use std::io;
use std::os::fd::AsFd;

use plumbline_experiment::Wait;
use plumbline_sys::ring::{Operation, Ring, Room, Token};
use plumbline_sys::socket::Socket;

use super::waiting::Waiting;
use super::{Driver, Event, Received, WatchMode};

/// Operations given to the kernel at once.
const ENTRIES: u32 = 512;
/// Receive buffers, and the least bytes of each.
const BUFFERS: u16 = 256;
const BUFFER: usize = 16 << 10;
/// Longest request that goes out by the ring; a longer one takes a system call
/// of its own.
const REQUEST: usize = 1 << 10;
/// The kernel had no buffer to receive into. The same on every architecture.
const ENOBUFS: i32 = 105;
const ECANCELED: i32 = 125;

/// Receives by one standing operation for each socket, and sends in batches
/// with the call that waits: a closed loop of many connections takes a small
/// part of a system call for each request instead of two.
pub(crate) struct Uring {
    ring: Ring,
    slots: Vec<SocketSlot>,
    waiting: Waiting,
    /// Whether requests wait for the next call, to go out together. Not in an
    /// open loop, where each has its own time and its lag is recorded.
    batched: bool,
    /// The current event, and whether its bytes were taken.
    current: usize,
    taken: bool,
}

#[derive(Default)]
struct SocketSlot {
    socket: Option<Socket>,
    /// Number of the socket among those that have been in this slot.
    generation: u32,
    /// Operations under way that must be ended before the socket closes.
    receiving: bool,
    watching: bool,
    /// The caller wants to know when it can send again.
    blocked: bool,
}

impl Uring {
    /// A driver with `slots` empty slots, whose datagrams have at most
    /// `longest` bytes. Make it on the thread that will wait.
    pub(crate) fn new(slots: usize, longest: usize, wait: Wait, batched: bool) -> io::Result<Self> {
        let room = Room {
            incoming: BUFFERS,
            incoming_size: longest.max(BUFFER) as u32,
            slots,
            outgoing_size: REQUEST,
        };
        let mut ring = Ring::new(ENTRIES, room)?;
        let waiting = Waiting::punctual(wait, |sleep| ring.wait(sleep))?;
        Ok(Self {
            ring,
            slots: (0..slots).map(|_| SocketSlot::default()).collect(),
            waiting,
            batched,
            current: 0,
            taken: true,
        })
    }

    fn token(&self, slot: usize) -> Token {
        Token {
            slot: slot as u32,
            generation: self.slots[slot].generation,
        }
    }

    fn start_receiving(&mut self, slot: usize) -> io::Result<()> {
        self.ring.receive(self.token(slot))?;
        self.slots[slot].receiving = true;
        Ok(())
    }

    fn watch_room(&mut self, slot: usize) -> io::Result<()> {
        if !self.slots[slot].watching {
            self.ring.watch_room(self.token(slot))?;
            self.slots[slot].watching = true;
        }
        Ok(())
    }

    /// Something arrived, or the standing receive ended.
    fn received(&mut self, slot: usize, result: i32, more: bool) -> io::Result<Event> {
        let mut event = nothing(slot);
        if !more {
            self.slots[slot].receiving = false;
        }
        event.readable = !matches!(-result, ENOBUFS | ECANCELED);
        // It ends when buffers run out or at the kernel's discretion, and
        // continues when asked again. An error or the end of the stream is
        // final.
        if !more && (result > 0 || result == -ENOBUFS) {
            self.start_receiving(slot)?;
        }
        Ok(event)
    }

    fn digest(&mut self, index: usize) -> io::Result<Event> {
        let done = self.ring.completion(index);
        let slot = done.token.slot as usize;
        let is_current = self.slots[slot].generation == done.token.generation;
        let mut event = nothing(slot);
        match done.operation {
            // This slot's socket waits for the buffer too, even if an earlier
            // socket used it.
            Operation::Send => {
                event.writable = std::mem::take(&mut self.slots[slot].blocked);
                event.readable = is_current && done.result < 0;
            }
            Operation::Receive if is_current => {
                return self.received(slot, done.result, done.more);
            }
            Operation::Room if is_current => {
                self.slots[slot].watching = false;
                event.writable = true;
                if !self.slots[slot].receiving {
                    self.start_receiving(slot)?;
                }
            }
            _ => {}
        }
        Ok(event)
    }
}

fn nothing(slot: usize) -> Event {
    Event {
        slot,
        readable: false,
        writable: false,
        hangup: false,
    }
}

impl Driver for Uring {
    const NAME: &'static str = "uring";

    fn insert(&mut self, slot: usize, socket: Socket, watch: WatchMode) -> io::Result<()> {
        self.ring.attach(slot as u32, socket.as_fd())?;
        let place = &mut self.slots[slot];
        // As many as a token keeps apart.
        place.generation = (place.generation + 1) % (1 << 30);
        place.socket = Some(socket);
        match watch {
            WatchMode::Queue => self.start_receiving(slot),
            WatchMode::Stream | WatchMode::Sink => self.watch_room(slot),
        }
    }

    fn remove(&mut self, slot: usize) {
        let token = self.token(slot);
        let place = &mut self.slots[slot];
        if place.socket.is_none() {
            return;
        }
        let receiving = std::mem::take(&mut place.receiving);
        let watching = std::mem::take(&mut place.watching);
        place.blocked = false;
        // The socket closes when nothing refers to it any more. A ring that
        // takes no more shows at the next wait.
        if receiving {
            let _ = self.ring.cancel(Operation::Receive, token);
        }
        if watching {
            let _ = self.ring.cancel(Operation::Room, token);
        }
        let _ = self.ring.detach(slot as u32);
        self.slots[slot].socket = None;
        self.slots[slot].generation = (token.generation + 1) % (1 << 30);
    }

    fn socket(&self, slot: usize) -> Option<&Socket> {
        self.slots[slot].socket.as_ref()
    }

    #[inline]
    fn wait(&mut self, now: u64, until: u64) -> io::Result<usize> {
        self.waiting.wait(now, until, |sleep| self.ring.wait(sleep))
    }

    fn spun_ns(&self) -> u64 {
        self.waiting.spun_ns()
    }

    #[inline]
    fn event(&mut self, index: usize) -> Event {
        self.current = index;
        self.taken = false;
        let slot = self.ring.completion(index).token.slot as usize;
        match self.digest(index) {
            Ok(event) => event,
            // The ring takes no more operations; the next wait says why.
            Err(_) => nothing(slot),
        }
    }

    #[inline]
    fn receive(&mut self, slot: usize) -> io::Result<Received<'_>> {
        let done = self.ring.completion(self.current);
        let fits = done.token == self.token(slot) && done.operation != Operation::Room;
        if !fits || std::mem::replace(&mut self.taken, true) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if done.result < 0 {
            return Err(io::Error::from_raw_os_error(-done.result));
        }
        Ok(Received {
            bytes: self.ring.received(self.current),
            drained: true,
        })
    }

    /// Never with a stamp: plans that want stamps are refused.
    fn receive_stamped(&mut self, slot: usize) -> io::Result<(Received<'_>, Option<u64>)> {
        self.receive(slot).map(|received| (received, None))
    }

    #[inline]
    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<usize> {
        let token = self.token(slot);
        let Some(socket) = &self.slots[slot].socket else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        if self.batched && self.ring.send(token, bytes)? {
            return Ok(bytes.len());
        }
        if self.ring.is_sending(token.slot) {
            // One after the other, so that none overtakes another.
            self.slots[slot].blocked = true;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let sent = socket.send(bytes);
        if matches!(&sent, Err(e) if e.kind() == io::ErrorKind::WouldBlock) {
            self.watch_room(slot)?;
        }
        sent
    }
}
