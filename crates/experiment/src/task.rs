//! What a trial does: a load, or a task that is none.
//!
//! To add a task, add its variants and their arms here. What carries it out is an
//! exercise of the crate `harness`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::key::Key;
use crate::metric::Traffic;
use crate::{
    HttpServer, KINDS, Launch, Programming, Refusal, Survive, Workload, WorkloadKind, launch,
    programming, survive,
};

/// What a trial does. In a plan on disk each variant stands under a key of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum Task {
    /// Sends load from one end to the other.
    #[serde(rename = "workload")]
    Load(Workload),
    /// Adds or removes what a cluster programs, and sees when that acts.
    #[serde(rename = "programming")]
    Programming(Programming),
    /// Launches pods, and follows each until it has its network.
    #[serde(rename = "launch")]
    Launch(Launch),
    /// Runs a command while traffic survives it or not.
    #[serde(rename = "survive")]
    Survive(Survive),
}

/// A kind of task, as `kind` in a section of an experiment file names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind {
    /// Load of this kind.
    Load(WorkloadKind),
    /// A change of what a cluster programs.
    Programming,
    /// Pods that are launched.
    Launch,
    /// A command that traffic survives or not.
    Survive,
}

impl Task {
    /// The name in tables: with its treatment's label unique within an experiment.
    pub fn name(&self) -> &str {
        match self {
            Self::Load(workload) => &workload.name,
            Self::Programming(change) => &change.name,
            Self::Launch(launch) => &launch.name,
            Self::Survive(survive) => &survive.name,
        }
    }

    /// As [`name`](Self::name), to change it.
    pub(crate) fn name_mut(&mut self) -> &mut String {
        match self {
            Self::Load(workload) => &mut workload.name,
            Self::Programming(change) => &mut change.name,
            Self::Launch(launch) => &mut launch.name,
            Self::Survive(survive) => &mut survive.name,
        }
    }

    /// Its kind.
    pub fn kind(&self) -> TaskKind {
        match self {
            Self::Load(workload) => TaskKind::Load(workload.kind),
            Self::Programming(_) => TaskKind::Programming,
            Self::Launch(_) => TaskKind::Launch,
            Self::Survive(_) => TaskKind::Survive,
        }
    }

    /// What it offers, which decides what it is compared on.
    pub fn traffic(&self) -> Traffic {
        match self {
            Self::Load(workload) => workload.traffic(),
            Self::Programming(_) => Traffic::Change,
            Self::Launch(_) => Traffic::Launch,
            Self::Survive(_) => Traffic::Survive,
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
            _ => None,
        }
    }

    /// As [`load`](Self::load), to change it.
    pub fn load_mut(&mut self) -> Option<&mut Workload> {
        match self {
            Self::Load(workload) => Some(workload),
            _ => None,
        }
    }

    /// The change of what a cluster programs; `None` of any other task.
    pub fn programming(&self) -> Option<&Programming> {
        match self {
            Self::Programming(change) => Some(change),
            _ => None,
        }
    }

    /// The launch of pods; `None` of any other task.
    pub fn launch(&self) -> Option<&Launch> {
        match self {
            Self::Launch(launch) => Some(launch),
            _ => None,
        }
    }

    /// The pods that it launches, by themselves or beside a command; `None` where there are
    /// none.
    pub fn pods(&self) -> Option<Launch> {
        match self {
            Self::Launch(launch) => Some(launch.clone()),
            Self::Survive(survive) => survive.launch(),
            _ => None,
        }
    }

    /// The command that traffic survives or not; `None` of any other task.
    pub fn survive(&self) -> Option<&Survive> {
        match self {
            Self::Survive(survive) => Some(survive),
            _ => None,
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
            Self::Programming(change) => change.check(),
            Self::Launch(launch) => launch.check(),
            Self::Survive(survive) => survive.check(),
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
        let loads = KINDS.iter().map(|row| Self::Load(row.kind));
        loads.chain([Self::Programming, Self::Launch, Self::Survive])
    }

    /// As files and flags write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Load(kind) => kind.as_str(),
            Self::Programming => "programming",
            Self::Launch => "launch",
            Self::Survive => "survive",
        }
    }

    /// What it is for.
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Load(kind) => kind.row().purpose,
            Self::Programming => {
                "a Service or policy added or removed in a cluster: how long until it acts"
            }
            Self::Launch => "pods launched on a network: how long until each has its network",
            Self::Survive => "a command run while traffic goes on: what broke, and for how long",
        }
    }

    /// The kind of load; `None` of any other task.
    pub(crate) fn load(self) -> Option<WorkloadKind> {
        match self {
            Self::Load(kind) => Some(kind),
            Self::Programming | Self::Launch | Self::Survive => None,
        }
    }

    /// The task of this kind with every default.
    pub(crate) fn task(self) -> Task {
        match self {
            Self::Load(kind) => Task::Load(Workload::of_kind(kind)),
            Self::Programming => Task::Programming(Programming::default()),
            Self::Launch => Task::Launch(Launch::default()),
            Self::Survive => Task::Survive(Survive::default()),
        }
    }

    /// Refuses a key that says nothing about tasks of this kind.
    pub(crate) fn refuse_ignored(self, key: Key) -> Result<(), Refusal> {
        match self {
            Self::Load(kind) => kind.refuse_ignored(key),
            _ if self.takes(key) => Ok(()),
            _ => {
                let problem = format!("{{key}} has no meaning for {}", self.name());
                Err(Refusal::new(key, problem, "{without}"))
            }
        }
    }

    /// Whether a key may take different values for tasks of this kind. A factor,
    /// or a flag for all workloads, skips those where it may not.
    pub(crate) fn varies(self, key: &str) -> bool {
        match self {
            Self::Load(kind) => kind.varies(key),
            _ => Key::find(key).is_some_and(|key| self.takes(key)),
        }
    }

    /// Whether a key says anything about what is no load.
    fn takes(self, key: Key) -> bool {
        match self {
            Self::Load(_) => false,
            Self::Programming => programming::takes(key),
            Self::Launch => launch::takes(key),
            Self::Survive => survive::takes(key),
        }
    }
}
