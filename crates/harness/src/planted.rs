//! Made-up observations and a made-up place, for tests.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plumbline_agent::{
    FromAgent, PROTOCOL_VERSION, SOURCES, SenderMeasurement, Served, ToAgent, read_frame,
    write_frame,
};
use plumbline_experiment::{
    Arrival, Asked, DriverChoice, Ends, Family, Plan, Protocol, Scene, Timing, Treatment, Wait,
    Workload, WorkloadKind,
};
use plumbline_record::{
    Common, CpuTime, Fingerprint, Histogram, IdleSample, LoadObservation, LoadResult, ProcessCpu,
    ProtocolCounters, ServeResult, SetUp, SoftnetCounters, Warning,
};

use crate::error::TargetError;
use crate::path::{AgentLink, AgentProcess, Path, Site};
use crate::proof::{Least, Leg};
use crate::snapshot::PathSnapshot;
use crate::target::{Demand, Levels, Target};

pub(crate) const MS: u64 = 1_000_000;

pub(crate) fn workload() -> Workload {
    Workload {
        name: "rr".into(),
        kind: WorkloadKind::Rr,
        protocol: Protocol::Tcp,
        request_size: 64,
        response_size: 64,
        connections: 16,
        arrival: Arrival::Poisson { rate: 10_000.0 },
        keep_alive: true,
        server: Default::default(),
        wait: Wait::Block,
        driver: DriverChoice::Auto,
        zero_copy: false,
        timestamps: 0.0,
        think_ns: 0,
    }
}

pub(crate) fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram {
    let mut histogram = Histogram::new();
    values.into_iter().for_each(|ns| histogram.record(ns));
    histogram
}

/// A made-up load, and what was counted around it.
#[derive(Clone, Debug)]
pub(crate) struct Planted {
    pub(crate) common: Common,
    pub(crate) load: LoadObservation,
}

/// Half a second of 5,000 requests at 60 µs, sent 3 µs late, on a machine that
/// is a third busy with it and has nothing else to do.
pub(crate) fn healthy() -> Planted {
    let latency = histogram((0..5000).map(|i| 60_000 + i));
    Planted {
        load: LoadObservation {
            load: LoadResult {
                driver: "epoll".into(),
                arrival: workload().arrival,
                seed: 1,
                window_ns: 500 * MS,
                planned: 5000,
                sent: 5000,
                completed: 5000,
                bytes_sent: 320_000,
                bytes_received: 320_000,
                service_time: latency.clone(),
                latency,
                send_lag: histogram((0..5000).map(|i| 3_000 + i)),
                generator_lag: histogram((0..5000).map(|i| 3_000 + i % 1000)),
                cpu: ProcessCpu {
                    user_ns: 40 * MS,
                    system_ns: 100 * MS,
                },
                busiest_thread_ns: 70 * MS,
                ..LoadResult::default()
            },
            serve: ServeResult {
                requests: 5000,
                ..ServeResult::default()
            },
            server_cpu: ProcessCpu {
                user_ns: 48 * MS,
                system_ns: 90 * MS,
            },
        },
        common: Common {
            machines: vec![CpuTime {
                capacity_ns: 1000 * MS,
                busy_ns: 330 * MS,
                user_ns: 80 * MS,
                system_ns: 200 * MS,
                softirq_ns: 50 * MS,
                idle_ns: 670 * MS,
                ..CpuTime::default()
            }],
            forwarders_cpu: ProcessCpu::default(),
            ksoftirqd_ns: Some(0),
            companions_cpu: ProcessCpu::default(),
            devices: Vec::new(),
            protocols: vec![ProtocolCounters {
                namespace: "pod1".into(),
                ..ProtocolCounters::default()
            }],
            softnet: SoftnetCounters {
                processed: 20_000,
                ..SoftnetCounters::default()
            },
            idle: IdleSample {
                busy_ns: 5 * MS,
                capacity_ns: 600 * MS,
            },
            rotation: None,
        },
    }
}

