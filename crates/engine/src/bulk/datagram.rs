//! `datagram`: unanswered messages, at a rate or as fast as possible.

use std::io;
use std::net::{IpAddr, SocketAddr};

use plumbline_experiment::Arrival;
use plumbline_sys::clock::now_ns;
use plumbline_sys::socket::{Messages, Socket};

use crate::driver::{Driver, Event, WatchMode};
use crate::event_loop::LoadClient;
use crate::pattern::{Pattern, PayloadDirection};
use crate::plan::source;
use crate::recorder::{Recorder, RequestFailure};
use crate::{EngineError, LoadPlan};

/// Messages per system call.
const BATCH: usize = 64;
/// Batches sent before the clock and the sockets are looked at again.
const TURN: usize = 4;
/// Bytes of a message before its content.
const HEAD: usize = 16;
/// Bytes of a number: enough for 10 million a second during a whole day.
const SEQ_BYTES: usize = 5;
/// Marks our messages where there is no secret.
const MAGIC: [u8; 3] = *b"plb";
/// Bytes asked for as send buffer; the kernel may give less.
const BUFFER: usize = 4 << 20;
/// Bytes of the headers of UDP and of IPv4 or IPv6, without options.
const HEADERS_V4: usize = 28;
const HEADERS_V6: usize = 48;

/// The head of a message: its number, the socket that it came from, and whether
/// it belongs to the measured window. The receiver counts only those that do,
/// whatever its own clock says (N-13). The session distinguishes one load from
/// the next, which starts its numbers again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MeterMessage {
    pub(crate) seq: u64,
    pub(crate) flow: u16,
    pub(crate) session: u16,
    pub(crate) measured: bool,
}

impl MeterMessage {
    /// Writes the message over `bytes`, at least 16 of them.
    pub(crate) fn write(self, pattern: &Pattern, bytes: &mut [u8]) {
        let (high, low) = marks(pattern);
        bytes[..8].copy_from_slice(&self.seq.to_le_bytes());
        bytes[SEQ_BYTES..8].copy_from_slice(&high);
        bytes[8..10].copy_from_slice(&self.flow.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.session.to_le_bytes());
        bytes[12] = u8::from(self.measured);
        bytes[13..HEAD].copy_from_slice(&low);
        let length = bytes.len() - HEAD;
        bytes[HEAD..].copy_from_slice(pattern.content(self.seq, 0, length));
    }

    /// Reads a message and checks its content; `None` when it is not one of
    /// ours, truncated or corrupt.
    pub(crate) fn read(pattern: &Pattern, bytes: &[u8], size: usize) -> Option<Self> {
        if bytes.len() != size || !Self::is_marked(pattern, bytes) || bytes[12] > 1 {
            return None;
        }
        let mut seq = [0; 8];
        seq[..SEQ_BYTES].copy_from_slice(&bytes[..SEQ_BYTES]);
        let message = Self {
            seq: u64::from_le_bytes(seq),
            flow: u16::from_le_bytes(bytes[8..10].try_into().ok()?),
            session: u16::from_le_bytes(bytes[10..12].try_into().ok()?),
            measured: bytes[12] == 1,
        };
        let content = pattern.content(message.seq, 0, size - HEAD);
        (bytes[HEAD..] == *content).then_some(message)
    }

    /// Whether bytes carry the mark of our messages, in which the secret is, if there
    /// is one.
    pub(crate) fn is_marked(pattern: &Pattern, bytes: &[u8]) -> bool {
        let (high, low) = marks(pattern);
        bytes.len() >= HEAD && bytes[SEQ_BYTES..8] == high && bytes[13..HEAD] == low
    }
}

/// The bytes above a number, and those that end a head.
fn marks(pattern: &Pattern) -> ([u8; 3], [u8; 3]) {
    match pattern.mark() {
        None => ([0; 3], MAGIC),
        Some([a, b, c, d, e, f]) => ([a, b, c], [d, e, f]),
    }
}

/// Trains are cut into packets, so each message must fit into one.
fn check_fit(size: usize, mtu: usize, target: SocketAddr) -> Result<(), EngineError> {
    let headers = if target.is_ipv4() {
        HEADERS_V4
    } else {
        HEADERS_V6
    };
    let most = mtu.saturating_sub(headers);
    if size <= most {
        return Ok(());
    }
    Err(EngineError::Plan(format!(
        "messages of {size} bytes do not fit into the packets of this path, whose MTU is {mtu}, so the kernel cannot send them in trains; use at most {most} bytes, or leave trains out"
    )))
}

