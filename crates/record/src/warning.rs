//! Reasons to distrust a number, each with its remedy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reason to distrust. [`Display`](std::fmt::Display) says it with the remedy.
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
    /// The server that the workload asks for is not installed where the
    /// receiver ran.
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
    /// The hypervisor took CPU time.
    Steal {
        /// Share of capacity, 0 to 1.
        share: f64,
    },
    /// The CPU governor changes the clock.
    Governor {
        /// Its name.
        name: String,
    },
    /// The clock source is slow or unsteady.
    ClockSource {
        /// Its name.
        name: String,
    },
    /// A network of the experiment could not be built here.
    Unsupported {
        /// Which.
        network: String,
        /// What it needs.
        needs: String,
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
    /// The run was stopped before its end.
    CutOff {
        /// Trials finished.
        finished: u32,
        /// Trials planned.
        planned: u32,
    },
    /// Whatever is undone at the end failed.
    Teardown {
        /// What.
        detail: String,
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
        /// The latency at p99, nanoseconds.
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

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nodes { detail } => f.write_str(detail),
            Self::OneKernel => write!(
                f,
                "both ends share one kernel and one memory: read the figures as relative; \
                 throughput is memory copies and stack, not a link"
            ),
            Self::ShorterWindows { share } => write!(
                f,
                "windows were shortened to {:.0} % to stay within the budget of time: intervals are wider; \
                 choose fewer networks, or raise design.budget",
                share * 100.0
            ),
            Self::OtherServer { wanted, answered } => write!(
                f,
                "{wanted} is not installed where the receiver ran, so {answered} answered; install {wanted} \
                 to compare with what others measured against it"
            ),
            Self::SharedCpus { cpus } => write!(
                f,
                "with {cpus} CPU{} the two ends and the network compete; on a machine with 4 or more the tail is shorter",
                if *cpus == 1 { "" } else { "s" }
            ),
            Self::UserModeKernel => write!(
                f,
                "the kernel is User-mode Linux: system calls cost 20 to 50 µs, so each latency holds some 50 µs of \
                 the sender's own lateness, and under load its wait for the one CPU; read differences in µs, not in percent"
            ),
            Self::ClosedLoop { outstanding } => write!(
                f,
                "closed loop, {outstanding} outstanding: a stall holds back the load too, so the tail is \
                 understated; set a rate for an open loop"
            ),
            Self::TooFewBlocks { blocks, needed } => write!(
                f,
                "{blocks} blocks cannot reach significance for so many comparisons; use --blocks {needed} or more"
            ),
            Self::Steal { share } => write!(
                f,
                "the hypervisor took {:.1} % of the CPU time; use a dedicated machine, or more blocks",
                share * 100.0
            ),
            Self::Governor { name } => {
                write!(
                    f,
                    "CPU governor `{name}` changes the clock; set `performance`"
                )
            }
            Self::ClockSource { name } => {
                write!(
                    f,
                    "clock source `{name}` is slow to read; use `tsc` where it is stable"
                )
            }
            Self::Unsupported { network, needs } => write!(f, "{network} was left out: {needs}"),
            Self::StandsFor { alias, network } => write!(
                f,
                "{alias} is measured as `{network}`: the path that it programs, without its agents, rules \
                 and policies; docs/networks.md says what is modelled"
            ),
            Self::RetriesExhausted { treatment } => write!(
                f,
                "{treatment} failed its validity gates in every attempt of a block; that block is missing from its comparison"
            ),
            Self::CutOff { finished, planned } => write!(
                f,
                "cut off after {finished} of {planned} trials; go on with `run --resume`"
            ),
            Self::Teardown { detail } => write!(f, "not everything could be undone: {detail}"),
            Self::OtherLoad { share } => write!(
                f,
                "others used {:.0} % of the CPU time: intervals are wider than they could be; stop what else runs",
                share * 100.0
            ),
            Self::NearSaturation { share } => write!(
                f,
                "the machine was {:.0} % busy at a held rate; lower --rate for latencies without queueing",
                share * 100.0
            ),
            Self::TailLag { lag_ns, latency_ns } => write!(
                f,
                "the sender itself was {:.0} µs late at p99, more than half of the latency of {:.0} µs there: \
                 from p99 up that is the generator, not the network; use --wait spin, or a machine with more CPUs",
                *lag_ns as f64 / 1e3,
                *latency_ns as f64 / 1e3
            ),
            Self::ArrivalsDistorted {
                distance,
                waited_share,
            } => write!(
                f,
                "requests did not go out as Poisson arrivals (distance {distance:.2}), {}",
                cause(*waited_share)
            ),
            Self::UnevenGaps {
                error_ns,
                waited_share,
            } => write!(
                f,
                "requests did not go out at equal gaps ({:.0} µs off at p99), {}",
                *error_ns as f64 / 1e3,
                cause(*waited_share)
            ),
            Self::LevelChanged {
                at,
                before_ns,
                after_ns,
            } => write!(
                f,
                "the latency went from {} to {} within a window, {:.0} % into it: no steady state; \
                 a longer warm-up may reach one",
                in_words(*before_ns),
                in_words(*after_ns),
                at * 100.0
            ),
            Self::MaximumOfTheGenerator { workload } => write!(
                f,
                "the generator was the limit of `{workload}`, not the network: its loads are shares of \
                 what the generator can send"
            ),
            Self::GeneratorWasTheLimit {
                sent_share,
                lag_ns,
                busy_share,
            } => write!(
                f,
                "the generator was the limit, not the network: it sent {:.0} % of what was due, one request \
                 in ten more than {:.0} µs late, and was {:.0} % busy; lower the rate, let it wait by \
                 spinning, or give it more CPUs",
                sent_share * 100.0,
                *lag_ns as f64 / 1e3,
                busy_share * 100.0
            ),
            Self::GeneratorBusy { share } => write!(
                f,
                "the sender itself was {:.0} % busy, so answers waited for it; lower the rate",
                share * 100.0
            ),
            Self::ClientDiffers {
                client,
                p99_ns,
                others_ns,
            } => write!(
                f,
                "thread {client} of the sender saw a p99 of {:.0} µs where no other is nearer than {:.0} µs: the \
                 percentiles mix two paths; pin the threads to CPUs of their own, or look for what its \
                 connections have apart",
                *p99_ns as f64 / 1e3,
                *others_ns as f64 / 1e3
            ),
        }
    }
}

/// A latency with a unit that leaves it readable: an overload lasts seconds.
fn in_words(ns: u64) -> String {
    match ns {
        0..10_000_000 => format!("{:.0} µs", ns as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.0} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

/// Why requests went out at other times than planned.
fn cause(waited_share: f64) -> &'static str {
    // What waited for a connection waited for answers.
    if waited_share > 0.05 {
        "because all connections were taken: use more connections, or a lower rate"
    } else {
        "because the sender was late, or still busy with the request before: lower the rate, use --wait \
         spin, or a machine with more CPUs"
    }
}
