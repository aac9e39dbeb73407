//! What a harness asks of the place where it runs.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumbline_experiment::Treatment;
use plumbline_record::{
    DeviceCounters, Fingerprint, Floor, IdleSample, ProcessCpu, ProtocolCounters, SetUp, Warning,
};

/// Why a target could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The kernel, the privileges or the cluster lack something. A value, not
    /// a fault: runs leave the network out and say so, tests count a skip.
    #[error("{what} is not supported here: {needs}")]
    Unsupported {
        /// The network or feature.
        what: String,
        /// What is missing, and how to get it.
        needs: String,
    },
    /// Something that should have worked did not. The text holds what, on
    /// what, the probable cause and the remedy.
    #[error("{0}")]
    Failed(String),
}

/// Where the endpoints run; empty for any CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus {
    /// Numbers of the CPUs of the sender.
    pub client: Vec<usize>,
    /// Numbers of the CPUs of the receiver.
    pub server: Vec<usize>,
}

impl Cpus {
    /// The first of some CPUs for the sender, the last for the receiver; any where
    /// there are no two.
    pub fn apart(cpus: &[usize]) -> Self {
        match cpus {
            [first, .., last] => Self {
                client: vec![*first],
                server: vec![*last],
            },
            _ => Self::default(),
        }
    }
}

/// A place where experiments run.
pub trait Target {
    /// `lab`, `kubernetes` or `hosts`.
    fn name(&self) -> &'static str;

    /// Checks that every network of the plan can be built, before anything is
    /// changed. The first `Unsupported` is returned with its network.
    fn validate(&self, treatments: &[Treatment]) -> Result<(), TargetError>;

    /// Makes the path of a treatment ready, or gives the one that stands.
    fn path(&mut self, treatment: &Treatment) -> Result<&mut dyn Path, TargetError>;

    /// The CPUs that the endpoints are to be held on. Asked when all paths stand.
    /// By default any.
    fn cpus(&self) -> Cpus {
        Cpus::default()
    }

    /// What the generator measures on `cpus` where there is no network (L-13);
    /// `None` when it was interrupted, or nothing stands to measure on. By default
    /// that is on the machine of the caller.
    fn floor(
        &mut self,
        cpus: Cpus,
        interrupted: &AtomicBool,
    ) -> Result<Option<Floor>, TargetError> {
        plumbline_agent::floor(&cpus.client, &cpus.server, interrupted).map_err(|error| {
            TargetError::Failed(format!(
                "the generator cannot be measured without a network: {error}"
            ))
        })
    }

    /// The environment (C-13). Called once, after all paths have been made.
    fn fingerprint(&mut self) -> Result<Fingerprint, TargetError>;

    /// The name of the machines under a treatment: treatments with the same name
    /// share the idle sample of a block. By default all are on one machine.
    fn machines(&self, _treatment: &Treatment) -> &str {
        ""
    }

    /// Measures the machines under a treatment without load, for `length`. By
    /// default that is the machine of the caller.
    fn idle_sample(
        &mut self,
        _treatment: &Treatment,
        length: Duration,
    ) -> Result<IdleSample, TargetError> {
        plumbline_agent::idle_sample(length).map_err(|error| {
            TargetError::Failed(format!(
                "the CPU time of this machine cannot be read: {error}; is /proc mounted?"
            ))
        })
    }

    /// A block begins. What must not outlive a block, such as a cluster that is
    /// made anew for each, may end here. By default nothing does.
    fn begin_block(&mut self, _block: usize) {}

    /// What it took to bring up the place of the last treatment, if it was
    /// brought up since this was last asked.
    fn set_up(&mut self) -> Option<SetUp> {
        None
    }

    /// Whether a treatment that failed is worth another attempt in the same
    /// block. By default every one is.
    fn may_try_again(&self, _treatment: &Treatment) -> bool {
        true
    }

    /// What to distrust in everything measured here.
    fn warnings(&self) -> Vec<Warning>;

    /// Undoes everything, in reverse, without stopping at an error.
    /// Gives all errors; an empty list is the proof that nothing was left.
    fn teardown(&mut self) -> Vec<TargetError>;
}

/// Two sites and what joins them.
pub trait Path {
    /// Where the receiver runs.
    fn server(&self) -> &dyn Site;

    /// Receivers beside [`server`](Self::server), where an address of the
    /// network's own spreads the connections over several.
    fn further_servers(&self) -> Vec<&dyn Site> {
        Vec::new()
    }

    /// Where the sender runs.
    fn client(&self) -> &dyn Site;

    /// Whether each end has a kernel of its own. Then the cost is that of both
    /// machines (N-10).
    fn is_on_two_machines(&self) -> bool {
        false
    }

    /// Where the sender sends to, given where the receiver listens: something
    /// else where an address of the network's own stands before the receiver.
    fn front(&self, listening: SocketAddr) -> SocketAddr {
        listening
    }

    /// Counters of the path's devices and namespaces since they were made.
    fn snapshot(&mut self) -> Result<PathSnapshot, TargetError>;

    /// Says what is wrong when the devices did not carry what this network
    /// must carry for `packets` payload packets between the two snapshots
    /// `None` when packets took the path.
    fn check_path(
        &self,
        before: &PathSnapshot,
        after: &PathSnapshot,
        packets: u64,
    ) -> Option<String>;
}

/// Counters of a path at one moment, as running totals.
#[derive(Clone, Debug, Default)]
pub struct PathSnapshot {
    /// Devices in the order of the path.
    pub devices: Vec<DeviceCounters>,
    /// Namespaces of the path.
    pub protocols: Vec<ProtocolCounters>,
    /// CPU time of processes that forward packets of the path.
    pub forwarders: ProcessCpu,
}

/// One endpoint's place.
pub trait Site {
    /// Name for messages: `node1`, `pod2`, `default/plumbline-server`.
    fn name(&self) -> &str;

    /// The address that the other side reaches this one by.
    fn address(&self) -> IpAddr;

    /// The port that a receiver here has to listen on; 0 lets the kernel pick.
    fn port(&self) -> u16 {
        0
    }

    /// Starts a fresh agent process.
    fn start_agent(&self) -> Result<AgentLink, TargetError>;
}

/// A running agent: its byte streams and its process.
pub struct AgentLink {
    /// The agent's standard input. Closing it ends the agent.
    pub input: Box<dyn Write + Send>,
    /// The agent's standard output.
    pub output: Box<dyn Read + Send>,
    /// The process behind it.
    pub process: Box<dyn AgentProcess>,
}

/// The process of an agent.
pub trait AgentProcess: Send {
    /// Ends it at once. Idempotent.
    fn kill(&mut self);

    /// Waits until it has ended, at most `limit`; gives what it wrote to
    /// standard error when it ended badly.
    fn wait(&mut self, limit: Duration) -> Result<(), TargetError>;
}
