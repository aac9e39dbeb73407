//! What a caller asks for.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use plumbline_experiment::ceiling::MAX_CONNECTIONS;
use plumbline_experiment::{CongestionControl, Slice, Workload, WorkloadKind};
use plumbline_sys::clock::now_ns;
use plumbline_sys::socket::Socket;

use crate::EngineError;
use crate::bulk::train_of;
use crate::progress::LoadProgress;
use crate::secret::Secret;

/// How long a server waits for anything to happen on a connection.
const IDLE: Duration = Duration::from_secs(300);

/// From the last connection to the first request.
const HEAD_START_NS: u64 = 2_000_000;

/// One load, from its first connection to its last answer.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// What to send, how much of it, and when.
    pub workload: Workload,
    /// Where to.
    pub target: SocketAddr,
    /// `http`: the `Host` header; the target's address unless given.
    pub authority: Option<String>,
    /// `http`: the path to ask for, query included.
    pub path: String,
    /// Load that is sent but not recorded (L-11).
    pub warm_up: Duration,
    /// The window whose requests are recorded.
    pub measure: Duration,
    /// The slices to run in, from the start on, where the load takes turns with others;
    /// then `warm_up` and `measure` do not count.
    pub turns: Option<Vec<Slice>>,
    /// Longest wait for outstanding answers after the window (L-3).
    pub drain: Duration,
    /// Seed of Poisson arrivals (L-6).
    pub seed: u64,
    /// Worker threads; each has its own connections and its own share of the
    /// rate. Never more than connections.
    pub threads: usize,
    /// CPUs to bind the workers to, in turn; empty for no binding.
    pub cpus: Vec<usize>,
    /// Whether the other end is our [`Responder`](crate::Responder), so that
    /// the content of answers can be checked. False for a foreign HTTP
    /// server, of which only the protocol is checked.
    pub verify: bool,
    /// Connections opened per second before the load, over all threads;
    /// `None` for as fast as they are accepted.
    pub ramp: Option<f64>,
    /// Addresses of this machine to connect from, in turn; empty lets the
    /// kernel choose. One address has a port for some 28,000 connections to one
    /// target (`net.ipv4.ip_local_port_range`).
    pub sources: Vec<IpAddr>,
    /// How TCP finds the rate of the path; `None` as the namespace has it.
    pub congestion: Option<CongestionControl>,
    /// `datagram`: hand the kernel up to 64 messages at once as a train, which
    /// it cuts into packets as late as it can (UDP GSO). That multiplies the
    /// rate that one CPU can send. But a train crosses virtual devices as one
    /// packet, so its messages share the cost of the path: leave it out where
    /// each message should pay for itself (N-1).
    pub trains: bool,
    /// What our [`Responder`](crate::Responder) wants to be shown, if anything.
    pub secret: Option<Secret>,
    /// Whether each request's outcome is kept, connections take turns, and those that break
    /// are not replaced: what [`endure`](crate::endure) sets.
    pub endures: bool,
    /// Counters for a live display.
    pub progress: Option<Arc<LoadProgress>>,
}

impl LoadPlan {
    /// A plan with 1 s of warm-up, 10 s of measuring, 1 s of drain, one
    /// unbound thread, seed 0 and verified answers.
    pub fn new(workload: Workload, target: SocketAddr) -> Self {
        Self {
            workload,
            target,
            authority: None,
            path: "/".into(),
            warm_up: Duration::from_secs(1),
            measure: Duration::from_secs(10),
            turns: None,
            drain: Duration::from_secs(1),
            seed: 0,
            threads: 1,
            cpus: Vec::new(),
            verify: true,
            ramp: None,
            sources: Vec::new(),
            congestion: None,
            trains: false,
            secret: None,
            endures: false,
            progress: None,
        }
    }

    /// The slices that the load runs in, from its start.
    pub(crate) fn slices(&self) -> Vec<Slice> {
        if let Some(slices) = &self.turns {
            return slices.clone();
        }
        let open_ns = self.warm_up.as_nanos() as u64;
        let end_ns = open_ns + self.measure.as_nanos() as u64;
        vec![Slice {
            begin_ns: 0,
            open_ns,
            end_ns,
        }]
    }

    /// How much of the load is recorded, nanoseconds.
    pub(crate) fn recorded_ns(&self) -> u64 {
        self.slices().iter().map(Slice::recorded_ns).sum()
    }

    /// Threads that a load runs in: no more than it has connections.
    pub(crate) fn workers(&self) -> usize {
        self.threads.clamp(1, self.workload.connections as usize)
    }

    /// Most messages that the kernel is given as one train; 0 where there are no
    /// messages.
    pub(crate) fn train(&self) -> u32 {
        match self.workload.kind {
            WorkloadKind::Datagram if self.trains => train_of(self.workload.request_size),
            WorkloadKind::Datagram => 1,
            _ => 0,
        }
    }

