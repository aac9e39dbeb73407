//! What was observed in one trial: what any exercise leaves behind, and what only
//! its own kind sees.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    CpuTime, DeviceCounters, Fingerprint, LaunchObservation, LoadResult, ProcessCpu,
    ProgrammingObservation, ProtocolCounters, ServeResult, SoftnetCounters, SurviveObservation,
};

/// What was observed in one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observation {
    /// What is counted around every exercise.
    pub common: Common,
    /// What only this exercise saw, or what was set up.
    pub what: What,
}

/// What an exercise saw, by its kind. Setting up has no path and is no exercise,
/// but is recorded as one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "exercise", rename_all = "kebab-case")]
pub enum What {
    /// Load from one agent to another.
    Load(Box<LoadObservation>),
    /// Something added to or removed from what a cluster programs.
    Programming(Box<ProgrammingObservation>),
    /// Pods that were launched.
    Launch(Box<LaunchObservation>),
    /// Traffic while a command did something to its path.
    Survive(Box<SurviveObservation>),
    /// Bringing up a place with a network.
    SetUp(Box<SetUp>),
}

/// What is counted around every exercise. All of it is empty where there was no
/// path to count on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Common {
    /// CPU of the machine(s) under the path over the window. One entry when
    /// both endpoints share a kernel, else client's and server's (N-12).
    pub machines: Vec<CpuTime>,
    /// CPU of the network's own processes over the whole trial: what forwards
    /// packets in user space. It is part of the machine's, as all cost is. Null where it
    /// cannot be seen which they are; then earlier builds said that they used nothing.
    #[serde(default)]
    pub forwarders_cpu: Option<ProcessCpu>,
    /// CPU of the kernel's threads for soft interrupts (`ksoftirqd`, and those of devices that
    /// have some) over the window, as far as they can be seen, nanoseconds; null in runs that
    /// did not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ksoftirqd_ns: Option<u64>,
    /// CPU of the agents of other pairs that ran at the same time on the same
    /// kernel, over the window: then the machine's CPU is that of all pairs, and
    /// what one of them costs cannot be told.
    #[serde(default, skip_serializing_if = "ProcessCpu::is_none")]
    pub companions_cpu: ProcessCpu,
    /// What worked beside the path meanwhile, where the scene has neighbours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbour: Option<NeighbourRecord>,
    /// Devices of the path over the whole trial, warm-up and drain included; without those
    /// that a neighbour's packets cross too.
    pub devices: Vec<DeviceCounters>,
    /// Protocol counters of the path's namespaces over the whole trial.
    pub protocols: Vec<ProtocolCounters>,
    /// The rules that stood on the path's nodes, where some were laid there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<NodeRules>,
    /// Receive queues of the machine(s) over the window.
    pub softnet: SoftnetCounters,
    /// Idle baseline that costs are reduced by: the machine(s) without load.
    pub idle: IdleSample,
    /// The slices that the window consists of, where it took turns with those of
    /// other treatments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation: Option<RotationRecord>,
}

/// What a neighbour did in the slices of its treatment that were recorded, or in a window
/// that begins with the measured one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NeighbourRecord {
    /// How long these were, nanoseconds.
    pub window_ns: u64,
    /// How much was done: payload bytes of a stream, datagrams that arrived, requests that
    /// were answered, rules that were added or removed, or nanoseconds of computing.
    pub done: u64,
    /// CPU of its processes meanwhile.
    pub cpu: ProcessCpu,
}

/// What stood on a node for services and policies, and the connections that it tracked. Rules,
/// chains and elements are those that a lab laid there; in a cluster nobody sees them, and they
/// are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeRules {
    /// The node's namespace, or in a cluster its name.
    pub namespace: String,
    /// Rules.
    pub rules: u64,
    /// Chains that are called by rules, or by the kernel where the system makes its own.
    pub chains: u64,
    /// Elements of sets and maps.
    pub elements: u64,
    /// Connections that the node tracked when the trial ended.
    pub connections: u64,
    /// How many it may track.
    pub connections_max: u64,
    /// Connections that were dropped because its table was full, in the whole trial.
    pub connections_dropped: u64,
}

