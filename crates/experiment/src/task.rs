//! What a trial does: a load, or a task that is none.
//!
//! To add a task, add its variants and their arms here. What carries it out is an
//! exercise of the crate `harness`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::key::Key;
use crate::metric::Traffic;
use crate::{HttpServer, KINDS, Refusal, Workload, WorkloadKind};

/// What a trial does. In a plan on disk each variant stands under a key of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum Task {
    /// Sends load from one end to the other.
    #[serde(rename = "workload")]
    Load(Workload),
}

/// A kind of task, as `kind` in a section of an experiment file names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind {
    /// Load of this kind.
    Load(WorkloadKind),
}

impl Task {
    /// The name in tables: with its treatment's label unique within an experiment.
    pub fn name(&self) -> &str {
        match self {
            Self::Load(workload) => &workload.name,
        }
    }

    /// As [`name`](Self::name), to change it.
    pub(crate) fn name_mut(&mut self) -> &mut String {
        match self {
            Self::Load(workload) => &mut workload.name,
        }
    }

    /// Its kind.
    pub fn kind(&self) -> TaskKind {
        match self {
            Self::Load(workload) => TaskKind::Load(workload.kind),
        }
    }

    /// What it offers, which decides what it is compared on.
    pub fn traffic(&self) -> Traffic {
        match self {
            Self::Load(workload) => workload.traffic(),
        }
    }

    /// Whether each of its requests opens a connection of its own.
    pub fn connects(&self) -> bool {
        self.load().is_some_and(|load| !load.keeps_connections())
    }

    /// The workload of a load; `None` of any other task.
    pub fn load(&self) -> Option<&Workload> {
        match self {
            Self::Load(workload) => Some(workload),
        }
    }

    /// As [`load`](Self::load), to change it.
    pub fn load_mut(&mut self) -> Option<&mut Workload> {
        match self {
            Self::Load(workload) => Some(workload),
        }
    }

    /// What answers it.
    pub fn server(&self) -> HttpServer {
        self.load()
            .map_or(HttpServer::default(), |load| load.server)
    }

    /// Checks a task that was read from disk.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        match self {
            Self::Load(workload) => workload.check(),
        }
    }
}

impl From<Workload> for Task {
    fn from(workload: Workload) -> Self {
        Self::Load(workload)
    }
}

impl TaskKind {
    /// Every kind, in the order in which they are explained.
    pub fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().map(|row| Self::Load(row.kind))
    }

    /// As files and flags write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Load(kind) => kind.as_str(),
        }
    }

    /// What it is for.
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Load(kind) => kind.row().purpose,
        }
    }

    /// The kind of load; `None` of any other task.
    pub(crate) fn load(self) -> Option<WorkloadKind> {
        match self {
            Self::Load(kind) => Some(kind),
        }
    }

    /// The task of this kind with every default.
    pub(crate) fn task(self) -> Task {
        match self {
            Self::Load(kind) => Task::Load(Workload::of_kind(kind)),
        }
    }

    /// Refuses a key that says nothing about tasks of this kind.
    pub(crate) fn refuse_ignored(self, key: Key) -> Result<(), Refusal> {
        match self {
            Self::Load(kind) => kind.refuse_ignored(key),
        }
    }

    /// Whether a key may take different values for tasks of this kind. A factor,
    /// or a flag for all workloads, skips those where it may not.
    pub(crate) fn varies(self, key: &str) -> bool {
        match self {
            Self::Load(kind) => kind.varies(key),
        }
    }
}
