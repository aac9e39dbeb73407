//! Latencies by time slice, in memory that is allocated before the load starts.
//!
//! A full histogram per second would be 221 KB. This one keeps 7 bits of each
//! value: 15 KB, and within 0.4 % of the true value, which is enough to see a
//! change over time (L-10). Pages that no value falls into are never touched.

/// Bits of a value that are kept below its highest bit.
const BITS: u32 = 7;
/// Buckets per power of two.
const PER_OCTAVE: usize = 1 << BITS;
/// Values from 1 ns to 2^36 ns (68 s).
const BUCKETS: usize = PER_OCTAVE * (36 - BITS as usize + 1);

/// A row of equal time slices from 0 on, each with a small histogram.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    width: u64,
    slices: Vec<TimelineSlice>,
    counts: Vec<u32>,
    /// Start, end and index of the slice that was recorded into last: values
    /// come roughly in time order, so a division is rarely needed.
    last: (u64, u64, usize),
}

/// What one slice holds besides its buckets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TimelineSlice {
    /// Values recorded.
    pub(crate) count: u64,
    /// Largest value.
    pub(crate) max_ns: u64,
    lowest: u16,
    highest: u16,
}

impl Timeline {
    /// `count` slices of `width` nanoseconds each.
    pub(crate) fn new(width: u64, count: usize) -> Self {
        Self {
            width: width.max(1),
            slices: vec![TimelineSlice::default(); count],
            counts: vec![0; count * BUCKETS],
            last: (0, 0, 0),
        }
    }

    /// The slice that `at` falls into; the last one for what is later.
    #[inline]
    pub(crate) fn index_at(&mut self, at: u64) -> usize {
        if self.last.0 <= at && at < self.last.1 {
            return self.last.2;
        }
        let wanted = at / self.width;
        let index = (wanted as usize).min(self.slices.len() - 1);
        let start = index as u64 * self.width;
        self.last = (start, start + self.width, index);
        index
    }

    /// Counts a duration of `ns` in slice `index`.
    #[inline]
    pub(crate) fn record(&mut self, index: usize, ns: u64) {
        let bucket = bucket_of(ns);
        let slice = &mut self.slices[index];
        if slice.count == 0 {
            slice.lowest = bucket as u16;
        }
        slice.count += 1;
        slice.max_ns = slice.max_ns.max(ns);
        slice.lowest = slice.lowest.min(bucket as u16);
        slice.highest = slice.highest.max(bucket as u16);
        self.counts[index * BUCKETS + bucket] += 1;
    }

    /// The slices in time order.
    pub(crate) fn slices(&self) -> &[TimelineSlice] {
        &self.slices
    }

    /// The duration at quantile `q` of slice `index`, in nanoseconds, within
    /// 0.4 %; 0 when the slice is empty.
    pub(crate) fn quantile(&self, index: usize, q: f64) -> u64 {
        let slice = &self.slices[index];
        let rank = ((q * slice.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for bucket in usize::from(slice.lowest)..=usize::from(slice.highest) {
            seen += u64::from(self.counts[index * BUCKETS + bucket]);
            if seen >= rank {
                return middle_of(bucket).min(slice.max_ns);
            }
        }
        slice.max_ns
    }

    /// How many durations of slice `index` are longer than `ns`, within 0.8 % of it.
    pub(crate) fn count_above(&self, index: usize, ns: u64) -> u64 {
        let highest = usize::from(self.slices[index].highest);
        let count = |bucket: usize| u64::from(self.counts[index * BUCKETS + bucket]);
        (bucket_of(ns) + 1..=highest).map(count).sum()
    }

    /// Adds the counts of a timeline of the same shape.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (index, theirs) in other.slices.iter().enumerate() {
            if theirs.count == 0 {
                continue;
            }
            let slice = &mut self.slices[index];
            if slice.count == 0 {
                slice.lowest = theirs.lowest;
            }
            slice.count += theirs.count;
            slice.max_ns = slice.max_ns.max(theirs.max_ns);
            slice.lowest = slice.lowest.min(theirs.lowest);
            slice.highest = slice.highest.max(theirs.highest);
            for bucket in usize::from(theirs.lowest)..=usize::from(theirs.highest) {
                self.counts[index * BUCKETS + bucket] += other.counts[index * BUCKETS + bucket];
            }
        }
    }
}

#[inline]
fn bucket_of(ns: u64) -> usize {
    if ns < PER_OCTAVE as u64 {
        return ns as usize;
    }
    let shift = 63 - ns.leading_zeros() - BITS;
    let top = (ns >> shift) as usize;
    (shift as usize * PER_OCTAVE + top).min(BUCKETS - 1)
}

fn middle_of(bucket: usize) -> u64 {
    if bucket < PER_OCTAVE {
        return bucket as u64;
    }
    let shift = bucket / PER_OCTAVE - 1;
    let top = (bucket % PER_OCTAVE + PER_OCTAVE) as u64;
    (top << shift) + (1_u64 << shift) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_back_within_its_precision() {
        let mut ns = 1_u64;
        let mut last = 0;
        while ns < 60_000_000_000 {
            let bucket = bucket_of(ns);
            assert!(bucket >= last && bucket < BUCKETS - 1);
            last = bucket;
            let error = (middle_of(bucket) as f64 / ns as f64 - 1.0).abs();
            assert!(error <= 0.004, "{ns} became {}", middle_of(bucket));
            ns += ns / 97 + 1;
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn slices_keep_times_apart_and_merge() {
        let mut first = Timeline::new(100, 3);
        let mut second = Timeline::new(100, 3);
        for i in 0..100 {
            let index = first.index_at(i);
            first.record(index, 1_000);
            let index = second.index_at(299 - i);
            second.record(index, 3_000);
        }
        let late = second.index_at(9_999);
        second.record(late, 9_000);
        first.merge(&second);
        let counts: Vec<u64> = first.slices().iter().map(|s| s.count).collect();
        assert_eq!(counts, [100, 0, 101]);
        assert!((first.quantile(0, 0.5) as f64 / 1_000.0 - 1.0).abs() < 0.004);
        assert_eq!(first.quantile(1, 0.5), 0);
        assert!((first.quantile(2, 0.99) as f64 / 3_000.0 - 1.0).abs() < 0.004);
        assert_eq!(first.slices()[2].max_ns, 9_000);
        let above = |ns| [0, 1, 2].map(|index| first.count_above(index, ns));
        assert_eq!(above(500), [100, 0, 101]);
        assert_eq!(above(2_000), [0, 0, 101]);
        assert_eq!(above(4_000), [0, 0, 1]);
        assert_eq!(above(9_000), [0, 0, 0]);
    }
}