/// One socket and the numbers of its next messages, warm-up and measured.
#[derive(Clone, Copy, Debug, Default)]
struct DatagramSocket {
    next: [u64; 2],
    full: bool,
}

/// The sending side of `datagram`.
pub(crate) struct Datagrams {
    target: SocketAddr,
    size: usize,
    closed: bool,
    /// Number of the first flow; the others follow.
    first_flow: u16,
    session: u16,
    /// Most messages that are handed to the kernel as one train; 1 sends each
    /// as its own packet.
    train: usize,
    sources: Vec<IpAddr>,
    lines: Vec<DatagramSocket>,
    /// The socket that the batch at hand goes out on.
    current: usize,
    batch: Messages,
    /// Intended times of the batch, and how many of it are out.
    intended: Vec<u64>,
    gone: usize,
    pattern: Pattern,
    recorder: Recorder,
    /// When room in the sockets last appeared.
    free_since: u64,
    /// The end of the slice that the load is in; 0 before the first.
    until: u64,
}

impl Datagrams {
    /// A worker's share of the flows of a plan.
    pub(crate) fn new(plan: &LoadPlan, flows: std::ops::Range<u16>, recorder: Recorder) -> Self {
        let size = plan.workload.request_size as usize;
        Self {
            target: plan.target,
            size,
            closed: plan.workload.arrival == Arrival::Closed,
            first_flow: flows.start,
            // Any number that the last load is unlikely to have had.
            session: (now_ns().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as u16,
            train: plan.train() as usize,
            sources: plan.sources.clone(),
            lines: vec![DatagramSocket::default(); flows.len()],
            current: 0,
            batch: Messages::new(BATCH, size),
            intended: Vec::with_capacity(BATCH),
            gone: 0,
            pattern: Pattern::new(PayloadDirection::Request, size, plan.secret),
            recorder,
            free_since: 0,
            until: 0,
        }
    }

    fn push(&mut self, intended: u64) {
        let measured = self.recorder.window.contains(intended);
        let next = &mut self.lines[self.current].next[usize::from(measured)];
        let message = MeterMessage {
            seq: *next,
            flow: self.first_flow + self.current as u16,
            session: self.session,
            measured,
        };
        *next += 1;
        message.write(&self.pattern, self.batch.push(self.size));
        self.intended.push(intended);
    }

    /// Sends what is in the batch; true when all of it is out and the next
    /// batch can begin, on the next socket.
    fn send<D: Driver>(&mut self, io: &mut D) -> bool {
        while self.gone < self.batch.len() {
            let Some(socket) = io.socket(self.current) else {
                return false;
            };
            let train = self.train.min(self.batch.len() - self.gone);
            let begun = now_ns();
            let outcome = if train > 1 {
                socket.send_train(&self.batch, self.gone, train)
            } else {
                socket.send_messages(&mut self.batch, self.gone)
            };
            match outcome {
                Ok(count) => self.book(count, begun, now_ns()),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.lines[self.current].full = true;
                    return false;
                }
                Err(_) => {
                    // A train is refused as a whole.
                    for _ in 0..train {
                        let intended = self.intended[self.gone];
                        self.recorder.failed(intended, RequestFailure::Send);
                        self.gone += 1;
                    }
                }
            }
        }
        self.batch.clear();
        self.intended.clear();
        self.gone = 0;
        self.current = (self.current + 1) % self.lines.len();
        true
    }

    /// Books the next `count` messages of the batch as out, by a call from `begun`
    /// to `ended`. As with requests, a message is sent when its send begins: the
    /// call carries it through the stack, over a veth to the receiver's socket, and
    /// that is the network's time and not the generator's. Those after the first
    /// have waited for the ones before, each for its share of the call.
    fn book(&mut self, count: usize, begun: u64, ended: u64) {
        let mut left = &self.intended[self.gone..self.gone + count];
        let took = ended - begun;
        while let [intended, ..] = *left {
            // Without a rate, all of a batch are due at once.
            let same = left.iter().take_while(|&&it| it == intended).count();
            // Dated as the last of them.
            let ahead = count - left.len() + same - 1;
            let sent = begun + took * ahead as u64 / count as u64;
            left = &left[same..];
            let (same, size) = (same as u64, self.size as u64);
            self.recorder
                .sent_many(same, intended, sent, self.free_since, size);
            self.recorder.taken(same, intended);
        }
        self.gone += count;
    }
}

