//! Which numbered messages arrived: how many, which twice, which late.

use plumbline_record::DatagramCounts;

use super::MeterMessage;
use plumbline_experiment::ceiling::MAX_FLOWS;

/// How far back a duplicate is recognised. One that is older counts as
/// reordered.
const MEMORY: u64 = 1 << 16;
/// A longer time without an arrival is a pause, nanoseconds.
const PAUSE_NS: u64 = 2_000_000;
const WORDS: usize = (MEMORY / 64) as usize;

/// The measured messages of all flows, counted at the receiver (N-13).
#[derive(Debug, Default)]
pub(crate) struct Tally {
    flows: Vec<FlowTally>,
    counts: DatagramCounts,
    /// When the first and the last message arrived; 0 before the first.
    first_ns: u64,
    last_ns: u64,
}

#[derive(Debug)]
struct FlowTally {
    session: u16,
    /// One more than the highest number seen; 0 before the first.
    next: u64,
    /// Different numbers that arrived.
    arrived: u64,
    /// A bit for each of the last [`MEMORY`] numbers.
    seen: Box<[u64]>,
}

impl Tally {
    /// Makes room for a flow before its measured messages; false when its
    /// number is beyond what a load may have.
    pub(crate) fn admit(&mut self, flow: u16) -> bool {
        if u32::from(flow) >= MAX_FLOWS {
            return false;
        }
        while self.flows.len() <= usize::from(flow) {
            self.flows.push(FlowTally::new());
        }
        true
    }

    /// Counts a measured message of `bytes` bytes that arrived at `now`; false
    /// when there can be no such flow.
    pub(crate) fn count(&mut self, message: MeterMessage, bytes: u64, now: u64) -> bool {
        if !self.admit(message.flow) {
            return false;
        }
        let flow = &mut self.flows[usize::from(message.flow)];
        let counts = &mut self.counts;
        if flow.session != message.session {
            counts.missing += flow.missing();
            flow.begin(message.session);
        }
        let seq = message.seq;
        let late = seq < flow.next;
        if late && flow.next - seq <= MEMORY {
            if flow.is_seen(seq) {
                counts.duplicated += 1;
                return true;
            }
        } else if !late {
            flow.advance(seq);
        }
        flow.mark(seq);
        counts.reordered += u64::from(late);
        counts.received += 1;
        counts.bytes += bytes;
        if self.first_ns == 0 {
            (self.first_ns, self.last_ns) = (now, now);
        }
        let gap = now - std::mem::replace(&mut self.last_ns, now);
        if gap > PAUSE_NS {
            counts.pauses_ns += gap;
        }
        counts.span_ns = now - self.first_ns;
        true
    }

    /// The counts.
    pub(crate) fn counts(&self) -> DatagramCounts {
        let open: u64 = self.flows.iter().map(FlowTally::missing).sum();
        DatagramCounts {
            missing: self.counts.missing + open,
            ..self.counts
        }
    }
}

impl FlowTally {
    fn new() -> Self {
        Self {
            session: 0,
            next: 0,
            arrived: 0,
            seen: vec![0; WORDS].into(),
        }
    }

    fn begin(&mut self, session: u16) {
        self.session = session;
        self.next = 0;
        self.arrived = 0;
        self.seen.fill(0);
    }

    fn missing(&self) -> u64 {
        // A duplicate older than the memory counts as a new arrival.
        self.next.saturating_sub(self.arrived)
    }

    fn is_seen(&self, seq: u64) -> bool {
        self.seen[(seq % MEMORY / 64) as usize] >> (seq % 64) & 1 == 1
    }

    fn mark(&mut self, seq: u64) {
        self.arrived += 1;
        if self.next - seq <= MEMORY {
            self.seen[(seq % MEMORY / 64) as usize] |= 1 << (seq % 64);
        }
    }

    /// Makes `seq` the highest number; those passed over have not been seen.
    fn advance(&mut self, seq: u64) {
        if seq - self.next >= MEMORY {
            self.seen.fill(0);
        } else {
            for passed in self.next..=seq {
                self.seen[(passed % MEMORY / 64) as usize] &= !(1 << (passed % 64));
            }
        }
        self.next = seq.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(session: u16, flow: u16, seq: u64) -> MeterMessage {
        MeterMessage {
            seq,
            flow,
            session,
            measured: true,
        }
    }

    fn tally(seqs: impl IntoIterator<Item = u64>) -> DatagramCounts {
        let mut tally = Tally::default();
        for (at, seq) in seqs.into_iter().enumerate() {
            assert!(tally.count(message(1, 0, seq), 10, 1_000 + at as u64));
        }
        tally.counts()
    }

    #[test]
    fn the_pauses_between_slices_are_told() {
        let mut tally = Tally::default();
        for (seq, at) in [5, 6, 7, 90_000_007, 90_000_009].into_iter().enumerate() {
            assert!(tally.count(message(1, 0, seq as u64), 10, at));
        }
        let counts = tally.counts();
        assert_eq!((counts.span_ns, counts.pauses_ns), (90_000_004, 90_000_000));
    }

    #[test]
    fn losses_duplicates_and_late_messages_are_told_apart() {
        let counts = tally([0, 1, 2, 5, 4, 4, 5, 9]);
        let expected = DatagramCounts {
            received: 6,
            bytes: 60,
            duplicated: 2,
            reordered: 1,
            missing: 4,
            span_ns: 7,
            pauses_ns: 0,
        };
        assert_eq!(counts, expected);
    }

    #[test]
    fn the_memory_goes_round() {
        let counts = tally((0..200_000).chain([199_999, 199_990, 134_464]));
        assert_eq!(counts.received, 200_000);
        assert_eq!(counts.duplicated, 3);
        // A long gap forgets all; the numbers skipped are new when they come.
        let counts = tally([0, 1, 1 << 40, (1 << 40) - 1, (1 << 40) - 1, 5]);
        assert_eq!(
            (counts.received, counts.duplicated, counts.reordered),
            (5, 1, 2)
        );
    }

    #[test]
    fn the_next_load_starts_anew_and_takes_nothing_back() {
        let mut tally = Tally::default();
        for (session, seq) in [(1, 0), (1, 2), (2, 0), (2, 1), (2, 3), (2, 4)] {
            assert!(tally.count(message(session, 3, seq), 10, 1));
        }
        let counts = tally.counts();
        assert_eq!((counts.received, counts.missing), (6, 2));
        assert_eq!((counts.duplicated, counts.reordered), (0, 0));
    }

    #[test]
    fn a_flow_that_no_load_has_is_refused() {
        let mut tally = Tally::default();
        assert!(!tally.count(message(1, MAX_FLOWS as u16, 0), 1, 1));
        assert!(tally.count(message(1, MAX_FLOWS as u16 - 1, 0), 1, 1));
    }
}
