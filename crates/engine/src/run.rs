//! From a plan to a result: probe, connect, run the workers, join the accounts.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use plumbline_record::{Histogram, LateSpell, LoadResult, ProcessCpu, RequestSpell};
use plumbline_sys::clock::{now_ns, sleep_unless};
use plumbline_sys::cpu::{self, ProcessTime};

use crate::limits;
use crate::recorder::Recorder;
use crate::window::Window;
use crate::worker::{self, WorkerTask};
use crate::{EngineError, LoadPlan, WindowObserver};

/// How long the target may take to accept the first connection.
const PROBE_LIMIT: Duration = Duration::from_secs(5);

/// Runs a load and returns what the sender saw.
///
/// Blocks for the warm-up, the window and as much of the drain as is needed.
/// When `stop` becomes true it returns what was measured until then, within 100
/// ms; [`LoadResult::window_ns`] says how much of the window that was. The
/// workers are threads of their own; `observer` is called on this one.
///
/// # Errors When the load cannot start: a plan that contradicts itself, a
/// target that refuses or does not answer, too few file descriptors, CPUs that
/// may not be used. Errors of single requests are counted, not returned.
pub fn run(
    plan: &LoadPlan,
    stop: &AtomicBool,
    observer: &mut dyn WindowObserver,
) -> Result<LoadResult, EngineError> {
    let (accounts, cpu) = carry(plan, stop, observer)?;
    Ok(result(plan, accounts, cpu))
}

/// What became of the requests of a load that endured whatever happened to its path.
#[derive(Clone, Debug)]
pub struct Endured {
    /// When the first was intended, nanoseconds of the monotonic clock.
    pub begun_ns: u64,
    /// Connections that were open then and are lost.
    pub broken: u64,
    /// All requests, by their intended moments since then.
    pub spells: Vec<RequestSpell>,
    /// Those that were sent late through the sender's own fault, by the same moments.
    pub sent_late: Vec<LateSpell>,
    /// The rest of what the sender saw.
    pub load: LoadResult,
}

/// Runs a load of requests at equal gaps, as [`run`] does, that endures whatever happens to
/// its path: connections that stand take turns, those that break are counted and not
/// replaced, and answers to new connections and datagrams are waited for 1.5 s. Its workload
/// is `rr` or `crr`, and it has one thread.
///
/// # Errors
///
/// As [`run`].
pub fn endure(
    plan: &LoadPlan,
    stop: &AtomicBool,
    observer: &mut dyn WindowObserver,
) -> Result<Endured, EngineError> {
    let plan = LoadPlan {
        endures: true,
        threads: 1,
        ..plan.clone()
    };
    let (mut accounts, cpu) = carry(&plan, stop, observer)?;
    let fates = accounts.fates.take().unwrap_or_default();
    let begun_ns = fates.first().unwrap_or_default();
    Ok(Endured {
        begun_ns,
        broken: fates.broken,
        spells: fates.spells(begun_ns),
        sent_late: fates.sent_late(begun_ns),
        load: result(&plan, accounts, cpu),
    })
}

/// The accounts of all workers, and the CPU time of this process in the window.
fn carry(
    plan: &LoadPlan,
    stop: &AtomicBool,
    observer: &mut dyn WindowObserver,
) -> Result<(Recorder, ProcessCpu), EngineError> {
    plan.check()?;
    limits::check(plan)?;
    probe(plan)?;
    let workers = plan.workers();
    let abort = AtomicBool::new(false);
    thread::scope(|scope| {
        let (report, ready) = mpsc::channel();
        let mut starts = Vec::with_capacity(workers);
        let mut threads = Vec::with_capacity(workers);
        for index in 0..workers {
            let (start, started) = mpsc::channel();
            starts.push(start);
            let share = WorkerTask {
                plan,
                index,
                workers,
                stop,
                abort: &abort,
            };
            let report = report.clone();
            threads.push(scope.spawn(move || {
                let accounts = worker::work(&share, &report, &started);
                if accounts.is_err() {
                    // The others must not wait for this one.
                    let _ = report.send(false);
                }
                accounts
            }));
        }
        drop(report);
        let window = open(plan, &ready, &starts, [stop, &abort], observer);
        drop(starts);
        let cpu = match &window {
            Ok(Some(window)) => observe(window, stop, observer)?,
            _ => ProcessCpu::default(),
        };
        let mut merged: Option<Recorder> = None;
        let mut clients = Vec::new();
        for thread in threads {
            let part = thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            // L-12: what each thread saw is lost once all are merged.
            if workers > 1 {
                clients.push(part.seen.latency.clone());
            }
            match &mut merged {
                Some(all) => all.merge(&part),
                None => merged = Some(part),
            }
        }
        window?;
        let mut accounts = merged.expect("there is at least one worker");
        if !clients.iter().all(Histogram::is_empty) {
            accounts.seen.clients = clients;
        }
        Ok((accounts, cpu))
    })
}

