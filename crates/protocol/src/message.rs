//! What a controller and an agent say to each other.

use std::net::{IpAddr, SocketAddr};

use plumbline_experiment::{CongestionControl, Slice, Timing, Workload};
use plumbline_record::{
    CpuTime, Floor, Histogram, IdleSample, LateSpell, LoadResult, ProcessCpu, ProtocolCounters,
    RequestSpell, ServeResult, SoftnetCounters,
};
use serde::{Deserialize, Serialize};

use crate::launch::{MeetOrder, MeetingPhase, MetPod};
use crate::probe::{ProbeOrder, Probed};
use crate::secret::Secret;
use crate::sight::{LookOrder, NamespaceCounters, Sight};
use crate::sounding::{SoundOrder, Sounded};
use crate::toil::{ToilOrder, Toiled};
use crate::trace::{TraceAnswer, TraceOrder};
use crate::watch::{WatchOrder, Watched};

/// Version of this protocol. Both sides must have the same; nothing is guessed.
pub const PROTOCOL_VERSION: u32 = 20;

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
    /// Act as the sender, once, of a load that endures what happens to its path, until told
    /// to stop.
    Endure(LoadOrder),
    /// Work as a neighbour that sends nothing, once.
    Toil(ToilOrder),
    /// Begin with the turns of a load whose connections are open, or of such work.
    Begin {
        /// The start, nanoseconds of the agent's monotonic clock.
        start_ns: u64,
    },
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
    /// Listen at these addresses, and at no others any more, so that connections to them
    /// can be tried. Whoever observes may be asked this, and the next, too.
    Listen {
        /// Addresses of this machine.
        addresses: Vec<SocketAddr>,
    },
    /// Try a connection.
    Connect {
        /// Where to.
        address: SocketAddr,
        /// For how long, nanoseconds.
        limit_ns: u64,
    },
    /// Wait for the pods of a launch. Whoever observes may be asked this, and the next, too.
    Meet(MeetOrder),
    /// Say which of them have come, and go over to this.
    Pass {
        /// What to do from now on.
        phase: MeetingPhase,
    },
    /// Try connections; any number of times, one after the other.
    Probe(ProbeOrder),
    /// Do one end's part in sounding a path; any number of times.
    Sound(SoundOrder),
    /// Follow requests through the kernel; any number of times.
    Trace(TraceOrder),
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
        /// Hash of the sources that it is made of; empty from those that did not tell.
        #[serde(default)]
        sources: String,
    },
    /// The receiver is ready, or the peer of pods.
    Listening {
        /// Where; the kernel picked the port.
        address: SocketAddr,
    },
    /// The connections of a load that takes turns are open, or work can begin.
    Opened,
    /// The start of the turns was over when this load was told of it; it has sent nothing.
    Late,
    /// The work has ended.
    Toiled(Toiled),
    /// The load has ended.
    Loaded(Box<SenderMeasurement>),
    /// The load that was to endure has ended.
    Endured(Box<EnduredLoad>),
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
    /// The agent listens where it was told to.
    Listens,
    /// A connection was tried.
    Tried {
        /// What kept it from getting through; `None` when it did.
        refused: Option<String>,
    },
    /// The pods of a launch that have come so far.
    Met {
        /// By number.
        pods: Vec<MetPod>,
    },
    /// The connections that were tried.
    Probed(Box<Probed>),
    /// What came of one end's part in sounding a path.
    Sounded(Box<Sounded>),
    /// What came of following requests.
    Traced(Box<TraceAnswer>),
    /// What was ordered could not be done.
    Failed {
        /// Why, with the remedy.
        error: String,
    },
}

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
    /// How TCP finds the rate of the path; `None` as the namespace has it.
    pub congestion: Option<CongestionControl>,
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
    /// The slices to run in, where the load takes turns with others. Then it says when
    /// its connections are open, and waits for the start.
    pub turns: Option<Vec<Slice>>,
    /// Seed of the arrival process.
    pub seed: u64,
    /// CPUs to run on; empty for any.
    pub cpus: Vec<usize>,
    /// How TCP finds the rate of the path; `None` as the namespace has it.
    pub congestion: Option<CongestionControl>,
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

/// What the sender saw of a load that endured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EnduredLoad {
    /// When the first request was intended, nanoseconds of the agent's monotonic clock.
    pub begun_ns: u64,
    /// Connections that were open then and are lost.
    pub broken: u64,
    /// All requests, by their intended moments since then.
    pub spells: Vec<RequestSpell>,
    /// How much later than intended requests were sent through the sender's own fault.
    pub lag: Histogram,
    /// When that was more than 10 ms, by intended moments since then.
    pub sent_late: Vec<LateSpell>,
    /// From intended to answered, or as long as it was waited for.
    pub latency: Histogram,
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
