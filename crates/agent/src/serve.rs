//! The life of an agent: greet, do one job, report, end.

use std::error::Error;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use plumbline_build::SOURCES;
use plumbline_engine::{EngineError, Responder, ServePlan};
use plumbline_experiment::HttpServer;
use plumbline_protocol::{
    FrameError, FromAgent, PROTOCOL_VERSION, ServeOrder, Served, ToAgent, read_frame, write_frame,
};
use plumbline_record::{ProcessCpu, ProtocolCounters, ServeResult};
use plumbline_sys::cpu::{ProcessTime, process_time};

use crate::attempt::{self, Listening};
use crate::job::JobOutcome;
use crate::lease::{LEASE, Lease};
use crate::load::{TurnsStart, endure, load};
use crate::meter::{MachineMeter, protocol_counters};
use crate::nginx::{self, Nginx};
use crate::observe;
use crate::peer::Meeting;
use crate::probe::probe;
use crate::sounding::Soundings;
use crate::toil::toil;
use crate::tracing::Tracing;

/// The [`LEASE`] of an agent that waits for the pods of a launch, which has no load: what starts
/// these may leave no CPU to whoever passes the controller's words on.
const MEETING_LEASE: Duration = Duration::from_secs(60);

/// How often an agent looks whether another server lives, and whether to stop it.
const LOOK: Duration = Duration::from_millis(20);

/// Connections that a receiver takes beyond those that it expects.
const SPARE_CONNECTIONS: u32 = 64;

/// Why an agent ended without its controller's order.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The controller went silent.
    #[error("the controller was silent for {} s; the load was stopped", .0.as_secs())]
    LeaseExpired(Duration),
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
pub fn run(input: impl Read + Send + 'static, output: impl Write) -> Result<(), AgentError> {
    let soundings = Soundings::default();
    let ended = obey(input, output, &soundings);
    // However it ended.
    soundings.end();
    ended
}

