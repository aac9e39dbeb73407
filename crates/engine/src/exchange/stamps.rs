//! Where a latency comes from: kernel time stamps on a sample of the requests
//! (L-17).
//!
//! A request is chosen at random and sent with a request for stamps, and its
//! answer is read with the stamp of its arrival. Each line has one sampled
//! request out at a time. Over a device without a queue, both stamps of a send
//! are available when the call returns; they are read at once, because a socket
//! with something on its error queue never lets a poller sleep.

mod split;

use std::io;

use plumbline_record::Spans;
use plumbline_sys::clock::ClockPair;
use plumbline_sys::socket::{Departure, Socket};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::driver::Driver;
use crate::window::Window;
use split::{Passage, split};

/// How long until a sampled request is given up, so that its line can be
/// sampled again.
const ANSWER_LIMIT_NS: u64 = 1_000_000_000;

/// The sample of one worker.
#[derive(Debug)]
pub(super) struct Stamps {
    chooser: Chooser,
    lines: Vec<LineStamps>,
    /// Bytes are counted, not messages.
    stream: bool,
    /// When the answer just read had arrived, by the wall clock.
    arrival: Option<u64>,
    answered: Option<SampledAnswer>,
    spans: Box<Spans>,
}

/// The stamps of one line.
#[derive(Clone, Copy, Debug, Default)]
struct LineStamps {
    /// What the kernel has counted: bytes of a stream, stamped datagrams.
    count: u32,
    sample: Option<SampledRequest>,
}

/// A sampled request that is out.
#[derive(Clone, Copy, Debug)]
struct SampledRequest {
    seq: u64,
    intended: u64,
    chosen: u64,
    /// The kernel's identifier for it.
    id: Option<u32>,
    /// Went out in more than one write.
    parted: bool,
    queued: Option<u64>,
    sent: Option<u64>,
    departure: ClockPair,
}

/// Its answer.
#[derive(Clone, Copy, Debug)]
struct SampledAnswer {
    slot: usize,
    sent: u64,
    received: u64,
    good: bool,
    /// The same call read more after it.
    followed: bool,
}

impl Stamps {
    /// Stamps for `share` of the requests over `lines` lines; a worker's
    /// choice follows from `seed` and its `index`.
    pub(super) fn new(share: f64, lines: usize, stream: bool, seed: u64, index: usize) -> Self {
        Self {
            chooser: Chooser::new(share, seed, index),
            lines: vec![LineStamps::default(); lines],
            stream,
            arrival: None,
            answered: None,
            spans: Box::new(Spans {
                share,
                ..Spans::default()
            }),
        }
    }

    /// A line has a new connection.
    pub(super) fn opened(&mut self, slot: usize, socket: Option<&Socket>) -> io::Result<()> {
        self.lines[slot].count = 0;
        socket.map_or(Ok(()), Socket::enable_stamps)
    }

    /// Bytes went out on a line that belong to no request.
    pub(super) fn passed(&mut self, slot: usize, length: usize) {
        let count = &mut self.lines[slot].count;
        *count = count.wrapping_add(length as u32);
    }

    /// A line's connection is gone, and its request with it.
    pub(super) fn closed(&mut self, slot: usize, window: &Window) {
        if let Some(sample) = self.lines[slot].sample.take() {
            self.spans.unanswered += u64::from(window.contains(sample.intended));
        }
    }

    /// Request `seq` is about to be sent. When the line's last sampled request
    /// is still out, the choice passes to the next request.
    #[inline]
    pub(super) fn consider(&mut self, slot: usize, seq: u64, intended: u64, now: u64, of: &Window) {
        if !self.chooser.is_due() {
            return;
        }
        if let Some(sample) = self.lines[slot].sample
            && sample.chosen + ANSWER_LIMIT_NS > now
        {
            return;
        }
        self.closed(slot, of);
        self.chooser.draw();
        self.lines[slot].sample = Some(SampledRequest {
            seq,
            intended,
            chosen: now,
            id: None,
            parted: false,
            queued: None,
            sent: None,
            departure: ClockPair::default(),
        });
    }

    /// Sends bytes of request `seq`, of `length` bytes in all, from its byte
    /// `from` on.
    #[inline]
    pub(super) fn send<D: Driver>(
        &mut self,
        io: &mut D,
        slot: usize,
        bytes: &[u8],
        (seq, from, length): (u64, usize, usize),
    ) -> io::Result<usize> {
        let LineStamps { count, sample } = &mut self.lines[slot];
        let Some(sample) = sample.as_mut().filter(|it| it.seq == seq && from == 0) else {
            let taken = io.send(slot, bytes)?;
            if self.stream {
                *count = count.wrapping_add(taken as u32);
            }
            return Ok(taken);
        };
        let socket = io.socket(slot).ok_or(io::ErrorKind::NotConnected)?;
        let taken = socket.send_stamped(bytes)?;
        sample.departure = ClockPair::now();
        sample.parted = taken < length;
        // A request in a stream is identified by its last byte, a datagram by
        // the number stamped before it.
        *count = count.wrapping_add(if self.stream { taken as u32 } else { 1 });
        sample.id = Some(count.wrapping_sub(1));
        sample.collect(socket);
        Ok(taken)
    }

    /// Takes stamps off a line's error queue: those of its request, and what
    /// is left of one that was given up.
    pub(super) fn collect<D: Driver>(&mut self, io: &D, slot: usize) {
        let Some(socket) = io.socket(slot) else {
            return;
        };
        match &mut self.lines[slot].sample {
            Some(sample) => sample.collect(socket),
            None => while let Ok(Some(_)) = socket.send_stamp() {},
        }
    }

