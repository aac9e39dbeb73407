//! The life of a connection: opened, used for requests, closed, broken, opened
//! again.

use std::io;

use plumbline_sys::clock::now_ns;
use plumbline_sys::socket::Socket;

use super::line::ConnectionState;
use super::state::Exchange;
use crate::EngineError;
use crate::codec::Codec;
use crate::driver::{Driver, WatchMode};
use crate::plan::{controlled, source};
use crate::recorder::RequestFailure;
use crate::secret::show;

/// Connections that may be opening at once.
const OPENING: usize = 128;
/// How long the first connections may take.
const CONNECT_LIMIT_NS: u64 = 5_000_000_000;
/// Pause before a broken connection is opened again.
const RETRY_NS: u64 = 10_000_000;
/// How long the other side may take to close after its last answer. Then this
/// side closes.
const LINGER_NS: u64 = 20_000_000;

impl<C: Codec> Exchange<C> {
    /// Opens as many connections as ramp and queue allow; true when all are
    /// open.
    pub(super) fn open_more<D: Driver>(
        &mut self,
        io: &mut D,
        now: u64,
    ) -> Result<bool, EngineError> {
        if self.rules.fresh {
            return Ok(true);
        }
        if self.preparing_since == 0 {
            self.preparing_since = now;
            self.progressed = now;
        }
        let allowed = match self.rules.ramp {
            None => self.lines.len(),
            Some(rate) => 1 + ((now - self.preparing_since) as f64 * 1e-9 * rate) as usize,
        };
        while self.begun < self.lines.len().min(allowed) && self.begun - self.opened < OPENING {
            let slot = self.begun;
            self.begun += 1;
            self.progressed = now;
            self.connect(io, slot, now);
        }
        if self.fatal.is_none()
            && self.begun > self.opened
            && now - self.progressed > CONNECT_LIMIT_NS
        {
            self.fatal = Some(io::ErrorKind::TimedOut.into());
        }
        match self.fatal.take() {
            Some(error) if self.stamps.is_some() && error.kind() == io::ErrorKind::Unsupported => {
                Err(EngineError::NoStamps { cause: error })
            }
            Some(error) => Err(EngineError::connect(
                self.rules.target,
                self.lines.len() as u64,
                error,
            )),
            None => Ok(self.opened == self.lines.len()),
        }
    }

    /// Begins to open a line's connection.
    pub(super) fn connect<D: Driver>(&mut self, io: &mut D, slot: usize, now: u64) {
        let target = self.rules.target;
        let from = source(&self.rules.sources, slot);
        let (made, watch) = if self.rules.udp {
            (Socket::connect_udp(target, from), WatchMode::Queue)
        } else {
            let made = Socket::connect_tcp(target, from);
            let by = self.rules.congestion;
            let made = made.and_then(|socket| controlled(socket, by));
            (made, WatchMode::Stream)
        };
        if let Err(e) = made.and_then(|socket| io.insert(slot, socket, watch)) {
            return self.not_connected(io, slot, e, now);
        }
        self.enter(slot, ConnectionState::Connecting, now);
        if self.rules.udp {
            self.opened(io, slot, now);
        }
    }

    /// The attempt to connect has ended.
    pub(super) fn connected<D: Driver>(&mut self, io: &mut D, slot: usize, now: u64) {
        let outcome = match io.socket(slot) {
            Some(socket) => socket.take_error(),
            None => return,
        };
        match outcome {
            Ok(None) => self.opened(io, slot, now),
            Ok(Some(e)) | Err(e) => self.not_connected(io, slot, e, now),
        }
    }

    fn opened<D: Driver>(&mut self, io: &mut D, slot: usize, now: u64) {
        let took = now - self.lines[slot].since;
        let waiting = self.flights.oldest(slot);
        if !self.rules.udp {
            let intended = waiting.map(|flight| flight.intended);
            self.recorder.connected(took, intended, now);
        }
        if let Some(stamps) = &mut self.stamps
            && let Err(e) = stamps.opened(slot, io.socket(slot))
        {
            return self.not_connected(io, slot, e, now);
        }
        match show(io, slot, self.rules.shown) {
            Err(e) => return self.not_connected(io, slot, e, now),
            Ok(length) => {
                if let Some(stamps) = &mut self.stamps {
                    stamps.passed(slot, length);
                }
            }
        }
        self.enter(slot, ConnectionState::Open, now);
        self.lines[slot].open_since = now;
        match waiting {
            Some(flight) => self.transmit(io, slot, flight.seq, 0),
            None if self.running => self.release(io, slot, now),
            None => {
                self.opened += 1;
                self.progressed = now;
            }
        }
    }

    fn not_connected<D: Driver>(&mut self, io: &mut D, slot: usize, error: io::Error, now: u64) {
        if !self.running {
            self.fatal = Some(error);
        }
        self.break_line(io, slot, RequestFailure::Connect, now);
    }

