//! Reasons to distrust a number. The report has the words and the remedies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reason to distrust, with the figures behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "warning", rename_all = "kebab-case")]
pub enum Warning {
    /// Both endpoints of a lab run on one kernel (N-12).
    OneKernel,
    /// Phases were shortened to stay within the experiment's budget of time.
    ShorterWindows {
        /// What is left of them, 0 to 1.
        share: f64,
    },
    /// The server that the workload asks for was not installed where the
    /// receiver ran. Only in runs of earlier builds, which let another answer.
    OtherServer {
        /// What was asked for.
        wanted: String,
        /// What answered.
        answered: String,
    },
    /// The nodes of a cluster are not what a comparison wants.
    Nodes {
        /// What is wrong with them, and the remedy.
        detail: String,
    },
    /// No NetworkPolicy keeps others from the pods that receive, though the run wanted one.
    Unguarded {
        /// Why there is none, and the remedy, if there is one.
        why: String,
    },
    /// Services or policies stood in a cluster, and nobody saw how many connections its nodes
    /// tracked.
    TrackingUnseen,
    /// Too few CPUs to keep sender and receiver apart.
    SharedCpus {
        /// Online CPUs.
        cpus: u32,
    },
    /// The kernel is a program on another one: its system calls and its timers
    /// cost many times what they cost on a machine.
    UserModeKernel,
    /// A closed loop cannot see a queue (L-4).
    ClosedLoop {
        /// Concurrent requests.
        outstanding: u32,
    },
    /// Fewer blocks than the comparisons need to reach significance (C-7).
    TooFewBlocks {
        /// Blocks of the plan.
        blocks: u32,
        /// Blocks that it takes.
        needed: u32,
    },
    /// A command was repeated so few times that a rare outage is likely not among them.
    FewRepetitions {
        /// How many times.
        repetitions: u32,
        /// How many times it should be.
        needed: u32,
    },
    /// Treatments did not take turns, because agents have no clock in common that is
    /// known well enough.
    NoTurns {
        /// Which agents, and what is wrong with their clocks.
        why: String,
    },
    /// The hypervisor took CPU time.
    Steal {
        /// Share of capacity, 0 to 1.
        share: f64,
    },
    /// Policies did not act before or after a trial, which voids its block.
    NotEnforced {
        /// The label of the treatments.
        label: String,
        /// How many policies they have; 0 where one belongs to the task.
        policies: u32,
        /// Whose rules they are.
        enforcer: String,
        /// Which connection was forbidden and got through, or was allowed and did not.
        detail: String,
        /// In how many blocks.
        blocks: u32,
        /// Blocks of the plan.
        planned: u32,
    },
    /// A network of the experiment could not be built here.
    Unsupported {
        /// Which.
        network: String,
        /// What it needs.
        needs: String,
    },
    /// No packet got through a network of the experiment, as one try before the first trial
    /// showed; its treatments were left out.
    CarriesNothing {
        /// Which: the label of its treatments.
        network: String,
        /// What the try said.
        reason: String,
    },
    /// A network was asked for by the name of a system that programs its path.
    StandsFor {
        /// The name as it was written.
        alias: String,
        /// The network.
        network: String,
    },
    /// A treatment kept failing its gates; its last trial did not count.
    RetriesExhausted {
        /// Its label.
        treatment: String,
    },
    /// Lines of `trials.jsonl` are not what was written; what they held is lost.
    DamagedLines {
        /// How many.
        lines: u32,
    },
    /// The run was stopped before its end.
    CutOff {
        /// Trials finished.
        finished: u32,
        /// Trials planned.
        planned: u32,
    },
    /// Several builds of Plumbline ran the trials of a run (`--mix-builds`).
    MixedBuilds {
        /// How many.
        builds: u32,
    },
    /// Somebody else used the machine, less than what voids a trial (C-14).
    OtherLoad {
        /// Share of capacity, 0 to 1.
        share: f64,
    },
    /// CPU use of the machine above 80 % while a rate was held (N-12).
    NearSaturation {
        /// Share of capacity, 0 to 1.
        share: f64,
    },
    /// The generator's own lateness makes up more than half of the latency at
    /// the 99th percentile (L-2): up there it is the generator that was
    /// measured. Median and CPU of the trial stand.
    TailLag {
        /// The generator's lag at p99, nanoseconds.
        lag_ns: u64,
        /// The latency at p99 that it is held against, nanoseconds: the baseline's. In runs
        /// of earlier builds, and beside a neighbour, the trial's own.
        latency_ns: u64,
    },
    /// L-7: the requests did not go out as the Poisson process wanted.
    ArrivalsDistorted {
        /// Largest error of the share of gaps below any length, 0 to 1.
        distance: f64,
        /// Share of the requests that waited for a free connection, 0 to 1.
        waited_share: f64,
    },
    /// L-7: the requests did not go out at equal gaps.
    UnevenGaps {
        /// Error of a gap at p99, nanoseconds.
        error_ns: u64,
        /// Share of the requests that waited for a free connection, 0 to 1.
        waited_share: f64,
    },
    /// L-10: the latency changed its level inside the window.
    LevelChanged {
        /// When, as a share of the window, from 0 to 1.
        at: f64,
        /// The median before, nanoseconds.
        before_ns: u64,
        /// The median after, nanoseconds.
        after_ns: u64,
    },
    /// The maximum that loads are shares of was the generator's.
    MaximumOfTheGenerator {
        /// The workload that was searched.
        workload: String,
    },
    /// D2, D3: at a held rate the generator sent too little or too late, though
    /// there were connections for more and nobody disturbed it.
    GeneratorWasTheLimit {
        /// What it sent of the requests that were due, 0 to 1.
        sent_share: f64,
        /// Its own lag at p90, nanoseconds.
        lag_ns: u64,
        /// CPU time of its busiest thread without polling, as a share of the
        /// window, 0 to 1.
        busy_share: f64,
    },
    /// L-12: the sender had little time to spare, so that answers waited in it.
    GeneratorBusy {
        /// CPU time of its busiest thread without polling, as a share of the
        /// window, 0 to 1.
        share: f64,
    },
    /// L-12: one sending thread saw another latency than all others.
    ClientDiffers {
        /// Which, from 1.
        client: u32,
        /// Its p99, nanoseconds.
        p99_ns: u64,
        /// The nearest p99 of another, nanoseconds.
        others_ns: u64,
    },
}
