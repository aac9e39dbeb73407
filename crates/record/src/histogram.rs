//! A latency histogram: HDR, 3 significant digits, 1 ns to 60 s (D12, L-20).

mod shape;
mod sparse;
mod stored;

use hdrhistogram::serialization::{Serializer, V2Serializer};

pub use shape::HistogramError;

use shape::{DIGITS, HIGHEST_NS};
use sparse::Sparse;

/// A mergeable histogram of durations in nanoseconds with the exact maximum.
///
/// Values above 60 s are counted in the topmost bucket and in
/// [`overflow`](Self::overflow); the exact maximum is kept all the same.
///
/// One made by [`new`](Self::new) has all its counters, and recording into it
/// does not allocate. One that was read from a file keeps only the counters
/// that are not zero, and is expanded when it is recorded or merged into.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Counts,
    max_ns: u64,
    overflow: u64,
}

#[derive(Clone, Debug)]
enum Counts {
    Dense(Dense),
    Sparse(Sparse),
}

type Dense = hdrhistogram::Histogram<u64>;

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Self {
            counts: Counts::Dense(dense()),
            max_ns: 0,
            overflow: 0,
        }
    }

    /// Counts one duration. 0 counts as 1 ns.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    /// Counts the same duration `n` times.
    #[inline]
    pub fn record_n(&mut self, ns: u64, n: u64) {
        if ns > HIGHEST_NS {
            self.overflow += n;
        }
        if ns > self.max_ns && n > 0 {
            self.max_ns = ns;
        }
        self.dense_mut()
            .saturating_record_n(ns.clamp(1, HIGHEST_NS), n);
    }

    /// Adds all of another histogram (L-15: for the pooled curve only).
    pub fn merge(&mut self, other: &Self) {
        self.max_ns = self.max_ns.max(other.max_ns);
        self.overflow += other.overflow;
        let counters = self.dense_mut();
        match &other.counts {
            Counts::Dense(others) => counters
                .add(others)
                .expect("all our histograms have one shape"),
            Counts::Sparse(others) => pour(others, counters),
        }
    }

    /// How many durations were counted.
    pub fn len(&self) -> u64 {
        match &self.counts {
            Counts::Dense(counters) => counters.len(),
            Counts::Sparse(counters) => counters.len(),
        }
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The duration at quantile `q` (0 to 1), in nanoseconds, within 0.1 %;
    /// 0 when empty. Whether there are enough samples is for `stats` to say (D4).
    pub fn value_at(&self, q: f64) -> u64 {
        if self.is_empty() {
            return 0;
        }
        let value = match &self.counts {
            Counts::Dense(counters) => counters.value_at_quantile(q),
            Counts::Sparse(counters) => counters.value_at(q),
        };
        value.min(self.max_ns.max(1))
    }

    /// The exact maximum in nanoseconds; 0 when empty.
    pub fn max(&self) -> u64 {
        self.max_ns
    }

    /// The mean in nanoseconds, within 0.1 %; 0 when empty.
    pub fn mean(&self) -> f64 {
        match &self.counts {
            Counts::Dense(counters) => counters.mean(),
            Counts::Sparse(counters) => counters.mean(),
        }
    }

    /// How many durations were above 60 s.
    pub fn overflow(&self) -> u64 {
        self.overflow
    }

    /// The number of durations at or below `ns`.
    pub fn count_at_or_below(&self, ns: u64) -> u64 {
        let ns = ns.clamp(1, HIGHEST_NS);
        match &self.counts {
            Counts::Dense(counters) => counters.count_between(0, ns),
            Counts::Sparse(counters) => counters.count_at_or_below(ns),
        }
    }

    /// Non-empty buckets in rising order: highest duration of the bucket in
    /// nanoseconds, and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (dense, sparse) = match &self.counts {
            Counts::Dense(counters) => (Some(counters), None),
            Counts::Sparse(counters) => (None, Some(counters)),
        };
        let dense = dense
            .into_iter()
            .flat_map(|counters| counters.iter_recorded())
            .map(|b| (b.value_iterated_to(), b.count_at_value()));
        dense.chain(sparse.into_iter().flat_map(Sparse::buckets))
    }

    /// The counters, all of them.
    #[inline]
    fn dense_mut(&mut self) -> &mut Dense {
        if let Counts::Sparse(counters) = &self.counts {
            self.counts = Counts::Dense(expand(counters));
        }
        match &mut self.counts {
            Counts::Dense(counters) => counters,
            Counts::Sparse(_) => unreachable!("it was expanded above"),
        }
    }

    /// HDR V2, not compressed.
    fn encode(&self) -> Vec<u8> {
        let write = |counters: &Dense| {
            let mut bytes = Vec::new();
            V2Serializer::new()
                .serialize(counters, &mut bytes)
                .expect("writing to memory does not fail");
            bytes
        };
        match &self.counts {
            Counts::Dense(counters) => write(counters),
            Counts::Sparse(counters) => write(&expand(counters)),
        }
    }

    fn decode(bytes: &[u8], max_ns: u64, overflow: u64) -> Result<Self, HistogramError> {
        Ok(Self {
            counts: Counts::Sparse(Sparse::decode(bytes)?),
            max_ns,
            overflow,
        })
    }
}

/// Equal when the same was counted, whatever the form.
impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        (self.max_ns, self.overflow) == (other.max_ns, other.overflow)
            && self.buckets().eq(other.buckets())
    }
}

fn dense() -> Dense {
    Dense::new_with_bounds(1, HIGHEST_NS, DIGITS)
        .expect("1 ns to 60 s at 3 digits is a valid shape")
}

#[cold]
fn expand(sparse: &Sparse) -> Dense {
    let mut counters = dense();
    pour(sparse, &mut counters);
    counters
}

fn pour(from: &Sparse, into: &mut Dense) {
    for (highest, count) in from.buckets() {
        // The topmost bucket reaches beyond the range.
        into.saturating_record_n(highest.min(HIGHEST_NS), count);
    }
}