    /// Whether what arrives on a line may answer a sampled request.
    #[inline]
    pub(super) fn awaits(&self, slot: usize) -> bool {
        self.lines[slot].sample.is_some()
    }

    /// When the bytes just read had arrived.
    pub(super) fn arrived(&mut self, at: Option<u64>) {
        self.arrival = at;
    }

    /// A request was answered.
    #[inline]
    pub(super) fn answered(&mut self, slot: usize, seq: u64, sent: u64, received: u64, good: bool) {
        if self.lines[slot].sample.is_some_and(|it| it.seq == seq) {
            self.answered = Some(SampledAnswer {
                slot,
                sent,
                received,
                good,
                followed: false,
            });
        }
    }

    /// The same call read more than the last answer.
    #[inline]
    pub(super) fn followed(&mut self) {
        if let Some(answered) = &mut self.answered {
            answered.followed = true;
        }
    }

    /// All that was read has been examined: books the sampled request if it was
    /// answered.
    pub(super) fn settle<D: Driver>(&mut self, io: &D, window: &Window) {
        let Some(answered) = self.answered.take() else {
            return;
        };
        let line = &mut self.lines[answered.slot];
        let Some(mut sample) = line.sample.take() else {
            return;
        };
        if let Some(socket) = io.socket(answered.slot)
            && sample.sent.is_none()
        {
            // It had to wait in a queue of the device.
            sample.collect(socket);
        }
        if window.contains(sample.intended) {
            self.book(&sample, answered);
        }
    }

    fn book(&mut self, sample: &SampledRequest, answered: SampledAnswer) {
        let spans = &mut self.spans;
        if !answered.good {
            spans.unanswered += 1;
            return;
        }
        let (Some(queued), Some(handed), Some(arrived)) =
            (sample.queued, sample.sent, self.arrival)
        else {
            spans.unstamped += 1;
            return;
        };
        if sample.parted || answered.followed {
            spans.shared += 1;
            return;
        }
        let passage = Passage {
            sent: answered.sent,
            queued,
            handed,
            arrived,
            received: answered.received,
            departure: sample.departure,
            arrival: ClockPair::now(),
        };
        let Some(cut) = split(&passage) else {
            spans.clock_set += 1;
            return;
        };
        spans.complete += 1;
        spans.protocol.record(cut.protocol);
        spans.queue.record(cut.queue);
        spans.network_and_server.record(cut.network_and_server);
        spans.wake_up.record(cut.wake_up);
        spans.service_time.record(answered.received - answered.sent);
        spans.clock_error.record(cut.error);
    }

    /// Gives up sampled requests that are still out, and returns the accounts.
    pub(super) fn end(mut self, window: &Window) -> Box<Spans> {
        for slot in 0..self.lines.len() {
            self.closed(slot, window);
        }
        self.spans
    }
}

impl SampledRequest {
    /// Reads the available stamps. Where several devices are stacked, the
    /// earliest queue stamp and the latest device stamp count.
    fn collect(&mut self, socket: &Socket) {
        // An error here breaks the connection at its next use, and is counted
        // there.
        while let Ok(Some(stamp)) = socket.send_stamp() {
            if self.id != Some(stamp.id) {
                continue;
            }
            match stamp.at {
                Departure::Queued => self.queued = self.queued.or(Some(stamp.realtime_ns)),
                Departure::Sent => self.sent = Some(stamp.realtime_ns),
            }
        }
    }
}

/// Chooses each request with the same probability, whatever was chosen before:
/// taking every hundredth would fall into step with connections and bursts.
#[derive(Debug)]
struct Chooser {
    /// Logarithm of the probability that a request is not chosen.
    log_not: f64,
    /// Requests to skip before the next choice.
    skip: u64,
    random: Box<ChaCha8Rng>,
}

impl Chooser {
    fn new(share: f64, seed: u64, index: usize) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        // A different random stream from the arrivals of any worker.
        random.set_stream(u64::MAX - index as u64);
        let mut chooser = Self {
            log_not: (-share).ln_1p(),
            skip: 0,
            random: Box::new(random),
        };
        chooser.draw();
        chooser
    }

    /// Whether this request is chosen.
    #[inline]
    fn is_due(&mut self) -> bool {
        let due = self.skip == 0;
        self.skip = self.skip.saturating_sub(1);
        due
    }

    /// Draws how many requests to skip: geometric.
    fn draw(&mut self) {
        // 53 random bits make a uniform number in (0, 1].
        let uniform = ((self.random.next_u64() >> 11) + 1) as f64 * (-53_f64).exp2();
        // A share of 1 has an infinite divisor, and skips none.
        self.skip = (uniform.ln() / self.log_not) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chooser_keeps_its_share_without_a_rhythm() {
        for share in [0.01, 0.3, 1.0] {
            let mut chooser = Chooser::new(share, 7, 0);
            let mut gaps = Vec::new();
            let mut gap = 0;
            for _ in 0..200_000 {
                gap += 1;
                if chooser.is_due() {
                    chooser.draw();
                    gaps.push(gap);
                    gap = 0;
                }
            }
            let got = gaps.len() as f64 / 200_000.0;
            // Four standard deviations of a binomial count.
            let margin = 4.0 * (share * (1.0 - share) / 200_000.0).sqrt();
            assert!((got - share).abs() <= margin, "{got} of {share}");
            let distinct: std::collections::BTreeSet<_> = gaps.iter().collect();
            assert_eq!(distinct.len() > 1, share < 1.0);
        }
    }
}
