//! `stream`: as many bytes as the path carries, from client to server.
//!
//! The sender reports the bytes that the *receiver's kernel* acknowledged
//! between the window's boundaries (`tcpi_bytes_acked`), not those that its own
//! kernel took: those may still sit in the send buffer. The receiver's own
//! count is over its whole life.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;

use plumbline_experiment::CongestionControl;
use plumbline_sys::clock::now_ns;
use plumbline_sys::socket::Socket;

use super::backlog::Backlog;
use super::zero_copy::ZeroCopy;
use crate::driver::{Driver, Event, WatchMode};
use crate::event_loop::LoadClient;
use crate::pattern::{Pattern, PayloadDirection};
use crate::plan::{controlled, source};
use crate::recorder::{Recorder, RequestFailure};
use crate::secret::{Secret, show};
use crate::{EngineError, LoadPlan};

/// The content repeats after so many bytes. A prime, so that no alignment of
/// reads or writes hides a slip.
pub(crate) const PERIOD: usize = 65_521;
/// Bytes offered to the kernel at once.
const WRITE: usize = 128 << 10;
/// Writes to a connection before others get their turn.
const TURN: usize = 4;
/// How long the connections may take to open.
const CONNECT_LIMIT_NS: u64 = 5_000_000_000;
/// Pause before a broken connection is opened again.
const RETRY_NS: u64 = 10_000_000;
const SECOND: u64 = 1_000_000_000;

