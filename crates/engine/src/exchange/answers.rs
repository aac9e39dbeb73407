//! Judging the bytes that come back.

use std::io;

use plumbline_sys::clock::now_ns;

use super::line::ConnectionState;
use super::state::Exchange;
use crate::codec::{Answer, Codec, DecodeStep, Quality};
use crate::driver::Driver;
use crate::recorder::RequestFailure;

/// Reads from one connection before others get their turn.
const TURN: usize = 16;

impl<C: Codec> Exchange<C> {
    /// Reads all that has arrived on a line. The clock is read after each read,
    /// so that an answer is never dated before it was read.
    pub(super) fn read<D: Driver>(&mut self, io: &mut D, slot: usize, hangup: bool) {
        for _ in 0..TURN {
            let stamped = self.stamps.as_ref().is_some_and(|it| it.awaits(slot));
            let received = if stamped {
                io.receive_stamped(slot)
            } else {
                io.receive(slot).map(|received| (received, None))
            };
            let (received, arrival) = match received {
                Ok(received) => received,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                // Word of an earlier datagram that was refused on its way.
                Err(_) if self.rules.udp && self.rules.endures => continue,
                Err(e) => return self.break_line(io, slot, self.read_failure(&e), now_ns()),
            };
            let mut now = now_ns();
            if let Some(stamps) = &mut self.stamps {
                stamps.arrived(arrival);
            }
            let drained = received.drained;
            if received.bytes.is_empty() && !self.rules.udp {
                return self.ended(io, slot, now);
            }
            let digested = if self.rules.udp {
                self.digest_datagram(slot, received.bytes, now);
                Ok(())
            } else {
                self.digest(slot, received.bytes, now)
            };
            if let Err(failure) = digested {
                return self.break_line(io, slot, failure, now);
            }
            if stamped && let Some(stamps) = &mut self.stamps {
                stamps.settle(io, &self.recorder.window);
                // Its few system calls are not the next request's lag.
                now = now_ns();
            }
            if self.lines[slot].state == ConnectionState::Open && self.flights.count(slot) == 0 {
                self.release(io, slot, now);
            }
            // After a hang-up the end must be read too, because no further
            // event will report it.
            if drained && !hangup {
                return;
            }
        }
        // An answer may have no end; the rest has to wait for its turn.
        self.unread.push(slot);
    }

    fn read_failure(&self, error: &io::Error) -> RequestFailure {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => RequestFailure::Connect,
            _ => RequestFailure::Closed,
        }
    }

    /// Reads answers out of a byte stream. An error means that the connection
    /// is no longer usable; the requests still open on it failed with that
    /// error.
    #[inline]
    fn digest(&mut self, slot: usize, mut bytes: &[u8], now: u64) -> Result<(), RequestFailure> {
        while !bytes.is_empty() {
            if self.flights.count(slot) == 0 {
                // No request asked for these bytes.
                self.recorder.failed(now, RequestFailure::Protocol);
                return Err(RequestFailure::Closed);
            }
            let reader = &mut self.lines[slot].reader;
            let (taken, step) = self.codec.decode(reader, bytes);
            bytes = &bytes[taken..];
            match step {
                DecodeStep::More => {}
                DecodeStep::Answer(answer) => {
                    self.account(slot, answer, now)?;
                    if !bytes.is_empty()
                        && let Some(stamps) = &mut self.stamps
                    {
                        stamps.followed();
                    }
                }
                DecodeStep::Garbage => return Err(self.fail_oldest(slot, RequestFailure::Protocol)),
            }
        }
        Ok(())
    }

    /// Books an answer for the oldest request of the line.
    #[inline]
    fn account(&mut self, slot: usize, answer: Answer, now: u64) -> Result<(), RequestFailure> {
        let Some(flight) = self.flights.oldest(slot) else {
            return Err(RequestFailure::Closed);
        };
        let seq = flight.seq;
        if answer.seq.is_some_and(|s| s != seq) {
            // Out of step: later answers cannot be attributed either.
            return Err(self.fail_oldest(slot, RequestFailure::Corrupt));
        }
        self.flights.take(slot, seq);
        if let Some(stamps) = &mut self.stamps {
            let good = answer.quality == Quality::Good;
            stamps.answered(slot, seq, flight.sent, now, good);
        }
        match answer.quality {
            Quality::Good => {
                self.recorder
                    .completed(flight.intended, flight.sent, now, answer.bytes);
            }
            Quality::Corrupt => self
                .recorder
                .failed(flight.intended, RequestFailure::Corrupt),
            Quality::Refusal => self
                .recorder
                .failed(flight.intended, RequestFailure::Protocol),
        }
        if answer.last || self.rules.fresh {
            self.enter(slot, ConnectionState::Closing, now);
        }
        Ok(())
    }

    /// The oldest request failed; the others on its line are lost with it.
    fn fail_oldest(&mut self, slot: usize, failure: RequestFailure) -> RequestFailure {
        if let Some(flight) = self.flights.take_oldest(slot) {
            self.recorder.failed(flight.intended, failure);
        }
        RequestFailure::Closed
    }

    /// Reads one datagram. An answer to a request that was given up on is
    /// ignored; a damaged one that belongs to none is counted.
    #[inline]
    fn digest_datagram(&mut self, slot: usize, bytes: &[u8], now: u64) {
        let (taken, step) = self.codec.decode(&mut C::Reader::default(), bytes);
        let answer = match step {
            DecodeStep::Answer(answer) if taken == bytes.len() => answer,
            _ if !self.codec.is_ours(bytes) => return,
            _ => return self.recorder.failed(now, RequestFailure::Corrupt),
        };
        if answer.quality != Quality::Good && !self.codec.is_ours(bytes) {
            return;
        }
        let flight = match answer.seq {
            Some(seq) => self.flights.take(slot, seq),
            None => self.flights.take_oldest(slot),
        };
        if let (Some(stamps), Some(flight)) = (&mut self.stamps, flight) {
            let good = answer.quality == Quality::Good;
            stamps.answered(slot, flight.seq, flight.sent, now, good);
        }
        match (flight, answer.quality) {
            (Some(flight), Quality::Good) => {
                self.recorder
                    .completed(flight.intended, flight.sent, now, answer.bytes);
            }
            (Some(flight), _) => self
                .recorder
                .failed(flight.intended, RequestFailure::Corrupt),
            (None, Quality::Good) => {}
            (None, _) => self.recorder.failed(now, RequestFailure::Corrupt),
        }
    }

    /// The other side has closed.
    fn ended<D: Driver>(&mut self, io: &mut D, slot: usize, now: u64) {
        match self.lines[slot].state {
            ConnectionState::Closing => self.renew(io, slot, now),
            _ if self.flights.count(slot) == 0 => self.closed_idle(io, slot, now),
            _ => match self.codec.end(&mut self.lines[slot].reader) {
                // An answer without a stated length ends with the stream.
                Some(answer) if self.account(slot, answer, now).is_ok() => {
                    if self.flights.count(slot) == 0 {
                        self.renew(io, slot, now);
                    } else {
                        self.break_line(io, slot, RequestFailure::Closed, now);
                    }
                }
                _ => self.break_line(io, slot, RequestFailure::Closed, now),
            },
        }
    }
}
