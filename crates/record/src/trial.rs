//! One trial, and the run that it belongs to.

use std::collections::BTreeMap;

use plumbline_experiment::{Plan, TreatmentId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Fingerprint, Maximum, Observation, SetUp, Warning, What};

/// `run.json`: written once, before the first trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Version of the format ([`FORMAT_VERSION`](crate::FORMAT_VERSION)).
    pub format: u32,
    /// The schedule with its seed.
    pub plan: Plan,
    /// The text of the experiment file, if there was one.
    pub experiment_text: Option<String>,
    /// Who, when, with what.
    pub provenance: Provenance,
    /// The environment (C-13).
    pub fingerprint: Fingerprint,
    /// The maxima that loads of the plan are shares of; none where loads are
    /// plain rates.
    #[serde(default)]
    pub maxima: Vec<Maximum>,
    /// What decided which trials count, and where they ran; null in runs made
    /// before it was noted.
    #[serde(default)]
    pub conditions: Option<Conditions>,
    /// What to distrust in the whole run.
    pub warnings: Vec<Warning>,
    /// Lines of `trials.jsonl` that were left out because they are damaged; not stored,
    /// but known when a run has been read.
    #[serde(skip)]
    pub damaged_lines: u32,
}

/// What decided which trials count, and where they ran: nothing in the plan
/// says it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conditions {
    /// The limits of the validity gates by name: shares from 0 to 1, ratios, and
    /// nanoseconds where the name ends in `_ns`.
    pub thresholds: BTreeMap<String, f64>,
    /// CPUs of the sender; empty for any.
    pub client_cpus: Vec<usize>,
    /// CPUs of the receiver; empty for any.
    pub server_cpus: Vec<usize>,
    /// Length of the idle sample at the head of each block, nanoseconds.
    pub idle_ns: u64,
}

/// Which program made a record.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Build {
    /// Version of Plumbline.
    pub version: String,
    /// SHA-256 of the program, in hexadecimal.
    pub sha256: String,
}

/// Who made a run, when and with what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// Version of Plumbline.
    pub version: String,
    /// The program; null in runs made before it was noted.
    #[serde(default)]
    pub build: Option<Build>,
    /// Command line as typed, without what looks like a secret
    /// ([`without_secrets`](crate::without_secrets)).
    pub command: Vec<String>,
    /// Start, RFC 3339, UTC.
    pub started: String,
    /// `lab`, `kubernetes` or `hosts`.
    pub target: String,
    /// Whether pseudonyms stand for names (`--anonymise`): then the run cannot go on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anonymised: bool,
    /// The generator's own floor on this machine, measured before the first
    /// trial (L-13); null in runs made before it was measured.
    #[serde(default)]
    pub floor: Option<Floor>,
}

/// The round trip of the generator to itself over loopback, one small request
/// at a time: no path that it measures can show less (L-13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Floor {
    /// How many were measured.
    pub round_trips: u64,
    /// Median, nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile, nanoseconds.
    pub p99_ns: u64,
}

/// One line of `trials.jsonl`: one execution of one treatment with fresh agents, or
/// the setting up that had to come before it ([`SetUp`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Block, from 0.
    pub block: u32,
    /// Position within the block, from 0.
    pub position: u32,
    /// Which treatment of the plan.
    pub treatment: TreatmentId,
    /// The pair of nodes it ran between; null where there are two endpoints and
    /// no choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<NodePair>,
    /// 0 for the first execution, then counted up for each repetition.
    pub attempt: u32,
    /// 0 for the first part of a run, then counted up for each resumption.
    #[serde(default)]
    pub session: u32,
    /// The program that ran it, where that is not the one that began the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// Start, RFC 3339, UTC.
    pub started: String,
    /// What it took from start to end, agents and teardown included, nanoseconds.
    pub took_ns: u64,
    /// Whether it counts.
    pub status: TrialStatus,
    /// What to distrust in it.
    pub warnings: Vec<Warning>,
    /// What was observed; `None` when it failed before it could be.
    pub observation: Option<Observation>,
}

