//! What a controller and an agent say to each other.

use std::net::{IpAddr, SocketAddr};

use plumbline_engine::{Secret, Turns};
use plumbline_experiment::{Timing, Workload};
use plumbline_record::{
    CpuTime, Floor, IdleSample, LoadResult, ProcessCpu, ProtocolCounters, ServeResult,
    SoftnetCounters,
};
use serde::{Deserialize, Serialize};

use crate::idle::{WatchOrder, Watched};
use crate::sight::{LookOrder, NamespaceCounters, Sight};

/// Version of this protocol. Both sides must have the same; nothing is guessed.
pub const PROTOCOL_VERSION: u32 = 9;

/// From the controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum ToAgent {
    /// First frame.
    Hello {
        /// [`PROTOCOL_VERSION`] of the controller.
        protocol: u32,
        /// Version of Plumbline.
        version: String,
    },
    /// Act as the receiver.
    Serve(ServeOrder),
    /// Act as the sender, once.
    Load(LoadOrder),
    /// Look at this machine. This and the next five may be ordered any number
    /// of times, to observe a machine that is not the controller's own.
    Look(LookOrder),
    /// Read the counters of these devices, and of the namespace.
    Count {
        /// Names of devices.
        devices: Vec<String>,
    },
    /// Measure the machine without load.
    Rest {
        /// For how long, nanoseconds.
        length_ns: u64,
    },
    /// Measure the generator's own floor, without a network (L-13).
    Floor {
        /// CPUs of the sender; empty for any.
        client_cpus: Vec<usize>,
        /// CPUs of the receiver; empty for any.
        server_cpus: Vec<usize>,
    },
    /// Say what the clock shows that slices are dates of. A sender and a receiver
    /// answer too.
    Clock,
    /// Watch the CPUs of this machine while treatments take turns.
    Watch(WatchOrder),
    /// Stop what runs, and report what was seen.
    Stop,
    /// The controller is alive.
    Ping,
}

/// From the agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum FromAgent {
    /// Answer to the first frame.
    Hello {
        /// [`PROTOCOL_VERSION`] of the agent.
        protocol: u32,
        /// Version of Plumbline.
        version: String,
        /// Its [`SOURCES`](crate::SOURCES); empty from those that did not tell.
        #[serde(default)]
        sources: String,
    },
    /// The receiver is ready.
    Listening {
        /// Where; the kernel picked the port.
        address: SocketAddr,
    },
    /// The load has ended.
    Loaded(Box<SenderMeasurement>),
    /// The receiver has stopped.
    Served(Box<Served>),
    /// What the machine looks like.
    Seen(Box<Sight>),
    /// Running totals.
    Counted(NamespaceCounters),
    /// The machine without load.
    Rested {
        /// What it used.
        sample: IdleSample,
    },
    /// The generator without a network.
    Floored {
        /// Its floor; `None` when it was stopped.
        floor: Option<Floor>,
    },
    /// What the clock shows.
    Clock(ClockReading),
    /// The CPUs while treatments took turns.
    Watched(Box<Watched>),
    /// What was ordered could not be done.
    Failed {
        /// Why, with the remedy.
        error: String,
    },
}

/// What came of an order, or why it could not be carried out.
pub(crate) type JobOutcome = Result<FromAgent, Box<dyn std::error::Error>>;

/// How to act as the receiver.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServeOrder {
    /// What will come.
    pub workload: Workload,
    /// Address to listen on.
    pub address: IpAddr,
    /// Port to listen on; 0 lets the kernel pick.
    pub port: u16,
    /// What the sender will show; whatever comes without it is dropped.
    pub secret: Secret,
    /// CPUs to run on; empty for any.
    pub cpus: Vec<usize>,
}

/// How to act as the sender.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoadOrder {
    /// What to send.
    pub workload: Workload,
    /// The only address to send to (S-5a).
    pub target: SocketAddr,
    /// What to show to the receiver.
    pub secret: Secret,
    /// Phases.
    pub timing: Timing,
    /// When to run, where the load takes turns with others.
    pub turns: Option<Turns>,
    /// Seed of the arrival process.
    pub seed: u64,
    /// CPUs to run on; empty for any.
    pub cpus: Vec<usize>,
}

/// The monotonic clock of an agent, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// What it shows, nanoseconds.
    pub now_ns: u64,
    /// A random number that every kernel draws at its start: two agents with the same
    /// number run on one kernel. Empty where it is not shown.
    pub boot: String,
}

/// What the sender measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SenderMeasurement {
    /// The load.
    pub load: LoadResult,
    /// The sender's machine over the window.
    pub machine: CpuTime,
    /// Its receive queues over the window.
    pub softnet: SoftnetCounters,
    /// CPU time of its threads for soft interrupts over the window, nanoseconds; 0
    /// where they cannot be seen.
    pub ksoftirqd_ns: u64,
    /// The sender's namespace, from the first connection to the last answer.
    pub protocol: ProtocolCounters,
}

/// What the receiver measured, from listening to its stop.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Served {
    /// The service.
    pub serve: ServeResult,
    /// The receiver's process.
    pub cpu: ProcessCpu,
    /// The receiver's machine.
    pub machine: CpuTime,
    /// Its receive queues.
    pub softnet: SoftnetCounters,
    /// CPU time of its threads for soft interrupts, nanoseconds; 0 where they cannot be
    /// seen.
    pub ksoftirqd_ns: u64,
    /// The receiver's namespace.
    pub protocol: ProtocolCounters,
}
