//! Requests that are out: sent, and not yet answered.

const NONE: u32 = u32::MAX;

/// One request that is out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flight {
    pub(crate) intended: u64,
    pub(crate) sent: u64,
    pub(crate) seq: u64,
    slot: u32,
    live: bool,
    older: u32,
    younger: u32,
}

/// The oldest and the youngest request of one connection, and their number.
#[derive(Clone, Copy, Debug)]
struct Queue {
    oldest: u32,
    youngest: u32,
    count: u32,
}

/// All requests that are out, found by sequence number, and in order of
/// sending by connection. Allocates only when made.
#[derive(Debug)]
pub(crate) struct Flights {
    table: Vec<Flight>,
    queues: Vec<Queue>,
    next: u64,
    len: usize,
}

impl Flights {
    /// Room for at least `capacity` requests over `slots` connections.
    /// Sequence numbers start at `first`.
    pub(crate) fn new(capacity: usize, slots: usize, first: u64) -> Self {
        let empty = Queue {
            oldest: NONE,
            youngest: NONE,
            count: 0,
        };
        Self {
            table: vec![Flight::default(); capacity.next_power_of_two()],
            queues: vec![empty; slots],
            next: first,
            len: 0,
        }
    }

    /// How many requests are out.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many requests are out on a connection.
    #[inline]
    pub(crate) fn count(&self, slot: usize) -> u32 {
        self.queues[slot].count
    }

    fn position(&self, seq: u64) -> usize {
        seq as usize & (self.table.len() - 1)
    }

    /// Books a request on a connection and gives its sequence number; `None`
    /// when there is no room (a limit, which delays the request; L-3).
    #[inline]
    pub(crate) fn book(&mut self, slot: usize, intended: u64, sent: u64) -> Option<u64> {
        // A number is skipped when its place is still held by a request that
        // was never answered.
        let seq = (self.next..self.next + 64).find(|&s| !self.table[self.position(s)].live)?;
        self.next = seq + 1;
        let at = self.position(seq) as u32;
        let queue = &mut self.queues[slot];
        let older = queue.youngest;
        queue.youngest = at;
        queue.count += 1;
        if older == NONE {
            queue.oldest = at;
        } else {
            self.table[older as usize].younger = at;
        }
        self.table[at as usize] = Flight {
            intended,
            sent,
            seq,
            slot: slot as u32,
            live: true,
            older,
            younger: NONE,
        };
        self.len += 1;
        Some(seq)
    }

    /// The request that has been out longest on a connection.
    #[inline]
    pub(crate) fn oldest(&self, slot: usize) -> Option<Flight> {
        let at = self.queues[slot].oldest;
        (at != NONE).then(|| self.table[at as usize])
    }

    /// Takes a request off the books; `None` when no such request is out on
    /// that connection.
    #[inline]
    pub(crate) fn take(&mut self, slot: usize, seq: u64) -> Option<Flight> {
        let at = self.position(seq);
        let flight = self.table[at];
        if !flight.live || flight.seq != seq || flight.slot as usize != slot {
            return None;
        }
        self.table[at].live = false;
        self.len -= 1;
        match flight.older {
            NONE => self.queues[slot].oldest = flight.younger,
            older => self.table[older as usize].younger = flight.younger,
        }
        match flight.younger {
            NONE => self.queues[slot].youngest = flight.older,
            younger => self.table[younger as usize].older = flight.older,
        }
        self.queues[slot].count -= 1;
        Some(flight)
    }

    /// Takes the request that has been out longest on a connection.
    #[inline]
    pub(crate) fn take_oldest(&mut self, slot: usize) -> Option<Flight> {
        self.take(slot, self.oldest(slot)?.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_found_in_any_order() {
        let mut flights = Flights::new(8, 2, 100);
        let a = flights.book(0, 1, 2).unwrap();
        let b = flights.book(0, 3, 4).unwrap();
        let c = flights.book(0, 5, 6).unwrap();
        let other = flights.book(1, 7, 8).unwrap();
        assert_eq!((a, b, c, other), (100, 101, 102, 103));
        assert!(flights.take(1, b).is_none(), "booked on another connection");
        assert_eq!(flights.take(0, b).unwrap().intended, 3);
        assert!(flights.take(0, b).is_none(), "answered twice");
        assert_eq!(flights.count(0), 2);
        assert_eq!(flights.take_oldest(0).unwrap().intended, 1);
        assert_eq!(flights.take_oldest(0).unwrap().intended, 5);
        assert!(flights.take_oldest(0).is_none());
        assert_eq!(flights.len(), 1);
    }

    #[test]
    fn a_lost_request_blocks_neither_its_number_nor_the_rest() {
        let mut flights = Flights::new(4, 1, 0);
        let lost = flights.book(0, 0, 0).unwrap();
        for _ in 0..20 {
            let seq = flights.book(0, 1, 1).unwrap();
            assert_ne!(seq & 3, lost & 3);
            assert!(flights.take(0, seq).is_some());
        }
        for _ in 0..3 {
            assert!(flights.book(0, 2, 2).is_some());
        }
        assert!(flights.book(0, 2, 2).is_none(), "full");
        assert_eq!(flights.oldest(0).unwrap().seq, lost);
    }
}
