//! The life of an agent: greet, do one job, report, end.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use plumbline_engine::{LoadPlan, Responder, ServePlan, WindowObserver};
use plumbline_experiment::HttpServer;
use plumbline_record::ProcessCpu;

use crate::frame::{FrameError, read_frame, write_frame};
use crate::message::{
    FromAgent, LoadOrder, PROTOCOL_VERSION, SenderMeasurement, ServeOrder, Served, ToAgent,
};
use crate::meter::{MachineMeter, MeterReading, protocol_counters};
use crate::nginx::{self, Nginx};
use crate::observe;

/// An agent that hears nothing for this long stops its load and ends (S-5e).
pub const LEASE: Duration = Duration::from_secs(3);

/// How often an agent looks whether another server lives, and whether to stop it.
const LOOK: Duration = Duration::from_millis(20);

/// Why an agent ended without its controller's order.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The controller went silent.
    #[error("the controller was silent for {} s; the load was stopped", LEASE.as_secs())]
    LeaseExpired,
    /// The controller speaks another protocol.
    #[error(
        "the controller speaks protocol {theirs} (Plumbline {version}), this agent {PROTOCOL_VERSION}; use the same version on both sides"
    )]
    Version {
        /// Protocol of the controller.
        theirs: u32,
        /// Plumbline version of the controller.
        version: String,
    },
    /// The first frame was not a greeting, or a second job was ordered.
    #[error("unexpected message: {0}")]
    Unexpected(&'static str),
    /// The stream failed.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// What an agent waits for.
enum AgentEvent {
    Command(ToAgent),
    InputEnded(FrameError),
    Report(FromAgent),
}

/// Runs an agent until its controller closes `input`. `output` carries frames
/// only; nothing else may write to it.
pub fn run(input: impl Read + Send + 'static, mut output: impl Write) -> Result<(), AgentError> {
    let (events, inbox) = mpsc::channel();
    read_commands(input, events.clone());
    let stop = Arc::new(AtomicBool::new(false));
    let mut last_heard = Instant::now();
    let mut greeted = false;
    let mut has_job = false;
    loop {
        match inbox.recv_timeout(LEASE.saturating_sub(last_heard.elapsed())) {
            Ok(AgentEvent::Command(command)) => {
                last_heard = Instant::now();
                match command {
                    ToAgent::Hello { protocol, version } => {
                        write_frame(&mut output, &hello())?;
                        if protocol != PROTOCOL_VERSION {
                            return Err(AgentError::Version {
                                theirs: protocol,
                                version,
                            });
                        }
                        greeted = true;
                    }
                    ToAgent::Ping => {}
                    ToAgent::Stop => stop.store(true, Ordering::SeqCst),
                    _ if !greeted => {
                        return Err(AgentError::Unexpected("an order before the greeting"));
                    }
                    order @ (ToAgent::Look(_)
                    | ToAgent::Count { .. }
                    | ToAgent::Rest { .. }
                    | ToAgent::Floor { .. }) => {
                        start(events.clone(), stop.clone(), move |_, stop| {
                            observe::answer(&order, stop)
                        });
                    }
                    _ if has_job => {
                        return Err(AgentError::Unexpected(
                            "a second order; an agent does one job",
                        ));
                    }
                    ToAgent::Serve(order) => {
                        has_job = true;
                        start(events.clone(), stop.clone(), move |report, stop| {
                            serve(&order, report, stop)
                        });
                    }
                    ToAgent::Load(order) => {
                        has_job = true;
                        start(events.clone(), stop.clone(), move |_, stop| {
                            load(&order, stop)
                        });
                    }
                }
            }
            Ok(AgentEvent::Report(report)) => write_frame(&mut output, &report)?,
            Ok(AgentEvent::InputEnded(FrameError::Closed)) => return Ok(()),
            Ok(AgentEvent::InputEnded(error)) => return Err(error.into()),
            Err(RecvTimeoutError::Timeout) => {
                stop.store(true, Ordering::SeqCst);
                return Err(AgentError::LeaseExpired);
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

fn hello() -> FromAgent {
    FromAgent::Hello {
        protocol: PROTOCOL_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

fn read_commands(mut input: impl Read + Send + 'static, events: Sender<AgentEvent>) {
    thread::spawn(move || {
        loop {
            let event = match read_frame(&mut input) {
                Ok(command) => AgentEvent::Command(command),
                Err(error) => AgentEvent::InputEnded(error),
            };
            let ended = matches!(event, AgentEvent::InputEnded(_));
            if events.send(event).is_err() || ended {
                return;
            }
        }
    });
}

/// Runs a job in a thread of its own and reports its result.
fn start(
    events: Sender<AgentEvent>,
    stop: Arc<AtomicBool>,
    job: impl FnOnce(&dyn Fn(FromAgent), &AtomicBool) -> Result<FromAgent, String> + Send + 'static,
) {
    thread::spawn(move || {
        // If the receiver is gone, the agent is ending, and no one needs the
        // result.
        let report = |message| drop(events.send(AgentEvent::Report(message)));
        let result = job(&report, &stop);
        report(result.unwrap_or_else(|error| FromAgent::Failed { error }));
    });
}

fn serve(
    order: &ServeOrder,
    report: &dyn Fn(FromAgent),
    stop: &AtomicBool,
) -> Result<FromAgent, String> {
    if order.workload.server == HttpServer::Nginx {
        let program = nginx::installed().map_err(|e| e.to_string())?;
        return serve_by_nginx(&program, order, report, stop);
    }
    let plan = ServePlan {
        cpus: order.cpus.clone(),
        ..ServePlan::new(order.workload.clone(), (order.address, order.port).into())
    };
    let responder = Responder::bind(&plan).map_err(|e| e.to_string())?;
    let protocol = protocol_counters("server").map_err(|e| e.to_string())?;
    let cpu = plumbline_sys::cpu::process_time().map_err(|e| e.to_string())?;
    let opened = MeterReading::take().map_err(|e| e.to_string())?;
    report(FromAgent::Listening {
        address: responder.local_addr(),
    });
    let serve = responder.run(stop).map_err(|e| e.to_string())?;
    let closed = MeterReading::take().map_err(|e| e.to_string())?;
    let cpu = plumbline_sys::cpu::process_time()
        .map_err(|e| e.to_string())?
        .since(cpu);
    Ok(FromAgent::Served(Box::new(Served {
        serve,
        cpu: ProcessCpu {
            user_ns: cpu.user_ns,
            system_ns: cpu.system_ns,
        },
        machine: closed.cpu_since(&opened),
        softnet: closed.softnet_since(&opened),
        protocol: protocol_counters("server")
            .map_err(|e| e.to_string())?
            .since(&protocol),
    })))
}

/// As [`serve`], with nginx as the process that answers and whose CPU counts.
fn serve_by_nginx(
    program: &Path,
    order: &ServeOrder,
    report: &dyn Fn(FromAgent),
    stop: &AtomicBool,
) -> Result<FromAgent, String> {
    let mut nginx = Nginx::start(program, order).map_err(|e| e.to_string())?;
    let protocol = protocol_counters("server").map_err(|e| e.to_string())?;
    let before = nginx.cpu().map_err(|e| e.to_string())?;
    let opened = MeterReading::take().map_err(|e| e.to_string())?;
    report(FromAgent::Listening {
        address: nginx.address(),
    });
    while !stop.load(Ordering::SeqCst) {
        nginx.check().map_err(|e| e.to_string())?;
        thread::sleep(LOOK);
    }
    let closed = MeterReading::take().map_err(|e| e.to_string())?;
    let cpu = nginx.cpu().map_err(|e| e.to_string())?.since(before);
    let served = Served {
        serve: nginx.stop().map_err(|e| e.to_string())?,
        cpu: ProcessCpu {
            user_ns: cpu.user_ns,
            system_ns: cpu.system_ns,
        },
        machine: closed.cpu_since(&opened),
        softnet: closed.softnet_since(&opened),
        protocol: protocol_counters("server")
            .map_err(|e| e.to_string())?
            .since(&protocol),
    };
    Ok(FromAgent::Served(Box::new(served)))
}

/// Reads the machine's counters when the window opens and closes.
#[derive(Default)]
struct WindowMeter {
    machine: MachineMeter,
    error: Option<io::Error>,
}

impl WindowObserver for WindowMeter {
    fn window_opens(&mut self) {
        self.error = self.error.take().or(self.machine.opens().err());
    }

    fn window_closes(&mut self) {
        self.error = self.error.take().or(self.machine.closes().err());
    }
}

fn load(order: &LoadOrder, stop: &AtomicBool) -> Result<FromAgent, String> {
    let plan = LoadPlan {
        warm_up: Duration::from_nanos(order.timing.warm_up_ns),
        measure: Duration::from_nanos(order.timing.measure_ns),
        turns: order.turns.clone(),
        drain: Duration::from_nanos(order.timing.drain_ns),
        seed: order.seed,
        cpus: order.cpus.clone(),
        ..LoadPlan::new(order.workload.clone(), order.target)
    };
    let protocol = protocol_counters("client").map_err(|e| e.to_string())?;
    let mut meter = WindowMeter::default();
    let load = plumbline_engine::run(&plan, stop, &mut meter).map_err(|e| e.to_string())?;
    if let Some(error) = meter.error {
        return Err(error.to_string());
    }
    let machine = meter.machine;
    if machine.windows() == 0 {
        return Err("the load was stopped before its measured window ended".to_owned());
    }
    Ok(FromAgent::Loaded(Box::new(SenderMeasurement {
        load,
        machine: machine.cpu(),
        softnet: machine.softnet(),
        protocol: protocol_counters("client")
            .map_err(|e| e.to_string())?
            .since(&protocol),
    })))
}