/// One connection before all others, so that a wrong address gives an error
/// message rather than a count of failed requests. UDP cannot be probed.
fn probe(plan: &LoadPlan) -> Result<(), EngineError> {
    if plan.workload.is_udp() {
        return Ok(());
    }
    TcpStream::connect_timeout(&plan.target, PROBE_LIMIT)
        .map(drop)
        .map_err(|e| EngineError::connect(plan.target, 1, e))
}

/// Waits until every worker has its connections, then lets all start at one
/// moment. `None` when asked to stop before.
fn open(
    plan: &LoadPlan,
    ready: &Receiver<bool>,
    starts: &[Sender<Window>],
    [stop, abort]: [&AtomicBool; 2],
    observer: &mut dyn WindowObserver,
) -> Result<Option<Window>, EngineError> {
    for _ in starts {
        // A worker that failed has hung up or sent false; the join says why.
        if !matches!(ready.recv(), Ok(true)) {
            abort.store(true, Ordering::Relaxed);
            return Ok(None);
        }
    }
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let Some(start) = observer.begins() else {
        return Ok(None);
    };
    let drain = plan.drain.as_nanos() as u64;
    let window = Window::starting(start, &plan.slices(), drain);
    // Nobody is told of a whole window: it begins some time after all is ready, and may
    // well have begun where the CPU was taken away in between.
    if plan.turns.is_some() && now_ns() > window.open() {
        return Err(EngineError::Late);
    }
    for start in starts {
        // A worker that has panicked meanwhile shows at the join.
        let _ = start.send(window.clone());
    }
    Ok(Some(window))
}

/// Calls the observer at the boundaries of what is recorded and measures the CPU time
/// of this process between them.
fn observe(
    window: &Window,
    stop: &AtomicBool,
    observer: &mut dyn WindowObserver,
) -> Result<ProcessCpu, EngineError> {
    let process_time = || -> Result<ProcessTime, _> {
        cpu::process_time().map_err(EngineError::system("getrusage"))
    };
    // Woken 50 µs late at most by the timer; a busy CPU may add to that.
    let _ = cpu::set_timer_slack_ns(1);
    let mut cpu = ProcessCpu::default();
    for (open, close) in window.recorded() {
        if !sleep_unless(stop, open) {
            break;
        }
        observer.window_opens();
        let before = process_time()?;
        sleep_unless(stop, close);
        let spent = process_time()?.since(before);
        observer.window_closes();
        cpu.user_ns += spent.user_ns;
        cpu.system_ns += spent.system_ns;
    }
    Ok(cpu)
}

fn result(plan: &LoadPlan, accounts: Recorder, cpu: ProcessCpu) -> LoadResult {
    LoadResult {
        arrival: plan.workload.arrival,
        wait: plan.workload.wait,
        seed: plan.seed,
        window_ns: accounts.window_ns(),
        seconds: accounts.seconds(),
        slice_p50_ns: accounts.slice_p50_ns(),
        slice_tails: accounts.slice_tails(),
        cpu,
        arrivals: accounts.gaps.check(plan.workload.arrival, plan.workers()),
        train: plan.train(),
        ..accounts.seen
    }
}
