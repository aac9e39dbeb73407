//! What runs that were killed have left.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};

use crate::error::ClusterError;
use crate::manifest::{OWNER, STARTED_BY};
use crate::request::is_own;
use crate::session::ClusterConnection;
use crate::standing::delete_namespaces;

/// How long a run that has just begun may have no pod yet.
const BEGINNING: Duration = Duration::from_secs(120);

/// A namespace of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Its name, by which the run is asked for.
    pub namespace: String,
    /// Who started the run, as the run said.
    pub started_by: String,
    /// Whether that is this user on this machine.
    pub is_own: bool,
    /// How long ago.
    pub age: Duration,
    /// Pods in it.
    pub pods: usize,
    /// Whether the run may go on: its pods end by themselves when it no longer does.
    pub may_go_on: bool,
}

/// Which of them are to be removed. None ever is whose run may go on.
#[derive(Clone, Copy, Debug)]
pub enum Chosen<'a> {
    /// Those of this user on this machine.
    Own,
    /// Those of these names.
    Named(&'a [String]),
    /// Those of everybody.
    All,
}

/// Namespaces of runs in a cluster, found by label.
pub struct Leftovers {
    session: ClusterConnection,
    /// What was found.
    pub left: Vec<Left>,
}

impl Leftovers {
    /// Looks for them. Those of runs under way are included.
    ///
    /// # Errors
    ///
    /// No cluster, or no right to list namespaces.
    pub fn find(
        context: Option<&str>,
        interrupted: &'static AtomicBool,
    ) -> Result<Self, ClusterError> {
        let session = ClusterConnection::open(None, context, interrupted)?;
        let namespaces: Api<Namespace> = Api::all(session.client());
        let ours = ListParams::default().labels(OWNER);
        let found = session.call("list the namespaces", namespaces.list(&ours))?;
        let mut left = Vec::new();
        for namespace in found {
            let name = namespace.name_any();
            let pods: Api<Pod> = Api::namespaced(session.client(), &name);
            let what = format!("list the pods of namespace {name}");
            let pods = session.call(&what, pods.list(&ListParams::default()))?;
            left.push(Left::of(&namespace, &pods.items));
        }
        Ok(Self { session, left })
    }

    /// Deletes these, and waits until they are gone. Gives what could not be done.
    pub fn remove(&self, chosen: &[&Left]) -> Vec<ClusterError> {
        let names: Vec<String> = chosen.iter().map(|it| it.namespace.clone()).collect();
        delete_namespaces(&self.session, &names)
    }
}

impl Left {
    fn of(namespace: &Namespace, pods: &[Pod]) -> Self {
        let started_by = namespace.annotations().get(STARTED_BY);
        let created = namespace.creation_timestamp();
        let age = created.map_or(Duration::ZERO, |it| age(&it));
        let begins = pods.is_empty() && age < BEGINNING;
        Self {
            namespace: namespace.name_any(),
            is_own: started_by.is_some_and(|it| is_own(it)),
            started_by: started_by.map_or("unknown", String::as_str).to_owned(),
            age,
            pods: pods.len(),
            may_go_on: begins || pods.iter().any(may_run),
        }
    }
}

/// Those of `left` that were chosen.
///
/// # Errors
///
/// A name that none has, or one of a run that may go on.
pub fn choose<'a>(left: &'a [Left], chosen: Chosen<'_>) -> Result<Vec<&'a Left>, ClusterError> {
    let ended = left.iter().filter(|it| !it.may_go_on);
    match chosen {
        Chosen::All => Ok(ended.collect()),
        Chosen::Own => Ok(ended.filter(|it| it.is_own).collect()),
        Chosen::Named(names) => names.iter().map(|name| named(left, name)).collect(),
    }
}

fn named<'a>(left: &'a [Left], name: &str) -> Result<&'a Left, ClusterError> {
    let known = left.iter().find(|it| it.namespace == name);
    let problem = match known {
        Some(it) if !it.may_go_on => return Ok(it),
        Some(it) => format!(
            "the run of {name} may go on: it was started by {}, and has pods that run; end it with \
             Ctrl-C, or try again when its pods have ended, some minutes after a run was killed",
            it.started_by
        ),
        None => format!("no run has a namespace {name}; `plumbline cleanup` lists those that do"),
    };
    Err(ClusterError::Options(problem))
}

/// Whether a pod has not ended and is not being deleted. The program in each ends when no
/// agent was there for some minutes, which is how a run renews its lease.
fn may_run(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase, Some("Succeeded" | "Failed"))
}

fn age(created: &Time) -> Duration {
    let created = u64::try_from(created.0.as_second()).unwrap_or_default();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    now.saturating_sub(Duration::from_secs(created))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{self, namespace_name};
    use crate::request::started_by;
    use crate::route::Seat;

    fn long_ago() -> Option<Time> {
        Some(Time("2026-01-01T00:00:00Z".parse().unwrap()))
    }

    fn pod(phase: &str) -> Pod {
        let mut pod = manifest::pod(Seat::Client, "a", false, "image:1");
        pod.status.get_or_insert_default().phase = Some(phase.to_owned());
        pod
    }

    fn left(by: &str, pods: &[Pod]) -> Left {
        let mut namespace = manifest::namespace(&namespace_name(false), false, by);
        namespace.metadata.creation_timestamp = long_ago();
        Left::of(&namespace, pods)
    }

    #[test]
    fn only_own_runs_that_have_ended_are_removed_unless_others_are_asked_for() {
        let all = [
            left(&started_by(), &[pod("Succeeded"), pod("Failed")]),
            left(&started_by(), &[pod("Succeeded"), pod("Running")]),
            left("ann on another machine, process 7", &[pod("Succeeded")]),
            left("ann on another machine, process 8", &[pod("Pending")]),
        ];
        let names = |chosen| -> Vec<&str> {
            let chosen = choose(&all, chosen).unwrap();
            chosen.iter().map(|it| &*it.namespace).collect()
        };
        let [own, runs, ended, begins] = [0, 1, 2, 3].map(|at: usize| &*all[at].namespace);
        assert_eq!(names(Chosen::Own), [own]);
        assert_eq!(names(Chosen::All), [own, ended]);
        assert_eq!(names(Chosen::Named(&[ended.to_owned()])), [ended]);
        for name in [runs, begins] {
            let refused = choose(&all, Chosen::Named(&[name.to_owned()])).unwrap_err();
            assert!(refused.to_string().contains("may go on"), "{refused}");
        }
        let unknown = choose(&all, Chosen::Named(&["default".to_owned()])).unwrap_err();
        assert!(unknown.to_string().contains("no run has"), "{unknown}");
    }

    #[test]
    fn a_run_that_begins_has_no_pods_yet() {
        let namespace = manifest::namespace(&namespace_name(true), true, "ann");
        assert!(Left::of(&namespace, &[]).may_go_on);
        assert!(!left("ann", &[]).may_go_on, "it began long ago");
        let mut going = pod("Running");
        going.metadata.deletion_timestamp = long_ago();
        assert!(!left("ann", &[going]).may_go_on, "it is being deleted");
    }
}
