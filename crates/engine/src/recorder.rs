//! The accounts of one worker: what was intended, sent, answered, lost.

use std::sync::Arc;

use plumbline_record::{LoadResult, SecondOfLoad, SliceTail};

use crate::fates::{Fates, RequestFate};
use crate::gaps::Gaps;
use crate::progress::LoadProgress;
use crate::timeline::Timeline;
use crate::window::Window;

const SECOND: u64 = 1_000_000_000;
/// Slices of the window for the stationarity check (L-8, L-10).
const SLICES: u64 = 100;

/// What went wrong with a request; see [`ErrorCounts`](plumbline_record::ErrorCounts).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestFailure {
    Connect,
    Closed,
    Corrupt,
    Protocol,
    Send,
}

/// Counts and histograms of the measured window.
///
/// A request belongs to the window in which it was *intended* (D1, L-1), so
/// every method takes that moment; requests outside the window are not
/// recorded. Recording neither allocates nor locks.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// Counts and histograms; what is known only at the end is not filled in.
    pub(crate) seen: LoadResult,
    pub(crate) window: Window,
    pub(crate) gaps: Gaps,
    /// What became of each request, where that is wanted.
    pub(crate) fates: Option<Fates>,
    by_second: Timeline,
    by_slice: Timeline,
    totals: WorkerTotals,
    /// Length of the window where it was measured rather than planned.
    measured_ns: Option<u64>,
    progress: Option<Arc<LoadProgress>>,
}

/// Running totals for the live display, warm-up included.
#[derive(Clone, Copy, Debug, Default)]
struct WorkerTotals {
    completed: u64,
    errors: u64,
    bytes: u64,
}

impl Recorder {
    /// Empty accounts for a window of `length` nanoseconds, which is yet to be
    /// placed in time.
    pub(crate) fn new(length: u64, progress: Option<Arc<LoadProgress>>) -> Self {
        let seconds = length.div_ceil(SECOND).max(1) as usize;
        Self {
            seen: LoadResult {
                seconds: vec![SecondOfLoad::default(); seconds],
                ..LoadResult::default()
            },
            by_second: Timeline::new(SECOND, seconds),
            by_slice: Timeline::new(length.div_ceil(SLICES), SLICES as usize),
            progress,
            ..Self::default()
        }
    }

    /// Keeps a sample of the gaps between the `expected` requests (L-7).
    pub(crate) fn sampling_gaps(mut self, expected: f64) -> Self {
        self.gaps = Gaps::sampling(expected);
        self
    }

    /// A request was intended at `intended`.
    #[inline]
    pub(crate) fn planned(&mut self, intended: u64) {
        self.seen.planned += u64::from(self.window.contains(intended));
        self.note(intended, RequestFate::Unanswered);
    }

    /// A request went out at `sent`. `free` is the earliest moment at which a
    /// connection could take it: what lies between is the generator's own
    /// fault, what lies before is not (L-2).
    #[inline]
    pub(crate) fn sent(&mut self, intended: u64, sent: u64, free: u64, bytes: u64) {
        self.sent_many(1, intended, sent, free, bytes);
    }

    /// As [`sent`](Self::sent), for `count` requests of `bytes` bytes each that
    /// were intended at the same moment and went out together.
    #[inline]
    pub(crate) fn sent_many(
        &mut self,
        count: u64,
        intended: u64,
        sent: u64,
        free: u64,
        bytes: u64,
    ) {
        let bytes = count * bytes;
        self.totals.bytes += bytes;
        let Some(place) = self.window.place(intended) else {
            return;
        };
        self.seen.sent += count;
        self.seen.bytes_sent += bytes;
        let lag = sent.saturating_sub(intended);
        let own_lag = sent.saturating_sub(free.max(intended));
        self.seen.send_lag.record_n(lag, count);
        self.seen.generator_lag.record_n(own_lag, count);
        if let Some(fates) = &mut self.fates {
            fates.note_lag(intended, own_lag);
        }
        if free > intended {
            self.seen.waited_for_connection += count;
        }
        let second = self.by_second.index_at(place);
        self.seen.seconds[second].bytes += bytes;
        self.gaps.sent(place, place + lag);
    }

