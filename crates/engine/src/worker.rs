//! One worker: a thread with its own connections and its share of the rate.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender};

use plumbline_experiment::{Arrival, DriverChoice as Choice, Protocol, WorkloadKind};
use plumbline_sys::cpu;

use crate::bulk::{Datagrams, Stream};
use crate::codec::{Codec, Fixed, Http};
use crate::driver::{Driver, Epoll, Uring};
use crate::event_loop::{self, LoadClient};
use crate::exchange::{Exchange, Rules, Stamped};
use crate::fates::Fates;
use crate::recorder::Recorder;
use crate::schedule::Schedule;
use crate::window::Window;
use crate::{EngineError, LoadPlan};

/// Bytes read at once.
const READ_BUFFER: usize = 64 << 10;
/// Bounds of the number of requests that may be out at once, by worker.
/// Requests beyond it wait, and are charged for the wait.
const LEAST_FLIGHTS: usize = 1 << 12;
const MOST_FLIGHTS: usize = 1 << 17;

/// What one worker has to do.
pub(crate) struct WorkerTask<'a> {
    pub(crate) plan: &'a LoadPlan,
    pub(crate) index: usize,
    pub(crate) workers: usize,
    /// The caller's wish to stop.
    pub(crate) stop: &'a AtomicBool,
    /// Another worker could not start.
    pub(crate) abort: &'a AtomicBool,
}

impl WorkerTask<'_> {
    /// This worker's connections: an equal share, the rest to the first ones.
    fn lines(&self) -> usize {
        let all = self.plan.workload.connections as usize;
        all / self.workers + usize::from(self.index < all % self.workers)
    }

    /// The numbers of this worker's flows, out of those of all workers.
    fn flows(&self) -> std::ops::Range<u16> {
        let all = self.plan.workload.connections as usize;
        let first = all / self.workers * self.index + self.index.min(all % self.workers);
        first as u16..(first + self.lines()) as u16
    }

    fn rules(&self) -> Rules {
        let spec = &self.plan.workload;
        let lines = self.lines();
        Rules {
            target: self.plan.target,
            sources: self.plan.sources.clone(),
            congestion: self.plan.congestion,
            lines,
            udp: spec.kind == WorkloadKind::Rr && spec.protocol == Protocol::Udp,
            fresh: !spec.keeps_connections(),
            pipelined: spec.kind == WorkloadKind::Rr && spec.arrival != Arrival::Closed,
            closed: spec.arrival == Arrival::Closed,
            endures: self.plan.endures,
            shown: self
                .plan
                .secret
                .filter(|_| !spec.is_udp() && spec.keeps_connections()),
            ramp: self.plan.ramp.map(|rate| rate / self.workers as f64),
            flights: self.flights(lines),
            // The numbers of different workers never overlap.
            first: (self.index as u64) << 48,
            stamped: (spec.timestamps > 0.0).then_some(Stamped {
                share: spec.timestamps,
                seed: self.plan.seed,
                worker: self.index,
            }),
        }
    }

    /// Where each request opens its own connection, the secret goes out with it.
    fn shown_before_requests(&self) -> &[u8] {
        match &self.plan.secret {
            Some(secret) if !self.plan.workload.keeps_connections() => secret.bytes(),
            _ => &[],
        }
    }

    fn epoll(&self) -> Result<Epoll, EngineError> {
        Epoll::new(self.lines(), READ_BUFFER, self.plan.workload.wait)
            .map_err(EngineError::system("setting up epoll"))
    }

    fn uring(&self) -> Result<Uring, EngineError> {
        let spec = &self.plan.workload;
        let longest = match spec.protocol {
            // One byte more, so that a longer answer is noticed.
            Protocol::Udp => spec.response_size as usize + 1,
            Protocol::Tcp => 0,
        };
        let batched = spec.arrival == Arrival::Closed;
        Uring::new(self.lines(), longest, spec.wait, batched)
            .map_err(|cause| EngineError::Uring { cause })
    }

    /// Room for what is sent in 2 s, within bounds; for much more where answers may be out
    /// for long.
    fn flights(&self, lines: usize) -> usize {
        if self.plan.endures {
            return MOST_FLIGHTS.max(4 * lines);
        }
        let rate = self.plan.workload.arrival.rate().unwrap_or(0.0);
        let wanted = (rate * 2.0 / self.workers as f64) as usize;
        wanted.clamp(LEAST_FLIGHTS, MOST_FLIGHTS).max(4 * lines)
    }
}