/// A window in slices: treatments took turns, each of them and *no load* once in a
/// rotation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RotationRecord {
    /// Treatments that took turns, no load not counted.
    pub treatments: u32,
    /// Rotations that were recorded: slices of the window.
    pub slices: u32,
    /// Length of a slice, nanoseconds.
    pub slice_ns: u64,
    /// The first part of each slice, which was not recorded, nanoseconds.
    pub skipped_ns: u64,
    /// How much earlier or later than on the sender's machine the slices may have been on
    /// the receiver's, nanoseconds; null where they are one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver_error_ns: Option<u64>,
}

/// What both ends of a load saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadObservation {
    /// The sender's side.
    pub load: LoadResult,
    /// The receiver's side.
    pub serve: ServeResult,
    /// CPU of the receiving process from listening to stop, warm-up and drain
    /// included; [`window_share`](Self::window_share) scales it.
    pub server_cpu: ProcessCpu,
}

/// What it took to bring up a place with a network, such as a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetUp {
    /// The network that it was brought up with.
    pub network: String,
    /// From the start of the command to its end, or until it was given up, in
    /// nanoseconds.
    pub took_ns: u64,
    /// From there until every path carried packets, nanoseconds; `None` where
    /// that was not reached.
    pub paths_ns: Option<u64>,
    /// Whether it came up.
    pub came_up: bool,
    /// What the command said: a file in the run directory.
    pub log: String,
    /// The place as it was (C-13); `None` where it did not come up.
    pub fingerprint: Option<Fingerprint>,
}

/// The machine without load: measured once in each block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleSample {
    /// Busy CPU time, nanoseconds.
    pub busy_ns: u64,
    /// Wall time times CPUs of the sample, nanoseconds.
    pub capacity_ns: u64,
}

impl Observation {
    /// What both ends of a load saw; `None` for any other exercise.
    pub fn load(&self) -> Option<&LoadObservation> {
        match &self.what {
            What::Load(load) => Some(load),
            _ => None,
        }
    }

    /// What was seen of a change; `None` for any other exercise.
    pub fn programming(&self) -> Option<&ProgrammingObservation> {
        match &self.what {
            What::Programming(seen) => Some(seen),
            _ => None,
        }
    }

    /// What was seen of pods that were launched; `None` for any other exercise.
    pub fn launch(&self) -> Option<&LaunchObservation> {
        match &self.what {
            What::Launch(seen) => Some(seen),
            _ => None,
        }
    }

    /// What was seen of pods that were launched, by themselves or beside a command; `None`
    /// where there were none.
    pub fn pods(&self) -> Option<&LaunchObservation> {
        match &self.what {
            What::Launch(seen) => Some(seen),
            What::Survive(seen) => seen.launched.as_ref(),
            _ => None,
        }
    }

    /// What was seen of traffic while a command ran; `None` for any other exercise.
    pub fn survive(&self) -> Option<&SurviveObservation> {
        match &self.what {
            What::Survive(seen) => Some(seen),
            _ => None,
        }
    }

    /// As [`load`](Self::load), to change it.
    pub fn load_mut(&mut self) -> Option<&mut LoadObservation> {
        match &mut self.what {
            What::Load(load) => Some(load),
            _ => None,
        }
    }
}

impl LoadObservation {
    /// What part of all that the receiver saw in its life belongs to the
    /// measured window, from 0 to 1: requests, or payload bytes for bulk.
    ///
    /// Receiver, devices and protocols are counted from listening to stop. A
    /// count of theirs times this share is the count of the window, as far as
    /// each request or byte costs the same in the warm-up. `None` when the
    /// receiver saw nothing.
    pub fn window_share(&self) -> Option<f64> {
        let (load, serve) = (&self.load, &self.serve);
        let (in_window, in_life) = match (serve.datagrams, serve.requests) {
            (Some(datagrams), _) => (datagrams.bytes, serve.bytes_received),
            (None, 0) => (load.bytes_sent, serve.bytes_received),
            (None, requests) => (load.completed, requests),
        };
        (in_life > 0).then(|| (in_window as f64 / in_life as f64).min(1.0))
    }
}
