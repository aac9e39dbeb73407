//! A made-up agent.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use plumbline_build::SOURCES;
use plumbline_protocol::{
    ClockReading, EnduredLoad, FromAgent, MachineGains, PROTOCOL_VERSION, ProbeOrder,
    SenderMeasurement, Served, ToAgent, WatchOrder, Watched, read_frame, write_frame,
};
use plumbline_record::{Histogram, IdleSample, RequestOutcome, RequestSpell};
use plumbline_sys::clock::now_ns;

use super::object::PlantedObject;
use super::{Act, MS, Planted, healthy};
use crate::error::TargetError;
use crate::path::{AgentLink, AgentProcess, Site};

/// The clock of a made-up machine.
#[derive(Clone, Debug)]
pub(crate) struct PlantedClock {
    /// How far it is ahead of this machine's, nanoseconds.
    pub(crate) ahead_ns: u64,
    pub(crate) boot: &'static str,
    /// How long an answer about it takes.
    pub(crate) delay: Duration,
    /// The starts of rotations of which watchers were told, by this clock.
    pub(crate) starts: Arc<Mutex<Vec<u64>>>,
}

impl Default for PlantedClock {
    fn default() -> Self {
        Self {
            ahead_ns: 0,
            boot: "one kernel",
            delay: Duration::ZERO,
            starts: Arc::default(),
        }
    }
}

/// A made-up agent: the sender if it has a script, else the receiver.
#[derive(Clone)]
pub(crate) struct Actor {
    pub(crate) acts: Option<Arc<Mutex<Vec<Act>>>>,
    /// Where the receiver says that it listens.
    pub(crate) listens: SocketAddr,
    pub(crate) clock: PlantedClock,
    /// What the sender's connections meet.
    pub(crate) object: PlantedObject,
}

impl Site for Actor {
    fn name(&self) -> &str {
        if self.acts.is_some() {
            "client"
        } else {
            "server"
        }
    }

    fn address(&self) -> IpAddr {
        [198, 18, 0, 1].into()
    }

    fn start_agent(&self) -> Result<AgentLink, TargetError> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut output = theirs.try_clone().unwrap();
        let actor = self.clone();
        thread::spawn(move || actor.play(theirs, &mut output));
        Ok(AgentLink {
            input: Box::new(HalfClose(ours.try_clone().unwrap())),
            output: Box::new(ours),
            process: Box::new(NoProcess),
        })
    }
}

impl Actor {
    /// The next act of the script, if it is such a one.
    fn next_act(&self, is_wanted: fn(&Act) -> bool) -> Option<Act> {
        let mut acts = self.acts.as_ref()?.lock().unwrap();
        acts.pop_if(|act| is_wanted(act))
    }

    fn play(&self, mut input: impl Read, output: &mut impl Write) {
        // A long probe goes on until it is stopped.
        let mut probing: Option<(ProbeOrder, u64)> = None;
        // So does a load that endures.
        let mut enduring: Option<u64> = None;
        while let Ok(message) = read_frame::<ToAgent>(&mut input) {
            let answer = match message {
                ToAgent::Hello { .. } => self.greet(),
                ToAgent::Serve(_) => FromAgent::Listening {
                    address: self.listens,
                },
                ToAgent::Load(order) if order.turns.is_some() => FromAgent::Opened,
                ToAgent::Load(_) | ToAgent::Begin { .. } => match self.next_act(|_| true) {
                    None => loaded(&healthy()),
                    Some(Act::Measure(seen)) => loaded(&seen),
                    Some(Act::Fail(why)) => FromAgent::Failed { error: why.into() },
                    Some(Act::Late) => FromAgent::Late,
                    Some(Act::Vanish) => return,
                    Some(Act::Hang | Act::Skew | Act::Rebuilt) => continue,
                },
                ToAgent::Clock => self.read_clock(),
                ToAgent::Watch(order) => self.watch(&order),
                ToAgent::Stop if self.acts.is_none() => served(),
                ToAgent::Probe(order) if order.length_ns > 10_000 * MS => {
                    probing = Some((order, now_ns()));
                    continue;
                }
                ToAgent::Probe(order) => {
                    let since_ns = now_ns();
                    let end_ns = since_ns + order.length_ns;
                    self.object
                        .probed(&order, [since_ns, end_ns], self.clock.ahead_ns)
                }
                ToAgent::Endure(_) => {
                    enduring = Some(now_ns());
                    continue;
                }
                ToAgent::Stop if enduring.is_some() => self.endured(enduring.take()),
                ToAgent::Stop => match probing.take() {
                    Some((order, since_ns)) => {
                        let span = [since_ns, now_ns()];
                        self.object.probed(&order, span, self.clock.ahead_ns)
                    }
                    None => continue,
                },
                _ if self.vanishes(enduring) => return,
                _ => continue,
            };
            if write_frame(output, &answer).is_err() {
                return;
            }
        }
    }

