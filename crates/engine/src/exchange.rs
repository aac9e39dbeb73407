//! Requests and answers: `rr`, `crr` and `http`, over TCP and UDP.
//!
//! A *line* is one connection's place ([`ClientConnection`](line::ClientConnection)).
//! Lines that stay open take a request when they are idle; over TCP `rr` and UDP more
//! requests may follow before the answers arrive, so that an open loop never waits.
//! Where the protocol allows only one request at a time, or each request needs its own
//! connection, due requests wait for a free line and are charged for the wait.

mod answers;
mod line;
mod lines;
mod stamps;
mod state;
#[cfg(test)]
mod turn_tests;

use plumbline_sys::clock::now_ns;

use crate::EngineError;
use crate::codec::Codec;
use crate::driver::{Driver, Event};
use crate::event_loop::LoadClient;
use crate::recorder::Recorder;
use line::ConnectionState;

pub(crate) use state::{Exchange, Rules, Stamped};

/// When a closed loop gives up on a datagram's answer and goes on.
const ANSWER_LIMIT_NS: u64 = 1_000_000_000;

impl<C: Codec> Exchange<C> {
    /// A line without a request that can take one now, and since when it could.
    #[inline]
    fn claim_idle(&mut self) -> Option<(usize, u64)> {
        while let Some(slot) = self.idle.pop() {
            let line = &self.lines[slot];
            let free = match line.state {
                ConnectionState::Spare => self.rules.fresh,
                ConnectionState::Open => self.flights.count(slot) == 0 && line.partial.is_none(),
                _ => false,
            };
            if free {
                return Some((slot, line.idle_since));
            }
        }
        None
    }

    /// A line that can take a request now, and since when it could.
    #[inline]
    fn claim(&mut self) -> Option<(usize, u64)> {
        let idle = self.claim_idle();
        if idle.is_some() || !self.rules.pipelined {
            return idle;
        }
        for _ in 0..self.lines.len() {
            self.cursor += 1;
            if self.cursor == self.lines.len() {
                self.cursor = 0;
            }
            let line = &self.lines[self.cursor];
            if line.state == ConnectionState::Open && line.partial.is_none() {
                return Some((self.cursor, line.open_since));
            }
        }
        None
    }

    /// A closed loop over datagrams would wait forever for one that was lost.
    fn give_up_late<D: Driver>(&mut self, io: &mut D, now: u64) {
        for slot in 0..self.lines.len() {
            let Some(flight) = self.flights.oldest(slot) else {
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

impl<D: Driver, C: Codec> LoadClient<D> for Exchange<C> {
    fn prepare(&mut self, io: &mut D, now: u64) -> Result<bool, EngineError> {
        self.open_more(io, now)
    }

    fn begin(&mut self) {
        let start = self.recorder.window.start();
        for slot in 0..self.lines.len() {
            if self.rules.fresh || self.lines[slot].state == ConnectionState::Open {
                // It could have taken the very first request in time.
                self.lines[slot].idle_since = start;
                self.idle.push(slot);
            }
        }
        self.running = true;
    }

    fn slice_begins(&mut self, io: &mut D, until: u64) {
        self.until = until;
        if !self.rules.closed {
            return;
        }
        // A line that cannot take a request now is released when it can.
        for _ in 0..self.lines.len() {
            let Some((slot, _)) = self.claim_idle() else {
                break;
            };
            self.release(io, slot, now_ns());
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
            // Perhaps not the end, but late stamps.
            stamps.collect(io, slot);
        }
        if event.writable {
            match self.lines[slot].state {
                ConnectionState::Connecting => self.connected(io, slot, now_ns()),
                ConnectionState::Open => {
                    if let Some((seq, from)) = self.lines[slot].partial {
                        self.transmit(io, slot, seq, from);
                        self.lines[slot].open_since = now_ns();
                    }
                }
                _ => {}
            }
        }
        if event.readable
            && matches!(
                self.lines[slot].state,
                ConnectionState::Open | ConnectionState::Closing
            )
        {
            self.read(io, slot, event.hangup);
        }
    }

    fn flush(&mut self, io: &mut D, _: u64) -> bool {
        for _ in 0..self.unread.len() {
            let Some(slot) = self.unread.pop() else { break };
            if self.lines[slot].state == ConnectionState::Open {
                // Whatever the kernel reported is long past: to the very end.
                self.read(io, slot, true);
            }
        }
        self.unread.len() > 0
    }

    fn tick(&mut self, io: &mut D, now: u64) {
        if self.troubled > 0 && now < self.recorder.window.close() {
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
            self.recorder.seen.spans = Some(stamps.end(&self.recorder.window));
        }
    }

    fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    fn finish(self) -> Recorder {
        self.recorder
    }
}
