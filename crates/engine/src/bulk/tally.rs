//! Which numbered messages arrived: how many, twice, late.

use plumbline_record::DatagramCounts;

/// How far back a message is recognised as a duplicate. A later one counts as
/// reordered.
const MEMORY: u64 = 1 << 16;
const WORDS: usize = (MEMORY / 64) as usize;

/// The measured messages of all flows, counted at the receiver (N-13).
#[derive(Debug)]
pub(crate) struct Tally {
    flows: Vec<Flow>,
    counts: DatagramCounts,
    first_ns: u64,
}

#[derive(Debug)]
struct Flow {
    /// One more than the highest number seen; 0 before the first.
    next: u64,
    /// A bit for each of the last [`MEMORY`] numbers.
    seen: Box<[u64]>,
}

impl Tally {
    /// A tally of `flows` flows, numbered from 0.
    pub(crate) fn new(flows: usize) -> Self {
        let flow = || Flow {
            next: 0,
            seen: vec![0; WORDS].into(),
        };
        Self {
            flows: (0..flows).map(|_| flow()).collect(),
            counts: DatagramCounts::default(),
            first_ns: 0,
        }
    }

    /// Counts a measured message of `bytes` bytes that arrived at `now`; false
    /// when there is no such flow.
    pub(crate) fn count(&mut self, flow: u32, seq: u64, bytes: u64, now: u64) -> bool {
        let Some(flow) = self.flows.get_mut(flow as usize) else {
            return false;
        };
        let counts = &mut self.counts;
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
            self.first_ns = now;
        }
        counts.span_ns = now - self.first_ns;
        true
    }

    /// What was counted.
    pub(crate) fn counts(&self) -> DatagramCounts {
        self.counts
    }
}

impl Flow {
    fn is_seen(&self, seq: u64) -> bool {
        self.seen[(seq % MEMORY / 64) as usize] >> (seq % 64) & 1 == 1
    }

    fn mark(&mut self, seq: u64) {
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
        self.next = seq + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(seqs: impl IntoIterator<Item = u64>) -> DatagramCounts {
        let mut tally = Tally::new(1);
        for (at, seq) in seqs.into_iter().enumerate() {
            assert!(tally.count(0, seq, 10, 1_000 + at as u64));
        }
        tally.counts()
    }

    #[test]
    fn losses_duplicates_and_late_messages_are_told_apart() {
        let counts = tally([0, 1, 2, 5, 4, 4, 5, 9]);
        let expected = DatagramCounts {
            received: 6,
            bytes: 60,
            duplicated: 2,
            reordered: 1,
            span_ns: 7,
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
    fn a_foreign_flow_is_refused() {
        assert!(!Tally::new(2).count(2, 0, 1, 1));
    }
}
