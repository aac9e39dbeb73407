//! Requests and answers: `rr`, `crr` and `http`, over TCP and UDP.
//!
//! A *line* is one connection's place. Lines that stay open take a request
//! when they are idle; over TCP `rr` and UDP more requests may follow before
//! the answers are there, so that an open loop never waits. Where the language
//! allows only one request at a time, or each request needs a connection of
//! its own, due requests wait for a free line and are charged for it.

mod answers;
mod lines;
mod stamps;

use std::io;
use std::net::{IpAddr, SocketAddr};

use plumbline_sys::clock::now_ns;

use crate::EngineError;
use crate::codec::Codec;
use crate::driver::{Driver, Event};
use crate::event_loop::Workload;
use crate::flights::Flights;
use crate::idle::Idle;
use crate::recorder::{Failure, Recorder};
use crate::window::Window;
use lines::{Line, State};
use stamps::Stamps;

/// Connections that may be opening at once.
const OPENING: usize = 128;
/// How long the first connections may take.
const CONNECT_LIMIT_NS: u64 = 5_000_000_000;
/// Pause before a broken connection is opened again.
const RETRY_NS: u64 = 10_000_000;
/// How long the other side may take to close after its last answer. Then this
/// side closes.
const LINGER_NS: u64 = 20_000_000;
/// When a closed loop gives up on a datagram's answer and goes on.
const ANSWER_LIMIT_NS: u64 = 1_000_000_000;

/// What distinguishes the members of the family.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// Where to.
    pub(crate) target: SocketAddr,
    /// Where from, in turn; empty lets the kernel choose.
    pub(crate) sources: Vec<IpAddr>,
    /// Connections of this worker.
    pub(crate) lines: usize,
    /// Datagrams: answers may be lost or come in any order.
    pub(crate) udp: bool,
    /// Each request opens a connection of its own.
    pub(crate) fresh: bool,
    /// Requests may follow each other on a line before the answers are there.
    pub(crate) pipelined: bool,
    /// The next request leaves when the last answer is there.
    pub(crate) closed: bool,
    /// Connections opened per second by this worker.
    pub(crate) ramp: Option<f64>,
    /// Most requests that may be out at once.
    pub(crate) flights: usize,
    /// First sequence number.
    pub(crate) first: u64,
    /// Which requests the kernel is to stamp, if any.
    pub(crate) stamped: Option<Stamped>,
}

/// A sample of the requests for the kernel to stamp (L-17).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamped {
    /// How large a share of them, up to 1.
    pub(crate) share: f64,
    /// The seed of the load and the number of this worker: what is chosen
    /// follows from them.
    pub(crate) seed: u64,
    pub(crate) worker: usize,
}

/// The client's side of all request and answer workloads.
pub(crate) struct Exchange<C: Codec> {
    codec: C,
    rules: Rules,
    lines: Vec<Line<C::Reader>>,
    idle: Idle,
    flights: Flights,
    recorder: Recorder,
    stamps: Option<Stamps>,
    /// The line that was last chosen in turn.
    cursor: usize,
    /// Lines that have begun to open, and of these how many are open: for the
    /// time before the load.
    begun: usize,
    opened: usize,
    /// When preparing began and when it last got on.
    preparing_since: u64,
    progressed: u64,
    /// Lines that the tick must look after.
    troubled: usize,
    running: bool,
    /// Why the first connections could not be opened.
    fatal: Option<io::Error>,
}

impl<C: Codec> Exchange<C> {
    pub(crate) fn new(codec: C, rules: Rules, recorder: Recorder) -> Self {
        Self {
            codec,
            lines: (0..rules.lines).map(|_| Line::new()).collect(),
            idle: Idle::new(rules.lines),
            flights: Flights::new(rules.flights, rules.lines, rules.first),
            stamps: rules
                .stamped
                .map(|it| Stamps::new(it.share, rules.lines, !rules.udp, it.seed, it.worker)),
            rules,
            recorder,
            cursor: 0,
            begun: 0,
            opened: 0,
            preparing_since: 0,
            progressed: 0,
            troubled: 0,
            running: false,
            fatal: None,
        }
    }

    /// A line that can take a request now, and since when it could.
    #[inline]
    fn claim(&mut self) -> Option<(usize, u64)> {
        while let Some(slot) = self.idle.pop() {
            let line = &self.lines[slot];
            let free = match line.state {
                State::Spare => self.rules.fresh,
                State::Open => self.flights.count(slot) == 0 && line.partial.is_none(),
                _ => false,
            };
            if free {
                return Some((slot, line.idle_since));
            }
        }
        if !self.rules.pipelined {
            return None;
        }
        for _ in 0..self.lines.len() {
            self.cursor += 1;
            if self.cursor == self.lines.len() {
                self.cursor = 0;
            }
            let line = &self.lines[self.cursor];
            if line.state == State::Open && line.partial.is_none() {
                return Some((self.cursor, line.open_since));
            }
        }
        None
    }