    /// Refuses what cannot be run, so that the loop need not check.
    ///
    /// # Errors
    ///
    /// [`EngineError::Plan`]: values that are impossible, or contradict each other.
    pub fn check(&self) -> Result<(), EngineError> {
        check_workload(&self.workload)?;
        if self.recorded_ns() == 0 {
            return plan("the measured window is 0 s long; give it at least 10 ms");
        }
        let slices = self.slices();
        let are_ordered = slices.is_sorted_by(|one, next| one.end_ns <= next.begin_ns);
        let are_whole = |it: &Slice| it.begin_ns <= it.open_ns && it.open_ns <= it.end_ns;
        if !(are_ordered && slices.iter().all(are_whole)) {
            return plan("the slices of a load must follow each other in time");
        }
        self.check_ramp()?;
        let target = self.target.is_ipv4();
        if self.sources.iter().any(|it| it.is_ipv4() != target) {
            return plan("source addresses must have the IP version of the target");
        }
        if self.trains && self.workload.kind != WorkloadKind::Datagram {
            return plan(
                "only the messages of datagram can go out in trains (--gso); leave that out",
            );
        }
        let is_clean = |text: &str| text.bytes().all(|b| b.is_ascii_graphic());
        if !self.path.starts_with('/') || !is_clean(&self.path) {
            return plan(
                "the path must start with `/` and have no spaces or control characters; percent-encode them",
            );
        }
        if !self.authority.as_deref().is_none_or(is_clean) {
            return plan("the host name has spaces or control characters");
        }
        Ok(())
    }

    fn check_ramp(&self) -> Result<(), EngineError> {
        let Some(ramp) = self.ramp else { return Ok(()) };
        if !(ramp.is_finite() && ramp > 0.0) {
            return plan(
                "the ramp must be above 0 connections per second; leave it out to open all at once",
            );
        }
        let workload = &self.workload;
        if !(workload.kind.is_answered() && workload.keeps_connections()) {
            return plan(
                "a ramp is for connections that stay open: rr, or http with keep-alive; leave it out",
            );
        }
        Ok(())
    }
}

/// What the other end of a load answers, and where.
#[derive(Clone, Debug)]
pub struct ServePlan {
    /// The workload that the load will use: kind, sizes, protocol.
    pub workload: Workload,
    /// Where to listen; port 0 lets the kernel pick.
    pub listen: SocketAddr,
    /// Threads, each with its own socket on the same port.
    pub threads: usize,
    /// CPUs to bind the threads to, in turn; empty for no binding.
    pub cpus: Vec<usize>,
    /// How TCP finds the rate of the path; `None` as the namespace has it.
    pub congestion: Option<CongestionControl>,
    /// What senders have to show. Whatever comes without it is dropped.
    pub secret: Option<Secret>,
    /// Most connections of a thread at the same time; further ones are closed at once.
    pub connections: u32,
    /// How long nothing may happen on a connection before it is closed.
    pub idle: Duration,
}

impl ServePlan {
    /// A plan for one unbound thread, as many connections as a load may have, 5 min of
    /// patience, and no secret.
    pub fn new(workload: Workload, listen: SocketAddr) -> Self {
        Self {
            workload,
            listen,
            threads: 1,
            cpus: Vec::new(),
            congestion: None,
            secret: None,
            connections: MAX_CONNECTIONS,
            idle: IDLE,
        }
    }

    /// Refuses what cannot be served.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        let workload = &self.workload;
        check_workload(workload)?;
        // A sender's address can be forged over UDP, and the answer goes there.
        let is_amplifier = workload.is_udp() && workload.response_size > workload.request_size;
        if is_amplifier && self.secret.is_none() {
            return plan(
                "over UDP, only who knows a secret is sent more than was asked with: give `serve` and `load` the same --secret, or make responses no longer than requests",
            );
        }
        Ok(())
    }
}

fn check_workload(workload: &Workload) -> Result<(), EngineError> {
    workload
        .check()
        .map_err(|refusal| EngineError::Plan(refusal.to_string()))
}

/// The source address of connection `slot`.
pub(crate) fn source(sources: &[IpAddr], slot: usize) -> Option<IpAddr> {
    let turn = slot.checked_rem(sources.len())?;
    Some(sources[turn])
}

/// The same socket of TCP, which finds the rate of its path in this way.
pub(crate) fn controlled(socket: Socket, by: Option<CongestionControl>) -> io::Result<Socket> {
    let Some(name) = by.map(CongestionControl::as_str) else {
        return Ok(socket);
    };
    let refused = |error: io::Error| {
        let told = format!(
            "congestion control {name}, of which net.ipv4.tcp_allowed_congestion_control lists \
             what may be chosen: {error}"
        );
        io::Error::new(error.kind(), told)
    };
    socket.set_congestion_control(name).map_err(refused)?;
    Ok(socket)
}

fn plan<T>(text: &str) -> Result<T, EngineError> {
    Err(EngineError::Plan(text.into()))
}

/// Asked for the start, and called when the measured window opens and closes, so that
/// meters can be read. Where a load takes turns with others, that is once for each slice.
///
/// All are called on the thread that called [`run`](crate::run), which is not
/// a worker, so an observer delays no request.
pub trait WindowObserver {
    /// All connections are open. Gives the start, nanoseconds of the monotonic clock;
    /// `None` ends the load here. Some 2 ms from now, unless others are waited for.
    fn begins(&mut self) -> Option<u64> {
        Some(now_ns() + HEAD_START_NS)
    }
    /// The warm-up is over; the window opens now.
    fn window_opens(&mut self);
    /// The window has just closed; outstanding answers may still come.
    fn window_closes(&mut self);
}

impl WindowObserver for () {
    fn window_opens(&mut self) {}
    fn window_closes(&mut self) {}
}
