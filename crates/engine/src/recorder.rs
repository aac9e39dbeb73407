//! The accounts of one worker: what was intended, sent, answered, lost.

use std::sync::Arc;

use plumbline_record::{ErrorCounts, Histogram, SecondOfLoad, Spans, ZeroCopyCounts};

use crate::gaps::Gaps;
use crate::progress::LoadProgress;
use crate::timeline::Timeline;
use crate::window::Window;

const SECOND: u64 = 1_000_000_000;
/// Slices of the window for the stationarity check (L-8, L-10).
const SLICES: u64 = 100;

/// What went wrong with a request; see [`ErrorCounts`].
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
#[derive(Debug)]
pub(crate) struct Recorder {
    /// Which driver ran.
    pub(crate) driver: &'static str,
    pub(crate) window: Window,
    pub(crate) planned: u64,
    pub(crate) sent: u64,
    pub(crate) completed: u64,
    pub(crate) censored: u64,
    pub(crate) waited: u64,
    /// Time spent polling without result, nanoseconds.
    pub(crate) spin_ns: u64,
    /// CPU time of the busiest worker without its polling, nanoseconds.
    pub(crate) busy_ns: u64,
    pub(crate) gaps: Gaps,
    /// What the kernel reported about writes without a copy.
    pub(crate) zero_copy: Option<ZeroCopyCounts>,
    pub(crate) errors: ErrorCounts,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    pub(crate) latency: Histogram,
    pub(crate) service_time: Histogram,
    pub(crate) send_lag: Histogram,
    pub(crate) generator_lag: Histogram,
    pub(crate) connect: Histogram,
    /// Where a sample of the requests spent their time; `None` when no stamps
    /// were asked for.
    pub(crate) spans: Option<Box<Spans>>,
    seconds: Vec<SecondOfLoad>,
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
    /// Empty accounts for a window of `length` nanoseconds, which
    /// [`begin`](Self::begin) places in time.
    pub(crate) fn new(length: u64, progress: Option<Arc<LoadProgress>>) -> Self {
        let seconds = length.div_ceil(SECOND).max(1) as usize;
        Self {
            driver: "",
            window: Window::never(),
            planned: 0,
            sent: 0,
            completed: 0,
            censored: 0,
            waited: 0,
            spin_ns: 0,
            busy_ns: 0,
            gaps: Gaps::default(),
            zero_copy: None,
            errors: ErrorCounts::default(),
            bytes_sent: 0,
            bytes_received: 0,
            latency: Histogram::new(),
            service_time: Histogram::new(),
            send_lag: Histogram::new(),
            generator_lag: Histogram::new(),
            connect: Histogram::new(),
            spans: None,
            seconds: vec![SecondOfLoad::default(); seconds],
            by_second: Timeline::new(SECOND, seconds),
            by_slice: Timeline::new(length.div_ceil(SLICES), SLICES as usize),
            totals: WorkerTotals::default(),
            measured_ns: None,
            progress,
        }
    }

    /// Keeps a sample of the gaps between the `expected` requests (L-7).
    pub(crate) fn sampling_gaps(mut self, expected: f64) -> Self {
        self.gaps = Gaps::sampling(expected);
        self
    }

    /// Places the window in time.
    pub(crate) fn begin(&mut self, window: Window) {
        self.window = window;
    }

    /// A request was intended at `intended`.
    #[inline]
    pub(crate) fn planned(&mut self, intended: u64) {
        self.planned += u64::from(self.window.contains(intended));
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
        self.sent += count;
        self.bytes_sent += bytes;
        let lag = sent.saturating_sub(intended);
        let own_lag = sent.saturating_sub(free.max(intended));
        self.send_lag.record_n(lag, count);
        self.generator_lag.record_n(own_lag, count);
        if free > intended {
            self.waited += count;
        }
        let second = self.by_second.index_at(place);
        self.seconds[second].bytes += bytes;
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
        self.completed += 1;
        self.bytes_received += bytes;
        self.service_time.record(received.saturating_sub(sent));
        let second = self.observe(place, received.saturating_sub(intended));
        self.seconds[second].completed += 1;
        self.seconds[second].bytes += bytes;
    }