impl Trial {
    /// What setting up took, where this is no trial of the plan but what had to
    /// come before one.
    pub fn set_up(&self) -> Option<&SetUp> {
        match &self.observation.as_ref()?.what {
            What::SetUp(set_up) => Some(set_up),
            _ => None,
        }
    }
}

/// Two nodes by name.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct NodePair {
    /// The node of the sender.
    pub client: String,
    /// The node of the receiver.
    pub server: String,
}

/// Whether a trial counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum TrialStatus {
    /// It counts.
    Valid,
    /// A validity gate says not to believe it, though it ran to its end, or not to run it.
    Invalid {
        /// The gates that it failed.
        gates: Vec<GateFailure>,
    },
    /// It did not run to its end.
    Failed {
        /// Why.
        error: String,
    },
}

impl TrialStatus {
    /// Which connection showed that policies did not act, if one did: that voids the block.
    pub fn unenforced(&self) -> Option<&str> {
        let Self::Invalid { gates } = self else {
            return None;
        };
        gates.iter().find_map(|gate| match gate {
            GateFailure::NotEnforced { detail } => Some(detail.as_str()),
            _ => None,
        })
    }
}

/// A validity gate that a trial failed, with the figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "gate", rename_all = "kebab-case")]
pub enum GateFailure {
    /// D2: the generator sent too late.
    SendLag {
        /// Which percentile broke the limit, such as 0.99.
        quantile: f64,
        /// The generator's lag there, nanoseconds.
        lag_ns: u64,
        /// What was allowed, nanoseconds.
        limit_ns: u64,
    },
    /// D3: the load was not the planned one.
    AchievedRate {
        /// Requests that the plan wanted in the window.
        planned: u64,
        /// Requests that were sent in time.
        achieved: u64,
    },
    /// C-14: somebody else used the machine, or it was taken away.
    Disturbed {
        /// What disturbed: `steal`, `other-load`, `softnet-drop`, …
        by: String,
        /// How much, as a share of capacity, or a count.
        amount: f64,
        /// What is allowed.
        limit: f64,
    },
    /// answers were wrong, or packets did not take the network's path.
    WrongPath {
        /// What was seen.
        detail: String,
    },
    /// Policies on the path did not act: what they forbid got through, or what they
    /// allow did not. Nothing in the block of this trial counts.
    NotEnforced {
        /// Which connection.
        detail: String,
    },
    /// N-3, N-4: checksum errors or fragments on the path.
    PathFault {
        /// What was counted.
        detail: String,
    },
    /// The table of tracked connections was full: what looks like a cost is packets that
    /// were dropped.
    ConntrackFull {
        /// The node's namespace.
        namespace: String,
        /// Connections that were dropped for it.
        dropped: u64,
        /// Connections that it tracked at the end.
        connections: u64,
        /// How many it may track.
        max: u64,
    },
    /// L-10: the latency changed its level inside the window, so there is no
    /// one number.
    NoSteadyState {
        /// When, as a share of the window, from 0 to 1.
        at: f64,
        /// The median before, nanoseconds.
        before_ns: u64,
        /// The median after, nanoseconds.
        after_ns: u64,
    },
    /// L-12: the sender's busiest thread had no time left.
    GeneratorBusy {
        /// Its CPU time without polling, as a share of the window.
        share: f64,
        /// What is allowed.
        limit: f64,
    },
    /// Connections did not show the change that was made: they ended as after it though
    /// nobody had asked for it, or as before it until the end.
    NoChange {
        /// What was seen.
        detail: String,
    },
    /// Pods that were launched had no network.
    NoNetwork {
        /// How many of them.
        pods: u64,
        /// Of how many.
        launched: u64,
        /// What the first of them met.
        detail: String,
    },
    /// Traffic on the path was not well before the command that it was to survive.
    Unwell {
        /// What was seen.
        detail: String,
    },
    /// The neighbour that the scene has did nothing.
    IdleNeighbour,
    /// Requests failed or were never answered beyond what L-3 allows.
    Errors {
        /// Failed and unanswered requests.
        failed: u64,
        /// Of how many.
        planned: u64,
    },
}
