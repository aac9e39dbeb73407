//! Acting as the sender of a load.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use plumbline_engine::{LoadPlan, WindowObserver};
use plumbline_experiment::HttpServer;
use plumbline_protocol::{EnduredLoad, FromAgent, LoadOrder, SenderMeasurement};

use crate::job::JobOutcome;
use crate::meter::{MachineMeter, protocol_counters};

/// How often a load that waits for its start looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(20);

/// Asks the controller for the start of turns, and reads the machine's counters when the
/// window opens and closes.
struct WindowMeter<'a> {
    turns: Option<TurnsStart<'a>>,
    machine: MachineMeter,
    error: Option<io::Error>,
}

/// How a load that takes turns says that it is ready, and hears of the start.
pub(crate) struct TurnsStart<'a> {
    pub(crate) report: &'a dyn Fn(FromAgent),
    pub(crate) begins: Receiver<u64>,
    pub(crate) stop: &'a AtomicBool,
}

impl TurnsStart<'_> {
    /// Waits for it; `None` when stopped before.
    pub(crate) fn wait(&self) -> Option<u64> {
        (self.report)(FromAgent::Opened);
        while !self.stop.load(Ordering::SeqCst) {
            match self.begins.recv_timeout(LOOK) {
                Err(RecvTimeoutError::Timeout) => {}
                told => return told.ok(),
            }
        }
        None
    }
}

impl WindowObserver for WindowMeter<'_> {
    fn begins(&mut self) -> Option<u64> {
        match &self.turns {
            Some(turns) => turns.wait(),
            None => ().begins(),
        }
    }

    fn window_opens(&mut self) {
        self.error = self.error.take().or(self.machine.opens().err());
    }

    fn window_closes(&mut self) {
        self.error = self.error.take().or(self.machine.closes().err());
    }
}

/// Sends a load.
pub(crate) fn load(
    order: &LoadOrder,
    stop: &AtomicBool,
    turns: Option<TurnsStart<'_>>,
) -> JobOutcome {
    let plan = plan(order);
    let protocol = protocol_counters("client")?;
    let mut meter = WindowMeter {
        turns: turns.filter(|_| order.turns.is_some()),
        machine: MachineMeter::default(),
        error: None,
    };
    let load = plumbline_engine::run(&plan, stop, &mut meter)?;
    if let Some(error) = meter.error {
        return Err(error.into());
    }
    let machine = meter.machine;
    if machine.windows() == 0 {
        return Err("the load was stopped before its measured window ended".into());
    }
    Ok(FromAgent::Loaded(Box::new(SenderMeasurement {
        load,
        machine: machine.cpu(),
        softnet: machine.softnet(),
        ksoftirqd_ns: machine.ksoftirqd_ns(),
        protocol: protocol_counters("client")?.since(&protocol),
    })))
}

/// Sends a load that endures what happens to its path, until it is stopped.
pub(crate) fn endure(order: &LoadOrder, stop: &AtomicBool) -> JobOutcome {
    let seen = plumbline_engine::endure(&plan(order), stop, &mut ())?;
    Ok(FromAgent::Endured(Box::new(EnduredLoad {
        begun_ns: seen.begun_ns,
        broken: seen.broken,
        spells: seen.spells,
        lag: seen.load.generator_lag,
        sent_late: seen.sent_late,
        latency: seen.load.latency,
    })))
}

fn plan(order: &LoadOrder) -> LoadPlan {
    LoadPlan {
        // Only our own responder knows what to do with it.
        secret: (order.workload.server == HttpServer::Plumbline).then_some(order.secret),
        warm_up: Duration::from_nanos(order.timing.warm_up_ns),
        measure: Duration::from_nanos(order.timing.measure_ns),
        turns: order.turns.clone(),
        drain: Duration::from_nanos(order.timing.drain_ns),
        seed: order.seed,
        cpus: order.cpus.clone(),
        congestion: order.congestion,
        ..LoadPlan::new(order.workload.clone(), order.target)
    }
}