    /// A request got an error instead of an answer.
    pub(crate) fn failed(&mut self, intended: u64, failure: RequestFailure) {
        self.totals.errors += 1;
        let Some(place) = self.window.place(intended) else {
            return;
        };
        let errors = &mut self.errors;
        *match failure {
            RequestFailure::Connect => &mut errors.connect,
            RequestFailure::Closed => &mut errors.closed,
            RequestFailure::Corrupt => &mut errors.corrupt,
            RequestFailure::Protocol => &mut errors.protocol,
            RequestFailure::Send => &mut errors.send,
        } += 1;
        let second = self.by_second.index_at(place);
        self.seconds[second].errors += 1;
    }

    /// Waiting for an answer ended at `now` without one: it is recorded as at
    /// least that late (L-3). `sent` is `None` for a request that never found a
    /// connection; its send lag is at least that long, too.
    pub(crate) fn censored(&mut self, intended: u64, sent: Option<u64>, now: u64) {
        let Some(place) = self.window.place(intended) else {
            return;
        };
        self.censored += 1;
        self.observe(place, now.saturating_sub(intended));
        match sent {
            Some(sent) => self.service_time.record(now.saturating_sub(sent)),
            None => {
                self.waited += 1;
                self.send_lag.record(now.saturating_sub(intended));
            }
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
            self.connect.record(ns);
        }
    }

    /// A byte stream carried `bytes` in the `length` nanoseconds between its last
    /// two readings, in the second that `at` falls into.
    pub(crate) fn carried(&mut self, at: u64, length: u64, bytes: u64) {
        let second = self.by_second.index_at(self.window.recorded_before(at));
        self.seconds[second].bytes += bytes;
        self.bytes_sent += bytes;
        *self.measured_ns.get_or_insert(0) += length;
    }

    /// The kernel accepted `count` unanswered messages.
    #[inline]
    pub(crate) fn taken(&mut self, count: u64, intended: u64) {
        self.totals.completed += count;
        if let Some(place) = self.window.place(intended) {
            self.completed += count;
            let second = self.by_second.index_at(place);
            self.seconds[second].completed += count;
        }
    }

    #[inline]
    fn observe(&mut self, place: u64, latency: u64) -> usize {
        self.latency.record(latency);
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
        self.sent += u64::from(self.window.contains(now));
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
        self.planned += other.planned;
        self.sent += other.sent;
        self.completed += other.completed;
        self.censored += other.censored;
        self.waited += other.waited;
        self.spin_ns += other.spin_ns;
        self.busy_ns = self.busy_ns.max(other.busy_ns);
        self.gaps.merge(&other.gaps);
        self.errors.add(&other.errors);
        if let Some(theirs) = other.zero_copy {
            let ours = self.zero_copy.get_or_insert_default();
            ours.told += theirs.told;
            ours.copied += theirs.copied;
        }
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.latency.merge(&other.latency);
        self.service_time.merge(&other.service_time);
        self.send_lag.merge(&other.send_lag);
        self.generator_lag.merge(&other.generator_lag);
        self.connect.merge(&other.connect);
        match (&mut self.spans, &other.spans) {
            (Some(spans), Some(others)) => spans.merge(others),
            (spans @ None, others) => spans.clone_from(others),
            (Some(_), None) => {}
        }
        // Workers read their boundaries within microseconds of each other.
        self.measured_ns = self.measured_ns.max(other.measured_ns);
        self.by_second.merge(&other.by_second);
        self.by_slice.merge(&other.by_slice);
        for (second, theirs) in self.seconds.iter_mut().zip(&other.seconds) {
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
        let seconds = self.seconds.iter().take(length).enumerate();
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
        (0..SLICES as usize)
            .filter(|&slice| self.by_slice.slices()[slice].count > 0)
            .map(|slice| self.by_slice.quantile(slice, 0.5))
            .collect()
    }
}
