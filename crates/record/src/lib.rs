//! What was observed, and the run directory that keeps it.
//!
//! Everything here is raw: no judgement, no averaging. The types are what a
//! trial writes as one line of `trials.jsonl` and what a run writes once as
//! `run.json`; `report` and `compare` need nothing else, on any machine.

mod anonymous;
mod command_line;
mod counters;
mod file;
mod fingerprint;
mod histogram;
mod late;
mod launch;
mod load;
mod load_outcome;
mod maximum;
mod observation;
mod plain;
mod programming;
mod run_directory;
mod search;
mod spans;
mod spent;
mod survive;
mod trial;
mod warning;

pub use anonymous::{AnonymityError, Pseudonyms};
pub use command_line::without_secrets;
pub use counters::{CpuTime, DeviceCounters, ProcessCpu, ProtocolCounters, SoftnetCounters};
pub use file::{WriteError, write_atomically};
pub use fingerprint::{
    CniList, CniPlugin, DeviceFingerprint, Fingerprint, KUBE_PROXY_FACTS, KUBE_PROXY_SILENT,
};
pub use histogram::{Histogram, HistogramError};
pub use late::LateSpell;
pub use launch::{
    CALLED, LaunchObservation, LaunchPart, LaunchPartKind, LaunchStep, LimiterWait, PodLaunch,
    PodRelease, READY, SANDBOX,
};
pub use load::{
    ArrivalCheck, DatagramCounts, ErrorCounts, LoadResult, SecondOfLoad, ServeResult, SliceTail,
    ZeroCopyCounts,
};
pub use load_outcome::{LoadOutcome, LoadWarning};
pub use maximum::Maximum;
pub use observation::{
    Common, IdleSample, LoadObservation, NeighbourRecord, NodeRules, Observation, RotationRecord,
    SetUp, What,
};
pub use plain::{plain, why_unreadable};
pub use programming::{ProbeOutcome, ProbeSeries, ProbeSpell, ProgrammingObservation};
pub use run_directory::{GuestLock, NotARun, RunDirectory, RunDirectoryError};
pub use search::{SearchGoal, SearchOutcome, SearchPurpose, SearchRecord, SearchTrial};
pub use spans::Spans;
pub use spent::spent;
pub use survive::{
    FlowKind, FlowSeries, RequestGap, RequestOutcome, RequestSpell, SurviveObservation,
};
pub use trial::{
    Build, Conditions, Floor, GateFailure, NodePair, Provenance, Run, Trial, TrialStatus,
};
pub use warning::Warning;

/// Version of the run directory's format. A directory with a newer one is refused.
pub const FORMAT_VERSION: u32 = 3;