/// A plan of `blocks` blocks with two treatments, `host` and `vxlan`.
pub(crate) fn plan(blocks: usize, retries: u32) -> Plan {
    let treatment = |id, label: &str, baseline| Treatment {
        id,
        label: label.into(),
        scene: Scene::of(label),
        copy: 1,
        task: workload().into(),
        timing: Timing {
            warm_up_ns: MS,
            measure_ns: MS,
            drain_ns: MS,
        },
        baseline,
    };
    Plan {
        experiment: "fake".into(),
        question: "Does the loop work?".into(),
        study: None,
        seed: 7,
        treatments: vec![treatment(0, "host", None), treatment(1, "vxlan", Some(0))],
        blocks: (0..blocks)
            .map(|b| if b % 2 == 0 { vec![0, 1] } else { vec![1, 0] })
            .collect(),
        retries,
        pairing: None,
        limits: std::collections::BTreeMap::new(),
        link: plumbline_experiment::Link::default(),
        rotate: false,
        distribution: false,
        controls: 0,
        precision: None,
    }
}

/// What a made-up sender does when it is told to load.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Answers with this.
    Measure(Box<Planted>),
    /// Says that it cannot.
    Fail(&'static str),
    /// Ends without a word.
    Vanish,
    /// Says nothing more, but goes on reading.
    Hang,
    /// Greets as another version.
    Skew,
    /// Greets as another build of this version.
    Rebuilt,
}

/// A target whose sender follows a script: one act per trial, then healthy ones.
pub(crate) struct PlantedTarget {
    acts: Arc<Mutex<Vec<Act>>>,
    server: Actor,
    client: Actor,
    /// What the path's own check says.
    pub(crate) wrong_path: Option<String>,
    /// Whether each end has a machine of its own.
    pub(crate) two_machines: bool,
    levels: Vec<(&'static str, Levels)>,
    prepared: usize,
    /// Whether treatments may take turns.
    pub(crate) rotates: bool,
    /// Blocks in which no machine answers.
    pub(crate) outage: Vec<usize>,
    block: usize,
    /// What it sets up for the next trials, the last of them first.
    pub(crate) set_ups: Vec<SetUp>,
    /// Why it is not ready, although its paths work.
    pub(crate) fault: Option<&'static str>,
    /// The path of the second treatment, where that is another.
    pub(crate) second: Option<Box<PlantedTarget>>,
}

impl PlantedTarget {
    pub(crate) fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        let mut acts: Vec<Act> = acts.into_iter().collect();
        acts.reverse();
        let acts = Arc::new(Mutex::new(acts));
        let actor = |acts: Option<_>| Actor {
            acts,
            listens: ([198, 18, 0, 1], 4000).into(),
        };
        Self {
            server: actor(None),
            client: actor(Some(acts.clone())),
            acts,
            wrong_path: None,
            two_machines: false,
            levels: Vec::new(),
            prepared: 0,
            rotates: false,
            outage: Vec::new(),
            block: 0,
            set_ups: Vec::new(),
            fault: None,
            second: None,
        }
    }

    /// Lets the receiver say that it listens there.
    pub(crate) fn listening_on(mut self, address: impl Into<SocketAddr>) -> Self {
        self.server.listens = address.into();
        self
    }

    /// Acts of the script that were not played.
    pub(crate) fn left(&self) -> usize {
        self.acts.lock().unwrap().len()
    }

    /// Declares levels of a factor.
    pub(crate) fn has(&mut self, factor: &'static str, levels: Levels) {
        self.levels.retain(|(known, _)| *known != factor);
        self.levels.push((factor, levels));
    }

    /// How often it was prepared.
    pub(crate) fn prepared(&self) -> usize {
        self.prepared
    }
}