    /// Whether it is to end amid a load that endures since then.
    fn vanishes(&self, since_ns: Option<u64>) -> bool {
        let is_amid = since_ns.is_some_and(|it| now_ns() > it + 1_000 * MS);
        let act = || self.next_act(|act| matches!(act, Act::Vanish));
        is_amid && act().is_some()
    }

    fn greet(&self) -> FromAgent {
        let act = self.next_act(|act| matches!(act, Act::Skew | Act::Rebuilt));
        let version = if matches!(act, Some(Act::Skew)) {
            "9.9.9"
        } else {
            env!("CARGO_PKG_VERSION")
        };
        let sources = if matches!(act, Some(Act::Rebuilt)) {
            "other"
        } else {
            SOURCES
        };
        FromAgent::Hello {
            protocol: PROTOCOL_VERSION,
            version: version.into(),
            sources: sources.into(),
        }
    }

    fn read_clock(&self) -> FromAgent {
        thread::sleep(self.clock.delay);
        FromAgent::Clock(ClockReading {
            now_ns: now_ns() + self.clock.ahead_ns,
            boot: self.clock.boot.to_owned(),
        })
    }

    /// A request in each ms since then, all of them answered in time.
    fn endured(&self, since_ns: Option<u64>) -> FromAgent {
        let begun_ns = since_ns.unwrap_or_default();
        let requests = (now_ns() - begun_ns) / MS;
        FromAgent::Endured(Box::new(EnduredLoad {
            begun_ns: begun_ns + self.clock.ahead_ns,
            broken: 0,
            spells: vec![RequestSpell {
                outcome: RequestOutcome::InTime,
                requests,
                first_ns: 0,
                last_ns: requests.saturating_sub(1) * MS,
            }],
            lag: Histogram::new(),
            sent_late: Vec::new(),
            latency: Histogram::new(),
        }))
    }

    /// A machine that is busy for 10 ms in the slices of the first member, 20 ms in
    /// those of the next, and a tenth of the time without load.
    fn watch(&self, order: &WatchOrder) -> FromAgent {
        self.clock.starts.lock().unwrap().push(order.start_ns);
        let gains = |number: u64| {
            let mut gains = MachineGains {
                ksoftirqd_ns: MS,
                ..MachineGains::default()
            };
            gains.machine.capacity_ns = 1000 * MS;
            gains.machine.busy_ns = 10 * MS * (number + 1);
            gains.softnet.processed = 7;
            gains
        };
        let sending = (0..order.members.len() as u64 - 1).map(gains);
        FromAgent::Watched(Box::new(Watched {
            // More than may be anybody else's: slow paths still carry what they were given.
            rest: IdleSample {
                busy_ns: 50 * MS,
                capacity_ns: 100 * MS,
            },
            members: sending.filter(|_| order.all).collect(),
            idle: None,
        }))
    }
}

/// Closes the writing side when dropped, as a pipe would.
struct HalfClose(UnixStream);

impl Write for HalfClose {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for HalfClose {
    fn drop(&mut self) {
        let _ = self.0.shutdown(std::net::Shutdown::Write);
    }
}

/// An agent that is none of the system's.
pub(crate) struct NoProcess;

impl AgentProcess for NoProcess {
    fn kill(&mut self) {}

    fn wait(&mut self, _: Duration) -> Result<(), TargetError> {
        Ok(())
    }
}

fn loaded(seen: &Planted) -> FromAgent {
    FromAgent::Loaded(Box::new(SenderMeasurement {
        load: seen.load.load.clone(),
        machine: seen.common.machines[0],
        softnet: seen.common.softnet,
        ksoftirqd_ns: 0,
        protocol: seen.common.protocols[0].clone(),
    }))
}

fn served() -> FromAgent {
    let healthy = healthy();
    FromAgent::Served(Box::new(Served {
        serve: healthy.load.serve,
        cpu: healthy.load.server_cpu,
        machine: healthy.common.machines[0],
        softnet: healthy.common.softnet,
        ksoftirqd_ns: 0,
        protocol: healthy.common.protocols[0].clone(),
    }))
}
