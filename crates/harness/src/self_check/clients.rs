//! L-12: whether every sending thread saw the same path.

use plumbline_record::{Histogram, LoadResult, Warning};
use plumbline_stats::exceedance::{self, ExceedanceSlice};
use plumbline_stats::order;

/// The percentile that is compared.
const QUANTILE: f64 = 0.99;
/// Confidence of the intervals.
const LEVEL: f64 = 0.95;
/// How many times apart two p99 must be at least. Threads share a machine, and
/// with enough requests any two differ.
const FACTOR: f64 = 1.25;

/// The p99 of one thread and its interval; a side that too few samples bound is
/// unbounded (L-14).
struct Client {
    p99: u64,
    low: Option<u64>,
    high: Option<u64>,
}

/// The thread whose p99 lies furthest from those of *all* others: its interval
/// touches none of theirs.
///
/// Others are taken one by one, not together as in Treadmill: pooled with one
/// slow thread, all the good ones would look too fast. Of two threads that
/// differ the slower is named.
pub(super) fn apart(load: &LoadResult) -> Option<Warning> {
    let share = independent_share(load);
    let clients: Vec<Client> = load
        .clients
        .iter()
        .map(|it| Client::new(it, share))
        .collect();
    let odd_ones = (0..clients.len()).filter_map(|index| {
        let others = clients
            .iter()
            .enumerate()
            .filter(|&(other, _)| other != index);
        let nearest = clients[index].nearest_apart(others.map(|(_, client)| client))?;
        Some((index, clients[index].p99, nearest))
    });
    // The slower comes first among those that are equally far.
    let (index, p99_ns, others_ns) = odd_ones.max_by(|left, right| {
        let by_distance = distance(left.1, left.2).total_cmp(&distance(right.1, right.2));
        by_distance.then(left.1.cmp(&right.1))
    })?;
    Some(Warning::ClientDiffers {
        client: index as u32 + 1,
        p99_ns,
        others_ns,
    })
}

/// How many of the samples are independent as far as p99 goes, as a share: by the exceedances
/// of the window's slices (L-21), taken to hold for each thread as for all.
fn independent_share(load: &LoadResult) -> f64 {
    let slices = load.slice_tails.iter().map(|it| ExceedanceSlice {
        beyond: it.beyond,
        samples: it.samples,
    });
    let slices: Vec<ExceedanceSlice> = slices.collect();
    let samples: u64 = slices.iter().map(|slice| slice.samples).sum();
    exceedance::effective_samples(&slices) / samples.max(1) as f64
}

impl Client {
    fn new(latency: &Histogram, independent_share: f64) -> Self {
        let samples = latency.len() as f64 * independent_share;
        let (low, high) = order::percentile_fractions(samples, QUANTILE, LEVEL);
        Self {
            p99: latency.value_at(QUANTILE),
            low: low.map(|fraction| latency.value_at(fraction)),
            high: high.map(|fraction| latency.value_at(fraction)),
        }
    }

    /// The nearest p99 of the others, if this one is apart from every one.
    fn nearest_apart<'a>(&self, others: impl Iterator<Item = &'a Self>) -> Option<u64> {
        let mut nearest: Option<u64> = None;
        for other in others {
            let is_apart = self.is_below(other) || other.is_below(self);
            if !is_apart || distance(self.p99, other.p99) < FACTOR.ln() {
                return None;
            }
            nearest = nearest
                .into_iter()
                .chain([other.p99])
                .min_by(|a, b| distance(self.p99, *a).total_cmp(&distance(self.p99, *b)));
        }
        nearest
    }

    fn is_below(&self, other: &Self) -> bool {
        matches!((self.high, other.low), (Some(high), Some(low)) if high < low)
    }
}

/// How many times two values differ, as a logarithm.
fn distance(one: u64, other: u64) -> f64 {
    (one.max(1) as f64 / other.max(1) as f64).ln().abs()
}

#[cfg(test)]
mod tests {
    use plumbline_record::SliceTail;

    use super::*;
    use crate::planted::{healthy, histogram};

    /// A load of several threads, each with requests around its latency in
    /// microseconds, of which the slowest fiftieth takes twice as long.
    fn threads(requests: u64, latencies_us: &[u64]) -> LoadResult {
        let client = |&us: &u64| {
            let one =
                move |i: u64| (us * 1_000 + i % 97 * 10) * (1 + u64::from(i.is_multiple_of(50)));
            histogram((0..requests).map(one))
        };
        LoadResult {
            clients: latencies_us.iter().map(client).collect(),
            slice_tails: (0..100).map(|i| tail(u64::from(i % 2 == 0))).collect(),
            ..healthy().load.load
        }
    }

    /// A slice of 50 latencies, of which so many are slow.
    fn tail(beyond: u64) -> SliceTail {
        SliceTail {
            samples: 50,
            beyond,
        }
    }

    fn odd_one(load: &LoadResult) -> Option<u32> {
        apart(load).map(|warning| match warning {
            Warning::ClientDiffers { client, .. } => client,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn one_thread_on_another_path_is_named() {
        assert_eq!(odd_one(&threads(5_000, &[60, 61, 200, 60])), Some(3));
        assert_eq!(odd_one(&threads(5_000, &[200, 201, 60, 202])), Some(3));
        assert_eq!(odd_one(&threads(5_000, &[60, 200])), Some(2));
        assert_eq!(odd_one(&threads(5_000, &[200, 60])), Some(1));
    }

    #[test]
    fn threads_that_saw_the_same_are_not() {
        assert_eq!(odd_one(&threads(5_000, &[60, 61, 62, 60])), None);
        // Apart, but two and two: no single thread is to blame.
        assert_eq!(odd_one(&threads(5_000, &[60, 61, 200, 201])), None);
        assert_eq!(odd_one(&threads(5_000, &[60])), None);
        assert_eq!(odd_one(&threads(5_000, &[])), None);
    }

    #[test]
    fn too_few_samples_accuse_nobody() {
        assert_eq!(odd_one(&threads(100, &[60, 61, 200, 60])), None);
        // Many, but worth few: all that is slow came in one burst.
        let burst = LoadResult {
            slice_tails: (0..100)
                .map(|i| tail(if i == 40 { 50 } else { 0 }))
                .collect(),
            ..threads(5_000, &[60, 61, 200, 60])
        };
        assert_eq!(odd_one(&burst), None);
    }
}