    /// A connection broke: its open requests are errors, and it is opened
    /// again after a pause. Where each request has its own connection, an open
    /// loop can use the line at once: its rate is bounded by the schedule.
    #[cold]
    pub(super) fn break_line<D: Driver>(
        &mut self,
        io: &mut D,
        slot: usize,
        failure: RequestFailure,
        now: u64,
    ) {
        while let Some(flight) = self.flights.take_oldest(slot) {
            self.recorder.failed(flight.intended, failure);
        }
        self.drop_connection(io, slot);
        if self.rules.fresh && !self.rules.closed {
            self.enter(slot, ConnectionState::Spare, now);
            self.release(io, slot, now);
        } else {
            self.enter(slot, ConnectionState::Down, now);
        }
    }

    /// The other side closed cleanly, with no request open.
    pub(super) fn closed_idle<D: Driver>(&mut self, io: &mut D, slot: usize, now: u64) {
        self.drop_connection(io, slot);
        self.enter(slot, ConnectionState::Down, now);
    }

    /// A connection has served its purpose: the line gets a new one, or waits
    /// for the next request.
    pub(super) fn renew<D: Driver>(&mut self, io: &mut D, slot: usize, now: u64) {
        self.drop_connection(io, slot);
        if self.rules.fresh {
            self.enter(slot, ConnectionState::Spare, now);
            self.release(io, slot, now);
        } else {
            self.connect(io, slot, now);
        }
    }

    fn drop_connection<D: Driver>(&mut self, io: &mut D, slot: usize) {
        io.remove(slot);
        if let Some(stamps) = &mut self.stamps {
            stamps.closed(slot, &self.recorder.window);
        }
        let line = &mut self.lines[slot];
        line.reader = C::Reader::default();
        line.partial = None;
    }

    /// Looks after lines that are down or slow to close.
    pub(super) fn mend<D: Driver>(&mut self, io: &mut D, now: u64) {
        for slot in 0..self.lines.len() {
            let is_kept = self.rules.endures && !self.rules.udp && !self.rules.fresh;
            let pause = match self.lines[slot].state {
                ConnectionState::Down if is_kept => continue,
                ConnectionState::Down => RETRY_NS,
                ConnectionState::Closing => LINGER_NS,
                _ => continue,
            };
            if now.saturating_sub(self.lines[slot].since) >= pause {
                self.renew(io, slot, now);
            }
        }
    }

    pub(super) fn enter(&mut self, slot: usize, state: ConnectionState, now: u64) {
        let is_troubled = |state| matches!(state, ConnectionState::Down | ConnectionState::Closing);
        let line = &mut self.lines[slot];
        self.troubled -= usize::from(is_troubled(line.state));
        self.troubled += usize::from(is_troubled(state));
        line.state = state;
        line.since = now;
    }

    /// Sends a request on a line that can take it; false when too many are out.
    #[inline]
    pub(super) fn launch<D: Driver>(
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
                stamps.consider(slot, seq, intended, now, &self.recorder.window);
            }
            self.transmit(io, slot, seq, 0);
        }
        true
    }

    /// Hands request `seq` to the kernel from its byte `from` on.
    #[inline]
    pub(super) fn transmit<D: Driver>(
        &mut self,
        io: &mut D,
        slot: usize,
        seq: u64,
        mut from: usize,
    ) {
        let length = self.codec.length();
        while from < length {
            let bytes = self.codec.encode(seq, from);
            let sent = match &mut self.stamps {
                None => io.send(slot, bytes),
                Some(stamps) => stamps.send(io, slot, bytes, (seq, from, length)),
            };
            match sent {
                Ok(taken) => from += taken,
                // The next datagram may get through.
                Err(e) if self.rules.udp && self.rules.endures => {
                    if let Some(flight) = self.flights.take(slot, seq) {
                        let failure = self.send_failure(&e);
                        self.recorder.failed(flight.intended, failure);
                    }
                    return;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return self.break_line(io, slot, self.send_failure(&e), now_ns()),
            }
        }
        self.lines[slot].partial = (from < length).then_some((seq, from));
    }

    fn send_failure(&self, error: &io::Error) -> RequestFailure {
        match error.kind() {
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => RequestFailure::Closed,
            io::ErrorKind::ConnectionRefused => RequestFailure::Connect,
            _ => RequestFailure::Send,
        }
    }

    /// A line is idle. A closed loop sends its next request at once, in a slice.
    #[inline]
    pub(super) fn release<D: Driver>(&mut self, io: &mut D, slot: usize, now: u64) {
        if self.rules.closed && now < self.until {
            self.recorder.planned(now);
            self.launch(io, slot, now, now, now);
        } else {
            self.lines[slot].idle_since = now;
            self.idle.push(slot);
        }
    }
}