/// The content of a stream from any place within [`PERIOD`] on. Kept to the end
/// of the process: the kernel may still read from it when the load has ended.
fn content() -> &'static [u8] {
    static CONTENT: OnceLock<Vec<u8>> = OnceLock::new();
    CONTENT.get_or_init(|| {
        let pattern = Pattern::new(PayloadDirection::Request, PERIOD, None);
        let period = pattern.content(0, 0, PERIOD).iter().copied();
        period.cycle().take(PERIOD + WRITE).collect()
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamState {
    Unopened,
    Connecting,
    /// The kernel accepts bytes, as far as we know.
    Ready,
    /// The send buffer is full.
    Full,
    Down,
}

#[derive(Clone, Copy, Debug)]
struct StreamConnection {
    state: StreamState,
    since: u64,
    /// Bytes that the kernel has taken on this connection.
    position: u64,
}

/// The sending side of `stream`.
pub(crate) struct Stream {
    target: SocketAddr,
    sources: Vec<IpAddr>,
    congestion: Option<CongestionControl>,
    lines: Vec<StreamConnection>,
    content: &'static [u8],
    /// Present when the kernel is to send from this program's own pages
    /// (`MSG_ZEROCOPY`).
    zero_copy: Option<ZeroCopy>,
    secret: Option<Secret>,
    recorder: Recorder,
    running: bool,
    started: u64,
    fatal: Option<io::Error>,
    /// Bytes acknowledged on connections that are gone.
    gone: u64,
    /// When the last mark within a recorded part was taken, and the bytes acknowledged
    /// then; `None` outside of such parts.
    mark: Option<(u64, u64)>,
    /// When the next one is due.
    next_mark: u64,
    /// The end of the slice that the load is in; 0 before the first.
    until: u64,
    backlog: Backlog,
}

impl Stream {
    /// A worker's share of the connections of a plan.
    pub(crate) fn new(plan: &LoadPlan, lines: usize, recorder: Recorder) -> Self {
        let line = StreamConnection {
            state: StreamState::Unopened,
            since: 0,
            position: 0,
        };
        Self {
            target: plan.target,
            sources: plan.sources.clone(),
            congestion: plan.congestion,
            lines: vec![line; lines],
            content: content(),
            zero_copy: plan.workload.zero_copy.then(|| ZeroCopy::new(lines)),
            secret: plan.secret,
            recorder,
            running: false,
            started: 0,
            fatal: None,
            gone: 0,
            mark: None,
            next_mark: u64::MAX,
            until: 0,
            backlog: Backlog::default(),
        }
    }

    fn open(&self, slot: usize) -> io::Result<Socket> {
        let socket = Socket::connect_tcp(self.target, source(&self.sources, slot))?;
        let socket = controlled(socket, self.congestion)?;
        if self.zero_copy.is_some() {
            socket.allow_zero_copy()?;
        }
        Ok(socket)
    }

    fn connect<D: Driver>(&mut self, io: &mut D, slot: usize, now: u64) {
        let made = self
            .open(slot)
            .and_then(|socket| io.insert(slot, socket, WatchMode::Stream));
        self.lines[slot] = StreamConnection {
            state: StreamState::Connecting,
            since: now,
            position: 0,
        };
        if let Err(e) = made {
            self.not_connected(io, slot, e, now);
        }
    }

    fn connected<D: Driver>(&mut self, io: &mut D, slot: usize, now: u64) {
        let outcome = match io.socket(slot) {
            Some(socket) => socket.take_error(),
            None => return,
        };
        match outcome {
            Ok(None) => {
                if let Err(e) = show(io, slot, self.secret) {
                    return self.not_connected(io, slot, e, now);
                }
                let took = now - self.lines[slot].since;
                self.recorder.connected(took, None, now);
                self.lines[slot].state = StreamState::Ready;
            }
            Ok(Some(e)) | Err(e) => self.not_connected(io, slot, e, now),
        }
    }

    fn not_connected<D: Driver>(&mut self, io: &mut D, slot: usize, error: io::Error, now: u64) {
        if !self.running {
            self.fatal = Some(error);
        }
        self.break_line(io, slot, RequestFailure::Connect, now);
    }

    fn break_line<D: Driver>(
        &mut self,
        io: &mut D,
        slot: usize,
        failure: RequestFailure,
        now: u64,
    ) {
        self.recorder.failed(now, failure);
        self.gone += acked(io, slot);
        io.remove(slot);
        if let Some(zero_copy) = &mut self.zero_copy {
            zero_copy.forget(slot);
        }
        self.lines[slot].state = StreamState::Down;
        self.lines[slot].since = now;
    }

    /// Writes a few times; a full send buffer ends the turn.
    fn write<D: Driver>(&mut self, io: &mut D, slot: usize) {
        for _ in 0..TURN {
            let from = (self.lines[slot].position % PERIOD as u64) as usize;
            match self.offer(io, slot, &self.content[from..from + WRITE]) {
                Ok(taken) => {
                    self.lines[slot].position += taken as u64;
                    let now = now_ns();
                    self.recorder.wrote(now, taken as u64);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.lines[slot].state = StreamState::Full;
                    return;
                }
                Err(_) => return self.break_line(io, slot, RequestFailure::Closed, now_ns()),
            }
        }
    }

    fn offer<D: Driver>(
        &mut self,
        io: &mut D,
        slot: usize,
        bytes: &'static [u8],
    ) -> io::Result<usize> {
        match (&mut self.zero_copy, io.socket(slot)) {
            (Some(zero_copy), Some(socket)) => zero_copy.send(socket, slot, bytes),
            _ => io.send(slot, bytes),
        }
    }

    /// Whether a connection that is reported as failed only has notices about
    /// writes without a copy. They are taken.
    fn only_notices<D: Driver>(&mut self, io: &D, slot: usize) -> bool {
        let (Some(zero_copy), Some(socket)) = (&mut self.zero_copy, io.socket(slot)) else {
            return false;
        };
        zero_copy.collect(socket, slot);
        let is_sound = matches!(socket.take_error(), Ok(None));
        is_sound && socket.tcp_info().is_ok_and(|info| info.established)
    }

    /// Bytes acknowledged on all connections.
    fn acked<D: Driver>(&self, io: &D) -> u64 {
        self.gone + (0..self.lines.len()).map(|s| acked(io, s)).sum::<u64>()
    }

    /// Bytes that were written and are not acknowledged.
    fn queued<D: Driver>(&self, io: &D) -> u64 {
        let is_up =
            |line: &StreamConnection| matches!(line.state, StreamState::Ready | StreamState::Full);
        let lines = self.lines.iter().enumerate();
        let up = lines.filter(|(_, line)| is_up(line));
        let queued = up.map(|(slot, line)| line.position.saturating_sub(acked(io, slot)));
        queued.sum()
    }

    /// Books the bytes acknowledged since the last mark; those of the second that ends
    /// at `boundary`.
    fn mark<D: Driver>(&mut self, io: &D, now: u64, boundary: u64) {
        let total = self.acked(io);
        if let Some((then, marked)) = self.mark.replace((now, total)) {
            self.recorder
                .carried(boundary - 1, now - then, total - marked);
        }
        self.next_mark = boundary + SECOND;
    }
}

/// Bytes that the other side's kernel has acknowledged on a connection.
fn acked<D: Driver>(io: &D, slot: usize) -> u64 {
    let info = io.socket(slot).and_then(|socket| socket.tcp_info().ok());
    info.unwrap_or_default().bytes_acked
}

impl<D: Driver> LoadClient<D> for Stream {
    fn prepare(&mut self, io: &mut D, now: u64) -> Result<bool, EngineError> {
        if self.started == 0 {
            self.started = now;
            for slot in 0..self.lines.len() {
                self.connect(io, slot, now);
            }
        }
        let open = self
            .lines
            .iter()
            .all(|line| line.state == StreamState::Ready);
        if !open && now - self.started > CONNECT_LIMIT_NS {
            self.fatal = Some(io::ErrorKind::TimedOut.into());
        }
        match self.fatal.take() {
            Some(e) => {
                let lines = self.lines.len() as u64;
                Err(EngineError::connect(self.target, lines, e))
            }
            None => Ok(open),
        }
    }

    fn begin(&mut self) {
        self.running = true;
    }

    fn slice_begins(&mut self, io: &mut D, until: u64) {
        self.until = until;
        self.backlog.begins(now_ns(), self.acked(io));
    }

    fn recording_begins(&mut self, io: &mut D, at: u64) {
        self.mark(io, now_ns(), at);
    }

    fn recording_ends(&mut self, io: &mut D, at: u64) {
        if self.mark.is_some() {
            self.mark(io, now_ns(), at);
        }
        self.mark = None;
        self.next_mark = u64::MAX;
    }

    fn dispatch(&mut self, _: &mut D, _: u64) -> bool {
        // Bulk has no schedule.
        false
    }

    fn flush(&mut self, io: &mut D, now: u64) -> bool {
        if now >= self.next_mark {
            self.mark(io, now, self.next_mark);
        }
        if now >= self.until {
            if self.backlog.is_in_slice() {
                self.backlog.ends(now, self.acked(io));
            }
            return false;
        }
        if self.backlog.is_due(now) {
            self.backlog.look(now, self.queued(io), self.until - now);
        }
        if self.backlog.is_enough() {
            return false;
        }
        let mut more = false;
        for slot in 0..self.lines.len() {
            if self.lines[slot].state == StreamState::Ready {
                self.write(io, slot);
                more |= self.lines[slot].state == StreamState::Ready;
            }
        }
        more
    }

    fn event(&mut self, io: &mut D, event: Event) {
        let slot = event.slot;
        let state = self.lines[slot].state;
        let is_up = matches!(state, StreamState::Ready | StreamState::Full);
        let hangup = event.hangup && !(is_up && self.only_notices(io, slot));
        match state {
            StreamState::Connecting if event.writable => self.connected(io, slot, now_ns()),
            StreamState::Full if event.writable && !hangup => {
                self.lines[slot].state = StreamState::Ready;
            }
            StreamState::Ready | StreamState::Full if hangup => {
                self.break_line(io, slot, RequestFailure::Closed, now_ns());
            }
            _ => {}
        }
    }

    fn tick(&mut self, io: &mut D, now: u64) {
        if now >= self.recorder.window.close() {
            return;
        }
        for slot in 0..self.lines.len() {
            let line = self.lines[slot];
            if line.state == StreamState::Down && now.saturating_sub(line.since) >= RETRY_NS {
                self.connect(io, slot, now);
            }
        }
    }

    fn busy(&self) -> bool {
        false
    }

    fn end(&mut self, io: &mut D, _: u64) {
        if let Some(zero_copy) = &mut self.zero_copy {
            for slot in 0..self.lines.len() {
                if let Some(socket) = io.socket(slot) {
                    zero_copy.collect(socket, slot);
                }
            }
            self.recorder.seen.zero_copy = Some(zero_copy.counts());
        }
    }

    fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    fn finish(self) -> Recorder {
        self.recorder
    }
}