    /// The right answer to a request arrived at `received`.
    #[inline]
    pub(crate) fn completed(&mut self, intended: u64, sent: u64, received: u64, bytes: u64) {
        self.totals.completed += 1;
        self.totals.bytes += bytes;
        let Some(place) = self.window.place(intended) else {
            return;
        };
        self.seen.completed += 1;
        self.seen.bytes_received += bytes;
        self.seen.service_time.record(received.saturating_sub(sent));
        let latency = received.saturating_sub(intended);
        self.note(intended, RequestFate::Answered(latency));
        let second = self.observe(place, latency);
        self.seen.seconds[second].completed += 1;
        self.seen.seconds[second].bytes += bytes;
    }

    /// A request got an error instead of an answer.
    pub(crate) fn failed(&mut self, intended: u64, failure: RequestFailure) {
        self.totals.errors += 1;
        let Some(place) = self.window.place(intended) else {
            return;
        };
        self.note(intended, RequestFate::Failed);
        let errors = &mut self.seen.errors;
        *match failure {
            RequestFailure::Connect => &mut errors.connect,
            RequestFailure::Closed => &mut errors.closed,
            RequestFailure::Corrupt => &mut errors.corrupt,
            RequestFailure::Protocol => &mut errors.protocol,
            RequestFailure::Send => &mut errors.send,
        } += 1;
        let second = self.by_second.index_at(place);
        self.seen.seconds[second].errors += 1;
    }

    /// Waiting for an answer ended at `now` without one: it is recorded as at
    /// least that late (L-3). `sent` is `None` for a request that never found a
    /// connection; its send lag is at least that long, too.
    pub(crate) fn censored(&mut self, intended: u64, sent: Option<u64>, now: u64) {
        let Some(place) = self.window.place(intended) else {
            return;
        };
        self.seen.censored += 1;
        self.observe(place, now.saturating_sub(intended));
        match sent {
            Some(sent) => self.seen.service_time.record(now.saturating_sub(sent)),
            None => {
                self.seen.waited_for_connection += 1;
                self.seen.send_lag.record(now.saturating_sub(intended));
            }
        }
    }

    /// Notes what is known of a request of the window now.
    #[inline]
    fn note(&mut self, intended: u64, fate: RequestFate) {
        if let Some(fates) = &mut self.fates
            && self.window.contains(intended)
        {
            fates.note(intended, fate);
        }
    }

    /// A connection took `ns` to open, for a request intended at `intended`;
    /// `None` when it was opened before the window.
    pub(crate) fn connected(&mut self, ns: u64, intended: Option<u64>, now: u64) {
        let counts = match intended {
            Some(intended) => self.window.contains(intended),
            None => now < self.window.open(),
        };
        if counts {
            self.seen.connect.record(ns);
        }
    }

    /// A byte stream carried `bytes` in the `length` nanoseconds between its last
    /// two readings, in the second that `at` falls into.
    pub(crate) fn carried(&mut self, at: u64, length: u64, bytes: u64) {
        let second = self.by_second.index_at(self.window.recorded_before(at));
        self.seen.seconds[second].bytes += bytes;
        self.seen.bytes_sent += bytes;
        *self.measured_ns.get_or_insert(0) += length;
    }

    /// The kernel accepted `count` unanswered messages.
    #[inline]
    pub(crate) fn taken(&mut self, count: u64, intended: u64) {
        self.totals.completed += count;
        if let Some(place) = self.window.place(intended) {
            self.seen.completed += count;
            let second = self.by_second.index_at(place);
            self.seen.seconds[second].completed += count;
        }
    }

    #[inline]
    fn observe(&mut self, place: u64, latency: u64) -> usize {
        self.seen.latency.record(latency);
        let slice = self.by_slice.index_at(place);
        self.by_slice.record(slice, latency);
        let second = self.by_second.index_at(place);
        self.by_second.record(second, latency);
        second
    }

