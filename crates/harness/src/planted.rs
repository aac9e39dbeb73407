//! Made-up observations and a made-up place, for tests.

mod actor;
mod object;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plumbline_experiment::{
    Arrival, Asked, DriverChoice, Ends, Family, Launch, ObjectChange, Plan, ProgrammedObject,
    Protocol, Scene, TaskKind, Timing, Treatment, Wait, Workload, WorkloadKind,
};
use plumbline_record::{
    Common, CpuTime, Fingerprint, Histogram, IdleSample, LaunchObservation, LoadObservation,
    LoadResult, Observation, ProcessCpu, ProtocolCounters, ServeResult, SetUp, SoftnetCounters,
    Warning, What,
};

use crate::error::TargetError;
use crate::event::EventCommand;
use crate::path::{Path, PodLauncher, Programmable, Site, StandingPolicy};
use crate::proof::{Least, Leg};
use crate::snapshot::PathSnapshot;
use crate::target::{Demand, Levels, Target};
use actor::Actor;
pub(crate) use actor::{NoProcess, PlantedClock};
pub(crate) use object::PlantedObject;

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
            forwarders_cpu: Some(ProcessCpu::default()),
            ksoftirqd_ns: Some(0),
            companions_cpu: ProcessCpu::default(),
            neighbour: None,
            devices: Vec::new(),
            protocols: vec![ProtocolCounters {
                namespace: "pod1".into(),
                ..ProtocolCounters::default()
            }],
            rules: Vec::new(),
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

/// It as a trial's.
pub(crate) fn seen(planted: Planted) -> Observation {
    Observation {
        common: planted.common,
        what: What::Load(Box::new(planted.load)),
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
        slice_ns: 25_000_000,
        distribution: false,
        controls: 0,
        precision: None,
        sequential: None,
    }
}

/// What a made-up sender does when it is told to load.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Answers with this.
    Measure(Box<Planted>),
    /// Says that it cannot.
    Fail(&'static str),
    /// Says that it heard of the start too late.
    Late,
    /// Ends without a word, of a load that endures after a second.
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
    pub(crate) server: Actor,
    pub(crate) client: Actor,
    /// What the path's own check says.
    pub(crate) wrong_path: Option<String>,
    /// What its policies let through, from the nth time on that they are asked.
    pub(crate) unenforced: Option<(usize, String)>,
    asked: AtomicUsize,
    /// How many samples without load still catch somebody else's.
    pub(crate) busy_samples: AtomicUsize,
    /// Whether each end has a machine of its own.
    pub(crate) two_machines: bool,
    levels: Vec<(&'static str, Levels)>,
    /// Which tasks are done on its path.
    pub(crate) does: fn(TaskKind) -> bool,
    /// For how long its object is there when a command is begun.
    pub(crate) opens: Option<Duration>,
    /// What is seen of pods that are launched there.
    pub(crate) launched: LaunchObservation,
    prepared: usize,
    /// Whether treatments may take turns.
    pub(crate) rotates: bool,
    pub(crate) site_of: fn(&Treatment) -> String,
    /// Blocks in which no machine answers.
    pub(crate) outage: Vec<usize>,
    block: usize,
    /// What it sets up for the next trials, the last of them first.
    pub(crate) set_ups: Vec<SetUp>,
    /// Why it is not ready, although its paths work.
    pub(crate) fault: Option<&'static str>,
    /// The path of the second treatment, where that is another.
    pub(crate) second: Option<Box<PlantedTarget>>,
    /// Whether no packet gets through the path of the second treatment.
    pub(crate) second_is_dead: bool,
}

impl PlantedTarget {
    pub(crate) fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        let mut acts: Vec<Act> = acts.into_iter().collect();
        acts.reverse();
        let acts = Arc::new(Mutex::new(acts));
        let actor = |acts: Option<_>| Actor {
            acts,
            listens: ([198, 18, 0, 1], 4000).into(),
            clock: PlantedClock::default(),
            object: PlantedObject::default(),
        };
        Self {
            server: actor(None),
            client: actor(Some(acts.clone())),
            acts,
            wrong_path: None,
            unenforced: None,
            asked: AtomicUsize::new(0),
            busy_samples: AtomicUsize::new(0),
            two_machines: false,
            levels: Vec::new(),
            does: |task| matches!(task, TaskKind::Load(_)),
            opens: None,
            launched: LaunchObservation::default(),
            prepared: 0,
            rotates: false,
            site_of: |_| String::new(),
            outage: Vec::new(),
            block: 0,
            set_ups: Vec::new(),
            fault: None,
            second: None,
            second_is_dead: false,
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

    fn does(&self, task: TaskKind) -> bool {
        (self.does)(task)
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

    fn site_of(&self, treatment: &Treatment) -> String {
        (self.site_of)(treatment)
    }

    fn can_rotate(&self, _: &Treatment, _: &Treatment) -> bool {
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

    fn may_try_again(&self, treatment: &Treatment) -> bool {
        !self.carries_nothing(treatment)
    }

    fn carries_nothing(&self, treatment: &Treatment) -> bool {
        self.second_is_dead && treatment.id == 1
    }

    fn stage(
        &self,
        treatment: &Treatment,
        _: Ends,
    ) -> Result<Box<dyn Path + Send + '_>, TargetError> {
        if self.carries_nothing(treatment) {
            return Err(TargetError::Unreached("it leads nowhere".to_owned()));
        }
        let second = self.second.as_deref().filter(|_| treatment.id == 1);
        Ok(Box::new(second.unwrap_or(self)))
    }

    fn idle_sample(&self, _: &Treatment, _: usize, _: Duration) -> Result<IdleSample, TargetError> {
        if self.outage.contains(&self.block) {
            return Err(TargetError::Failed("the line is dead".to_owned()));
        }
        let mut idle = healthy().common.idle;
        let one_less = |left: usize| left.checked_sub(1);
        let order = Ordering::SeqCst;
        if self
            .busy_samples
            .fetch_update(order, order, one_less)
            .is_ok()
        {
            idle.busy_ns = idle.capacity_ns;
        }
        Ok(idle)
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

    fn check_policies(&self) -> Result<Option<String>, TargetError> {
        let before = self.asked.fetch_add(1, Ordering::SeqCst);
        let found = self.unenforced.as_ref().filter(|(nth, _)| before >= *nth);
        Ok(found.map(|(_, what)| what.clone()))
    }

    fn programmable(
        &self,
        _: ProgrammedObject,
        _: SocketAddr,
    ) -> Result<Box<dyn Programmable + '_>, TargetError> {
        Ok(Box::new(self.client.object.clone()))
    }

    fn confine(
        &self,
        _: &[(Protocol, SocketAddr)],
    ) -> Result<Box<dyn StandingPolicy + '_>, TargetError> {
        Ok(Box::new(self.client.object.clone()))
    }

    fn launch<'p>(
        &'p self,
        _: &'p Launch,
        _: &'p AtomicBool,
    ) -> Result<PodLauncher<'p>, TargetError> {
        Ok(Box::new(|| Ok(self.launched.clone())))
    }

    fn start_command(&self, command: &str, _: Option<&str>) -> Result<EventCommand, TargetError> {
        if let Some(length) = self.opens {
            let object = &self.client.object;
            object.change(ObjectChange::Add)?;
            object.later(length).change(ObjectChange::Remove)?;
        }
        EventCommand::start(command, &[], None)
    }
}