impl Target for PlantedTarget {
    fn name(&self) -> &'static str {
        "planted"
    }

    fn scenes(
        &mut self,
        asked: &Asked<'_>,
        _: &[Family],
        _: &mut Vec<Warning>,
    ) -> Result<Vec<Scene>, String> {
        Ok(vec![Scene::of(asked.network.word())])
    }

    fn supports(&self, factor: &str) -> Levels {
        if factor == "network" {
            return Levels::Any;
        }
        let declared = self.levels.iter().find(|(known, _)| *known == factor);
        declared.map_or(Levels::Default, |(_, levels)| *levels)
    }

    fn prepare(&mut self, _: &Demand<'_>) -> Result<(), TargetError> {
        self.prepared += 1;
        Ok(())
    }

    fn nodes(&self) -> Vec<String> {
        ["n0", "n1"].map(str::to_owned).into()
    }

    fn is_one_kernel(&self) -> bool {
        !self.two_machines
    }

    fn can_rotate(&self) -> bool {
        self.rotates
    }

    fn begin_block(&mut self, block: usize) {
        self.block = block;
    }

    fn ready(&mut self, _: &Treatment, _: &[usize]) -> Result<(), TargetError> {
        let failed = |fault: &str| Err(TargetError::Failed(fault.to_owned()));
        self.fault.map_or(Ok(()), failed)
    }

    fn set_up(&mut self) -> Option<SetUp> {
        self.set_ups.pop()
    }

    fn stage(
        &self,
        treatment: &Treatment,
        _: Ends,
    ) -> Result<Box<dyn Path + Send + '_>, TargetError> {
        let second = self.second.as_deref().filter(|_| treatment.id == 1);
        Ok(Box::new(second.unwrap_or(self)))
    }

    fn idle_sample(&self, _: &Treatment, _: usize, _: Duration) -> Result<IdleSample, TargetError> {
        if self.outage.contains(&self.block) {
            return Err(TargetError::Failed("the line is dead".to_owned()));
        }
        Ok(healthy().common.idle)
    }

    fn fingerprint(&mut self) -> Result<Fingerprint, TargetError> {
        Ok(Fingerprint::default())
    }

    fn warnings(&self) -> Vec<Warning> {
        Vec::new()
    }

    fn teardown(&mut self) -> Vec<TargetError> {
        Vec::new()
    }
}

impl Path for PlantedTarget {
    fn server(&self) -> &dyn Site {
        &self.server
    }

    fn client(&self) -> &dyn Site {
        &self.client
    }

    fn is_on_two_machines(&self) -> bool {
        self.two_machines
    }

    fn snapshot(&self) -> Result<PathSnapshot, TargetError> {
        Ok(PathSnapshot::default())
    }

    fn legs(&self) -> Vec<Leg> {
        Vec::new()
    }

    fn check_path(&self, _: &PathSnapshot, _: &PathSnapshot, _: Least) -> Option<String> {
        self.wrong_path.clone()
    }
}

/// A made-up agent: the sender if it has a script, else the receiver.
struct Actor {
    acts: Option<Arc<Mutex<Vec<Act>>>>,
    /// Where the receiver says that it listens.
    listens: SocketAddr,
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
        let act = self.acts.as_ref().map(|acts| {
            let next = acts.lock().unwrap().pop();
            next.unwrap_or_else(|| Act::Measure(Box::new(healthy())))
        });
        let mut output = theirs.try_clone().unwrap();
        let listens = self.listens;
        std::thread::spawn(move || play((act, listens), theirs, &mut output));
        Ok(AgentLink {
            input: Box::new(HalfClose(ours.try_clone().unwrap())),
            output: Box::new(ours),
            process: Box::new(NoProcess),
        })
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

struct NoProcess;

impl AgentProcess for NoProcess {
    fn kill(&mut self) {}

    fn wait(&mut self, _: Duration) -> Result<(), TargetError> {
        Ok(())
    }
}

fn play((act, listens): (Option<Act>, SocketAddr), mut input: impl Read, output: &mut impl Write) {
    while let Ok(message) = read_frame::<ToAgent>(&mut input) {
        let answer = match (message, &act) {
            (ToAgent::Hello { .. }, act) => {
                let skewed = matches!(act, Some(Act::Skew));
                let version = if skewed {
                    "9.9.9"
                } else {
                    env!("CARGO_PKG_VERSION")
                };
                FromAgent::Hello {
                    protocol: PROTOCOL_VERSION,
                    version: version.into(),
                    sources: if matches!(act, Some(Act::Rebuilt)) {
                        "other".into()
                    } else {
                        SOURCES.into()
                    },
                }
            }
            (ToAgent::Serve(_), _) => FromAgent::Listening { address: listens },
            (ToAgent::Load(_), Some(Act::Measure(seen))) => loaded(seen),
            (ToAgent::Load(_), Some(Act::Fail(why))) => FromAgent::Failed {
                error: (*why).into(),
            },
            (ToAgent::Load(_), Some(Act::Vanish)) => return,
            (ToAgent::Stop, None) => served(),
            _ => continue,
        };
        if write_frame(output, &answer).is_err() {
            return;
        }
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