    /// The kernel accepted a write of a byte stream at `now`. The window's
    /// bytes are counted elsewhere, from what the other side acknowledged.
    #[inline]
    pub(crate) fn wrote(&mut self, now: u64, bytes: u64) {
        self.totals.bytes += bytes;
        self.planned(now);
        self.seen.sent += u64::from(self.window.contains(now));
        self.taken(1, now);
    }

    /// Passes what has happened since the last call to the live display.
    pub(crate) fn publish(&mut self) {
        if let Some(progress) = &self.progress {
            let totals = std::mem::take(&mut self.totals);
            progress.add(totals.completed, totals.errors, totals.bytes);
        }
    }

    /// Adds the accounts of another worker of the same load.
    pub(crate) fn merge(&mut self, other: &Self) {
        let (ours, theirs) = (&mut self.seen, &other.seen);
        ours.planned += theirs.planned;
        ours.sent += theirs.sent;
        ours.completed += theirs.completed;
        ours.censored += theirs.censored;
        ours.waited_for_connection += theirs.waited_for_connection;
        ours.spin_ns += theirs.spin_ns;
        ours.busiest_thread_ns = ours.busiest_thread_ns.max(theirs.busiest_thread_ns);
        ours.errors.add(&theirs.errors);
        if let Some(theirs) = theirs.zero_copy {
            let ours = ours.zero_copy.get_or_insert_default();
            ours.told += theirs.told;
            ours.copied += theirs.copied;
        }
        ours.bytes_sent += theirs.bytes_sent;
        ours.bytes_received += theirs.bytes_received;
        ours.latency.merge(&theirs.latency);
        ours.service_time.merge(&theirs.service_time);
        ours.send_lag.merge(&theirs.send_lag);
        ours.generator_lag.merge(&theirs.generator_lag);
        ours.connect.merge(&theirs.connect);
        match (&mut ours.spans, &theirs.spans) {
            (Some(spans), Some(others)) => spans.merge(others),
            (spans @ None, others) => spans.clone_from(others),
            (Some(_), None) => {}
        }
        self.gaps.merge(&other.gaps);
        // Workers read their boundaries within microseconds of each other.
        self.measured_ns = self.measured_ns.max(other.measured_ns);
        self.by_second.merge(&other.by_second);
        self.by_slice.merge(&other.by_slice);
        for (second, theirs) in self.seen.seconds.iter_mut().zip(&other.seen.seconds) {
            second.completed += theirs.completed;
            second.errors += theirs.errors;
            second.bytes += theirs.bytes;
        }
    }

    /// Length of the measured window in nanoseconds; 0 when it never opened.
    pub(crate) fn window_ns(&self) -> u64 {
        self.measured_ns.unwrap_or_else(|| self.window.length())
    }

    /// One entry per second of the window as it was, in time order.
    pub(crate) fn seconds(&self) -> Vec<SecondOfLoad> {
        let length = self.window.length().div_ceil(SECOND) as usize;
        let seconds = self.seen.seconds.iter().take(length).enumerate();
        seconds
            .map(|(index, second)| SecondOfLoad {
                p50_ns: self.by_second.quantile(index, 0.5),
                p99_ns: self.by_second.quantile(index, 0.99),
                max_ns: self.by_second.slices()[index].max_ns,
                ..*second
            })
            .collect()
    }

    /// Median latency of each slice that has one, in time order, nanoseconds.
    pub(crate) fn slice_p50_ns(&self) -> Vec<u64> {
        self.slices_with_latencies()
            .map(|slice| self.by_slice.quantile(slice, 0.5))
            .collect()
    }

    /// The latencies of each of these slices beyond the p99 of all.
    pub(crate) fn slice_tails(&self) -> Vec<SliceTail> {
        let p99 = self.seen.latency.value_at(0.99);
        let tail = |slice: usize| SliceTail {
            samples: self.by_slice.slices()[slice].count,
            beyond: self.by_slice.count_above(slice, p99),
        };
        self.slices_with_latencies().map(tail).collect()
    }

    fn slices_with_latencies(&self) -> impl Iterator<Item = usize> {
        (0..SLICES as usize).filter(|&slice| self.by_slice.slices()[slice].count > 0)
    }
}