/// Runs one worker. Says on `report` whether it is ready, waits on `started`
/// for the common start, and gives its accounts.
pub(crate) fn work(
    share: &WorkerTask<'_>,
    report: &Sender<bool>,
    started: &Receiver<Window>,
) -> Result<Recorder, EngineError> {
    bind_to_cpu(&share.plan.cpus, share.index)?;
    let spec = &share.plan.workload;
    let mut recorder = Recorder::new(share.plan.recorded_ns(), share.plan.progress.clone());
    // Bulk messages go out in batches, by design.
    if let (Some(rate), true) = (spec.arrival.rate(), spec.kind != WorkloadKind::Datagram) {
        let expected = rate * share.plan.recorded_ns() as f64 * 1e-9 / share.workers as f64;
        recorder = recorder.sampling_gaps(expected);
    }
    recorder.fates = spec
        .arrival
        .rate()
        .filter(|_| share.plan.endures)
        .map(|rate| {
            let expected = rate * share.plan.recorded_ns() as f64 * 1e-9;
            Fates::expecting(expected as usize)
        });
    match spec.kind {
        WorkloadKind::Rr | WorkloadKind::Crr => {
            let codec = Fixed::new(share.plan, share.shown_before_requests());
            let exchange = Exchange::new(codec, share.rules(), recorder);
            exchange_by(share, exchange, report, started)
        }
        WorkloadKind::Http => {
            let codec = Http::new(share.plan, share.shown_before_requests());
            let exchange = Exchange::new(codec, share.rules(), recorder);
            exchange_by(share, exchange, report, started)
        }
        WorkloadKind::Stream => {
            let stream = Stream::new(share.plan, share.lines(), recorder);
            run(share, share.epoll()?, stream, report, started)
        }
        WorkloadKind::Datagram => {
            let datagrams = Datagrams::new(share.plan, share.flows(), recorder);
            run(share, share.epoll()?, datagrams, report, started)
        }
    }
}

/// Runs an exchange by the driver that the plan asks for. The recorder keeps
/// which one that was.
fn exchange_by<C: Codec>(
    share: &WorkerTask<'_>,
    exchange: Exchange<C>,
    report: &Sender<bool>,
    started: &Receiver<Window>,
) -> Result<Recorder, EngineError> {
    match share.plan.workload.driver {
        // io_uring was better for no workload (ARCHITECTURE.md, "Drivers"), and
        // epoll is allowed everywhere.
        Choice::Auto | Choice::Epoll => run(share, share.epoll()?, exchange, report, started),
        Choice::Uring => run(share, share.uring()?, exchange, report, started),
    }
}

fn run<D: Driver>(
    share: &WorkerTask<'_>,
    mut io: D,
    mut workload: impl LoadClient<D>,
    report: &Sender<bool>,
    started: &Receiver<Window>,
) -> Result<Recorder, EngineError> {
    workload.recorder().seen.driver = D::NAME.to_owned();
    let open = event_loop::prepare(&mut io, &mut workload, [share.stop, share.abort])?;
    // The coordinator may have given up and no longer listen.
    let _ = report.send(open);
    if let Ok(window) = started.recv() {
        let plan = share.plan;
        let schedule = Schedule::new(
            plan.workload.arrival,
            plan.seed,
            share.index,
            share.workers,
            window.clone(),
        );
        event_loop::drive(&mut io, &mut workload, schedule, window, share.stop)?;
    }
    Ok(workload.finish())
}

/// Binds the calling thread to its CPU, if CPUs were named, and makes its
/// timers exact.
pub(crate) fn bind_to_cpu(cpus: &[usize], index: usize) -> Result<(), EngineError> {
    // Refused only by seccomp profiles; the margin before a deadline then
    // measures the default slack.
    let _ = cpu::set_timer_slack_ns(1);
    if cpus.is_empty() {
        return Ok(());
    }
    let cpu = cpus[index % cpus.len()];
    cpu::pin_thread(cpu).map_err(|cause| EngineError::Pin { cpu, cause })
}