impl<D: Driver> LoadClient<D> for Datagrams {
    fn prepare(&mut self, io: &mut D, _: u64) -> Result<bool, EngineError> {
        for slot in 0..self.lines.len() {
            let from = source(&self.sources, slot);
            let lines = self.lines.len() as u64;
            let failed = |e| EngineError::connect(self.target, lines, e);
            let socket = Socket::connect_udp(self.target, from).map_err(failed)?;
            if self.train > 1 {
                let mtu = socket.path_mtu();
                let mtu = mtu.map_err(EngineError::system("reading the path's MTU"))?;
                check_fit(self.size, mtu, self.target)?;
            }
            // A refusal is harmless: the buffer then has its default size.
            let _ = socket.set_buffers(BUFFER, BUFFER);
            io.insert(slot, socket, WatchMode::Sink).map_err(failed)?;
        }
        Ok(true)
    }

    fn begin(&mut self) {
        self.free_since = self.recorder.window.start();
    }

    fn slice_begins(&mut self, _: &mut D, until: u64) {
        self.until = until;
    }

    fn dispatch(&mut self, io: &mut D, intended: u64) -> bool {
        if self.batch.is_full() && (self.lines[self.current].full || !self.send(io)) {
            return false;
        }
        self.push(intended);
        true
    }

    fn flush(&mut self, io: &mut D, now: u64) -> bool {
        if self.lines[self.current].full {
            return false;
        }
        if !self.closed {
            self.send(io);
            return false;
        }
        let mut now = now;
        for _ in 0..TURN {
            if self.batch.is_empty() {
                if now >= self.until {
                    return false;
                }
                while !self.batch.is_full() {
                    self.recorder.planned(now);
                    self.push(now);
                }
            }
            if !self.send(io) {
                return false;
            }
            now = now_ns();
        }
        true
    }

    fn event(&mut self, io: &mut D, event: Event) {
        if event.hangup
            && let Some(socket) = io.socket(event.slot)
        {
            // No one listens there: an earlier message was answered by ICMP.
            // Reading the error off the socket lets the next message go out.
            let _ = socket.take_error();
            self.recorder.failed(now_ns(), RequestFailure::Send);
        }
        if event.writable && std::mem::take(&mut self.lines[event.slot].full) {
            self.free_since = now_ns();
        }
    }

    fn busy(&self) -> bool {
        !self.batch.is_empty()
    }

    fn end(&mut self, _: &mut D, now: u64) {
        for &intended in &self.intended[self.gone..] {
            self.recorder.censored(intended, None, now);
        }
    }

    fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    fn finish(self) -> Recorder {
        self.recorder
    }
}

#[cfg(test)]
mod tests {
    use plumbline_experiment::{Workload, WorkloadKind};

    use super::*;
    use crate::window::whole;

    #[test]
    fn a_message_is_sent_when_its_send_begins_and_waits_for_those_before_it() {
        const START: u64 = 1_000_000;
        let mut recorder = Recorder::new(1_000_000_000, None);
        recorder.window = whole(START, 1_000_000_000, 1_000_000_000);
        let target = SocketAddr::from(([127, 0, 0, 1], 9));
        let workload = Workload {
            request_size: 64,
            arrival: Arrival::Constant { rate: 1.0 },
            ..Workload::of_kind(WorkloadKind::Datagram)
        };
        let plan = LoadPlan::new(workload, target);
        let mut datagrams = Datagrams::new(&plan, 0..1, recorder);
        for intended in [0, 100, 100, 250] {
            datagrams.push(START + intended);
        }
        // One call of 400 ns, a quarter of it for each.
        datagrams.book(4, START + 300, START + 700);
        let lag = &datagrams.recorder.seen.generator_lag;
        let (first, pair, last) = (300, 500 - 100, 600 - 250);
        assert_eq!((lag.len(), lag.max()), (4, pair));
        assert_eq!(lag.count_at_or_below(first), 1);
        assert_eq!(lag.count_at_or_below(last), 2);
        assert_eq!(datagrams.gone, 4);
    }

    #[test]
    fn only_what_fits_into_a_packet_goes_in_trains() {
        let v4 = SocketAddr::from(([127, 0, 0, 1], 9));
        let v6 = "[::1]:9".parse().unwrap();
        assert!(check_fit(1_472, 1_500, v4).is_ok());
        assert!(check_fit(1_452, 1_500, v6).is_ok());
        assert!(check_fit(1_453, 1_500, v6).is_err());
        let text = check_fit(1_473, 1_500, v4).unwrap_err().to_string();
        assert!(text.contains("at most 1472 bytes"), "{text}");
    }
}