fn obey(
    input: impl Read + Send + 'static,
    mut output: impl Write,
    soundings: &Soundings,
) -> Result<(), AgentError> {
    let (events, inbox) = mpsc::channel();
    read_commands(input, events.clone());
    let (begin, begins) = mpsc::channel();
    let mut begins = Some(begins);
    let stop = Arc::new(AtomicBool::new(false));
    let listening = Listening::default();
    let meeting = Meeting::default();
    let tracing = Tracing::default();
    let mut lease = Lease::new();
    let mut greeted = false;
    let mut has_job = false;
    loop {
        let length = match meeting.is_under_way() {
            true => MEETING_LEASE,
            false => LEASE,
        };
        match inbox.recv_timeout(lease.wait(length)) {
            Ok(AgentEvent::Command(command)) => {
                lease.renew();
                match command {
                    ToAgent::Hello { protocol, version } => {
                        let hello = FromAgent::Hello {
                            protocol: PROTOCOL_VERSION,
                            version: env!("CARGO_PKG_VERSION").to_owned(),
                            sources: SOURCES.to_owned(),
                        };
                        write_frame(&mut output, &hello)?;
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
                    // A load that has failed no longer waits.
                    ToAgent::Begin { start_ns } => drop(begin.send(start_ns)),
                    _ if !greeted => {
                        return Err(AgentError::Unexpected("an order before the greeting"));
                    }
                    ToAgent::Serve(_)
                    | ToAgent::Load(_)
                    | ToAgent::Endure(_)
                    | ToAgent::Toil(_)
                        if has_job =>
                    {
                        return Err(AgentError::Unexpected(
                            "a second order; an agent does one job",
                        ));
                    }
                    order => {
                        let may_wait = matches!(order, ToAgent::Load(_) | ToAgent::Toil(_));
                        has_job |=
                            may_wait || matches!(order, ToAgent::Serve(_) | ToAgent::Endure(_));
                        let means = JobMeans {
                            stop: stop.clone(),
                            listening: listening.clone(),
                            meeting: meeting.clone(),
                            soundings: soundings.clone(),
                            tracing: tracing.clone(),
                            begins: begins.take_if(|_| may_wait),
                        };
                        start(order, events.clone(), means);
                    }
                }
            }
            Ok(AgentEvent::Report(report)) => write_frame(&mut output, &report)?,
            Ok(AgentEvent::InputEnded(FrameError::Closed)) => return Ok(()),
            Ok(AgentEvent::InputEnded(error)) => return Err(error.into()),
            Err(RecvTimeoutError::Timeout) => {
                if lease.runs_out() {
                    stop.store(true, Ordering::SeqCst);
                    return Err(AgentError::LeaseExpired(length));
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
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

/// What an order is carried out with.
struct JobMeans {
    stop: Arc<AtomicBool>,
    listening: Listening,
    meeting: Meeting,
    soundings: Soundings,
    tracing: Tracing,
    /// The start of turns, for a load, or for work that sends nothing.
    begins: Option<Receiver<u64>>,
}

/// Carries out an order in a thread of its own, and reports its result.
fn start(order: ToAgent, events: Sender<AgentEvent>, means: JobMeans) {
    thread::spawn(move || {
        // If the receiver is gone, the agent is ending, and no one needs the
        // result.
        let report = |message| drop(events.send(AgentEvent::Report(message)));
        let stop = &*means.stop;
        let turns = means.begins.map(|begins| TurnsStart {
            report: &report,
            begins,
            stop,
        });
        let result = match &order {
            ToAgent::Serve(order) => serve(order, &report, stop),
            ToAgent::Load(order) => load(order, stop, turns),
            ToAgent::Endure(order) => endure(order, stop),
            ToAgent::Toil(order) => {
                toil(order, &|| turns.as_ref()?.wait(), stop).map(FromAgent::Toiled)
            }
            ToAgent::Listen { addresses } => means.listening.listen(addresses),
            ToAgent::Connect { address, limit_ns } => {
                attempt::connect(*address, Duration::from_nanos(*limit_ns))
            }
            ToAgent::Meet(order) => {
                let begun = means.meeting.begin(order);
                begun
                    .map(|address| FromAgent::Listening { address })
                    .map_err(Into::into)
            }
            ToAgent::Pass { phase } => {
                let met = means.meeting.pass(*phase);
                met.map(|pods| FromAgent::Met { pods }).map_err(Into::into)
            }
            ToAgent::Probe(order) => {
                probe(order, stop).map(|probed| FromAgent::Probed(Box::new(probed)))
            }
            ToAgent::Sound(order) => {
                let sounded = means.soundings.answer(order, stop);
                sounded.map(|it| FromAgent::Sounded(Box::new(it)))
            }
            ToAgent::Trace(order) => {
                let traced = means.tracing.answer(order);
                traced.map(|it| FromAgent::Traced(Box::new(it)))
            }
            order => observe::answer(order, stop),
        };
        report(result.unwrap_or_else(|error| failed(&*error)));
    });
}

fn failed(error: &(dyn Error + 'static)) -> FromAgent {
    match error.downcast_ref() {
        Some(EngineError::Late) => FromAgent::Late,
        _ => FromAgent::Failed {
            error: error.to_string(),
        },
    }
}

fn serve(order: &ServeOrder, report: &dyn Fn(FromAgent), stop: &AtomicBool) -> JobOutcome {
    if order.workload.server == HttpServer::Nginx {
        return serve_by_nginx(&nginx::installed()?, order, report, stop);
    }
    let plan = ServePlan {
        cpus: order.cpus.clone(),
        congestion: order.congestion,
        secret: Some(order.secret),
        // Those that are to come, as many that the other side has given up, and the
        // probe.
        connections: 2 * order.workload.connections + SPARE_CONNECTIONS,
        ..ServePlan::new(order.workload.clone(), (order.address, order.port).into())
    };
    let responder = Responder::bind(&plan)?;
    let opened = ServerMeter::open(process_time()?)?;
    report(FromAgent::Listening {
        address: responder.local_addr(),
    });
    let serve = responder.run(stop)?;
    opened.served(serve, process_time()?)
}

/// As [`serve`], with nginx as the process that answers and whose CPU counts.
fn serve_by_nginx(
    program: &Path,
    order: &ServeOrder,
    report: &dyn Fn(FromAgent),
    stop: &AtomicBool,
) -> JobOutcome {
    let mut nginx = Nginx::start(program, order)?;
    let opened = ServerMeter::open(nginx.cpu()?)?;
    report(FromAgent::Listening {
        address: nginx.address(),
    });
    while !stop.load(Ordering::SeqCst) {
        nginx.check()?;
        thread::sleep(LOOK);
    }
    let cpu = nginx.cpu()?;
    opened.served(nginx.stop()?, cpu)
}

/// What is counted on the receiver's side while it serves.
struct ServerMeter {
    process: ProcessTime,
    machine: MachineMeter,
    protocol: ProtocolCounters,
}

impl ServerMeter {
    /// Begins to count; `process` is the CPU time of what answers.
    fn open(process: ProcessTime) -> io::Result<Self> {
        Ok(Self {
            process,
            machine: MachineMeter::open()?,
            protocol: protocol_counters("server")?,
        })
    }

    /// What was served since then.
    fn served(mut self, serve: ServeResult, process: ProcessTime) -> JobOutcome {
        self.machine.closes()?;
        let cpu = process.since(self.process);
        Ok(FromAgent::Served(Box::new(Served {
            serve,
            cpu: ProcessCpu {
                user_ns: cpu.user_ns,
                system_ns: cpu.system_ns,
            },
            machine: self.machine.cpu(),
            softnet: self.machine.softnet(),
            ksoftirqd_ns: self.machine.ksoftirqd_ns(),
            protocol: protocol_counters("server")?.since(&self.protocol),
        })))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpStream};

    use plumbline_engine::Secret;
    use plumbline_experiment::{Workload, WorkloadKind};

    use super::*;

    #[test]
    fn a_receiver_wants_to_be_shown_the_secret_of_its_order() {
        let order = ServeOrder {
            workload: Workload::of_kind(WorkloadKind::Rr),
            address: [127, 0, 0, 1].into(),
            port: 0,
            secret: Secret::random().unwrap(),
            cpus: Vec::new(),
            congestion: None,
        };
        let stop = AtomicBool::new(false);
        let strange = |address: SocketAddr| {
            let mut client = TcpStream::connect(address).unwrap();
            let request = vec![b'G'; order.workload.request_size as usize];
            client.write_all(&request).unwrap();
            // It may be closed with what was sent still unread.
            let answered = client.read(&mut [0]).is_ok_and(|it| it > 0);
            stop.store(true, Ordering::SeqCst);
            assert!(!answered);
        };
        let served = thread::scope(|scope| {
            let report = |said| match said {
                FromAgent::Listening { address } => drop(scope.spawn(move || strange(address))),
                other => panic!("{other:?}"),
            };
            serve(&order, &report, &stop).unwrap()
        });
        let FromAgent::Served(served) = served else {
            panic!("{served:?}")
        };
        assert_eq!((served.serve.strangers, served.serve.requests), (1, 0));
    }
}