    /// Sends a request on a line that can take it; false when too many are out.
    #[inline]
    fn launch<D: Driver>(
        &mut self,
        io: &mut D,
        slot: usize,
        intended: u64,
        free: u64,
        now: u64,
    ) -> bool {
        let Some(seq) = self.flights.book(slot, intended, now) else {
            return false;
        };
        let bytes = self.codec.length() as u64;
        self.recorder.sent(intended, now, free, bytes);
        if self.rules.fresh {
            self.connect(io, slot, now);
        } else {
            if let Some(stamps) = &mut self.stamps {
                stamps.consider(slot, seq, intended, now, self.recorder.window);
            }
            self.transmit(io, slot, seq, 0);
        }
        true
    }

    /// Gives the kernel request `seq` from its byte `from` on.
    #[inline]
    fn transmit<D: Driver>(&mut self, io: &mut D, slot: usize, seq: u64, mut from: usize) {
        let length = self.codec.length();
        while from < length {
            let bytes = self.codec.encode(seq, from);
            let sent = match &mut self.stamps {
                None => io.send(slot, bytes),
                Some(stamps) => stamps.send(io, slot, bytes, (seq, from, length)),
            };
            match sent {
                Ok(taken) => from += taken,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return self.break_line(io, slot, self.send_failure(&e), now_ns()),
            }
        }
        self.lines[slot].partial = (from < length).then_some((seq, from));
    }

    fn send_failure(&self, error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Failure::Closed,
            io::ErrorKind::ConnectionRefused => Failure::Connect,
            _ => Failure::Send,
        }
    }

    /// A line has nothing to do. A closed loop sends its next request at once.
    #[inline]
    fn release<D: Driver>(&mut self, io: &mut D, slot: usize, now: u64) {
        if self.rules.closed && self.running {
            if now < self.recorder.window.close {
                self.recorder.planned(now);
                self.launch(io, slot, now, now, now);
            }
        } else {
            self.lines[slot].idle_since = now;
            self.idle.push(slot);
        }
    }

    /// A closed loop over datagrams would wait forever for one that was lost.
    fn give_up_late<D: Driver>(&mut self, io: &mut D, now: u64) {
        for slot in 0..self.lines.len() {
            let Some((_, flight)) = self.flights.oldest(slot) else {
                continue;
            };
            if flight.sent + ANSWER_LIMIT_NS < now {
                self.flights.take_oldest(slot);
                self.recorder
                    .censored(flight.intended, Some(flight.sent), now);
                self.release(io, slot, now);
            }
        }
    }
}

impl<D: Driver, C: Codec> Workload<D> for Exchange<C> {
    fn prepare(&mut self, io: &mut D, now: u64) -> Result<bool, EngineError> {
        self.open_more(io, now)
    }

    fn begin(&mut self, io: &mut D, window: Window) {
        self.recorder.begin(window);
        self.running = true;
        let now = now_ns();
        for slot in 0..self.lines.len() {
            if self.rules.fresh || self.lines[slot].state == State::Open {
                self.release(io, slot, now);
                // It could have taken the very first request in time.
                self.lines[slot].idle_since = window.start;
            }
        }
    }

    #[inline]
    fn dispatch(&mut self, io: &mut D, intended: u64) -> bool {
        let Some((slot, free)) = self.claim() else {
            return false;
        };
        let sent = self.launch(io, slot, intended, free, now_ns());
        if !sent {
            self.idle.push(slot);
        }
        sent
    }

    #[inline]
    fn event(&mut self, io: &mut D, event: Event) {
        let slot = event.slot;
        if event.hangup
            && let Some(stamps) = &mut self.stamps
        {
            // Not the end, perhaps, but stamps that came late.
            stamps.collect(io, slot);
        }
        if event.writable {
            match self.lines[slot].state {
                State::Connecting => self.connected(io, slot, now_ns()),
                State::Open => {
                    if let Some((seq, from)) = self.lines[slot].partial {
                        self.transmit(io, slot, seq, from);
                        self.lines[slot].open_since = now_ns();
                    }
                }
                _ => {}
            }
        }
        if event.readable && matches!(self.lines[slot].state, State::Open | State::Closing) {
            self.read(io, slot, event.hangup);
        }
    }

    fn tick(&mut self, io: &mut D, now: u64) {
        self.recorder.publish();
        if self.troubled > 0 && now < self.recorder.window.close {
            self.mend(io, now);
        }
        if self.rules.udp && self.rules.closed {
            self.give_up_late(io, now);
        }
    }

    fn busy(&self) -> bool {
        self.flights.len() > 0
    }

    fn end(&mut self, _: &mut D, now: u64) {
        for slot in 0..self.lines.len() {
            while let Some(flight) = self.flights.take_oldest(slot) {
                self.recorder
                    .censored(flight.intended, Some(flight.sent), now);
            }
        }
        if let Some(stamps) = self.stamps.take() {
            self.recorder.spans = Some(stamps.end(self.recorder.window));
        }
    }

    fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    fn finish(self) -> Recorder {
        self.recorder
    }
}
