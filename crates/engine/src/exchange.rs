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
use line::{ClientConnection, ConnectionState};

pub(crate) use state::{Exchange, Rules, Stamped};

/// When a closed loop gives up on a datagram's answer and goes on.
const ANSWER_LIMIT_NS: u64 = 1_000_000_000;

/// When a load that endures does, which tells answers after more than a second from none:
/// later than TCP first tries again to open a connection.
pub(crate) const PATIENCE_NS: u64 = 1_500_000_000;

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
        // Where all have to be seen at work, none is preferred because it is idle.
        let in_turn = self.rules.endures && self.rules.pipelined;
        let idle = if in_turn { None } else { self.claim_idle() };
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

    /// How long an answer is waited for. A closed loop over datagrams would wait forever for
    /// one that was lost, and one that opens connections would run out of them. On a
    /// connection that stands an answer may come at any time.
    fn patience(&self) -> Option<u64> {
        let rules = &self.rules;
        match rules.endures {
            true => (rules.udp || rules.fresh).then_some(PATIENCE_NS),
            false => (rules.udp && rules.closed).then_some(ANSWER_LIMIT_NS),
        }
    }

    /// Gives up answers that were waited for longer than that.
    fn give_up_late<D: Driver>(&mut self, io: &mut D, limit: u64, now: u64) {
        for slot in 0..self.lines.len() {
            while let Some(flight) = self.flights.oldest(slot)
                && flight.sent + limit < now
            {
                self.flights.take_oldest(slot);
                self.recorder
                    .censored(flight.intended, Some(flight.sent), now);
                if self.rules.fresh {
                    self.renew(io, slot, now);
                } else {
                    self.release(io, slot, now);
                }
            }
        }
    }

    /// Connections that stood and are lost: closed, or silent for longer than that.
    fn broken(&self, now: u64) -> u64 {
        let is_lost = |(slot, line): (usize, &ClientConnection<C::Reader>)| {
            let oldest = self.flights.oldest(slot);
            line.state == ConnectionState::Down
                || oldest.is_some_and(|flight| flight.sent + PATIENCE_NS < now)
        };
        let lost = self.lines.iter().enumerate().filter(|it| is_lost(*it));
        lost.count() as u64
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
        if let Some(limit) = self.patience() {
            self.give_up_late(io, limit, now);
        }
    }

    fn busy(&self) -> bool {
        self.flights.len() > 0
    }

    fn end(&mut self, _: &mut D, now: u64) {
        if !self.rules.udp && !self.rules.fresh {
            let broken = self.broken(now);
            if let Some(fates) = &mut self.recorder.fates {
                fates.broken = broken;
            }
        }
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
