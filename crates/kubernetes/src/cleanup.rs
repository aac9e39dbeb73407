//! What runs that were killed have left.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use plumbline_sys::identity;

use crate::bulk;
use crate::error::ClusterError;
use crate::manifest::{OWNER, PROCESS, RUN, STARTED_BY};
use crate::request::is_own;
use crate::session::ClusterConnection;
use crate::teardown::{delete_namespaces, delete_selected, policies_of};

/// How long a run that has just begun may have no pod yet.
const BEGINNING: Duration = Duration::from_secs(120);

/// The namespace of a run, or what a run left in one that it shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Name of the namespace.
    pub namespace: String,
    /// The word of the run, where the namespace is not its own.
    pub run: Option<String>,
    /// Who started the run, as the run said.
    pub started_by: String,
    /// Whether that is this user on this machine.
    pub is_own: bool,
    /// How long ago.
    pub age: Duration,
    /// Pods in it.
    pub pods: usize,
    /// Whether the run may go on. Where its process can be looked for, on the machine that it ran
    /// on, that tells; elsewhere its pods do, which end by themselves some minutes later.
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

/// What runs left in a cluster, found by label.
pub struct Leftovers {
    session: ClusterConnection,
    /// What was found.
    pub left: Vec<Left>,
}

impl Leftovers {
    /// Looks for namespaces of runs, or for what runs left in the given one. Those of runs
    /// under way are included.
    ///
    /// # Errors
    ///
    /// No cluster, or no right to list namespaces, or what is in the given one.
    pub fn find(
        context: Option<&str>,
        namespace: Option<&str>,
        interrupted: &'static AtomicBool,
    ) -> Result<Self, ClusterError> {
        let session = ClusterConnection::open(None, context, interrupted)?;
        let left = match namespace {
            Some(namespace) => within(&session, namespace)?,
            None => namespaces(&session)?,
        };
        Ok(Self { session, left })
    }

    /// Deletes these, and waits until they are gone. Gives what could not be done, each reason
    /// once.
    pub fn remove(&self, chosen: &[&Left]) -> Vec<ClusterError> {
        let (shared, own): (Vec<&Left>, _) = chosen.iter().partition(|it| it.run.is_some());
        let own: Vec<String> = own.into_iter().map(|it| it.namespace.clone()).collect();
        // One after the other, as the end of a namespace has it, thousands take minutes.
        let clear =
            |namespace: &str, selector: &str| bulk::clear(&self.session, namespace, selector);
        let mut errors: Vec<ClusterError> = own.iter().flat_map(|it| clear(it, OWNER)).collect();
        errors.extend(delete_namespaces(&self.session, &own));
        for left in shared {
            let selector = format!("{RUN}={}", left.name());
            errors.extend(clear(&left.namespace, &selector));
            errors.extend(delete_selected(&self.session, &left.namespace, &selector));
        }
        let mut told = BTreeSet::new();
        errors.retain(|error| told.insert(error.to_string()));
        errors
    }
}

fn namespaces(session: &ClusterConnection) -> Result<Vec<Left>, ClusterError> {
    let all: Api<Namespace> = Api::all(session.client());
    let ours = ListParams::default().labels(OWNER);
    let found = session.call("list the namespaces", all.list(&ours))?;
    let found = found.into_iter().map(|namespace| {
        let name = namespace.name_any();
        let pods: Api<Pod> = Api::namespaced(session.client(), &name);
        let what = format!("list the pods of namespace {name}");
        let pods = session.call(&what, pods.list(&ListParams::default()))?;
        Ok(Left::of(&name, None, &namespace.metadata, &pods.items))
    });
    found.collect()
}

/// What runs left in a namespace that they share, by run.
fn within(session: &ClusterConnection, namespace: &str) -> Result<Vec<Left>, ClusterError> {
    let ours = ListParams::default().labels(OWNER);
    let pods: Api<Pod> = Api::namespaced(session.client(), namespace);
    let what = format!("list the pods of namespace {namespace}");
    let pods = session.call(&what, pods.list(&ours))?.items;
    let services: Api<Service> = Api::namespaced(session.client(), namespace);
    let what = format!("list the services of namespace {namespace}");
    let services = session.call(&what, services.list_metadata(&ours))?.items;
    let policies: Api<NetworkPolicy> = Api::namespaced(session.client(), namespace);
    let policies = policies_of(session, &policies, &ours)?;
    let slices: Api<EndpointSlice> = Api::namespaced(session.client(), namespace);
    let what = format!("list the endpoints of services in namespace {namespace}");
    let slices = match session.call(&what, slices.list_metadata(&ours)) {
        Ok(found) => found.items,
        // The role of earlier builds.
        Err(ClusterError::Forbidden { .. }) => Vec::new(),
        Err(error) => return Err(error),
    };
    let of_policies = policies.into_iter().map(|it| it.metadata);
    let of_services = services.into_iter().map(|it| it.metadata);
    // Those of a service with pods have its labels, but do not say who started the run.
    let of_slices = slices.into_iter().map(|it| (it.metadata, None));
    let without_pods = of_services.chain(of_policies).map(|it| (it, None));
    let of_pods = pods.into_iter().map(|it| (it.metadata.clone(), Some(it)));
    let mut runs: BTreeMap<String, (ObjectMeta, Vec<Pod>)> = BTreeMap::new();
    for (metadata, pod) in without_pods.chain(of_pods).chain(of_slices) {
        let label = metadata.labels.as_ref().and_then(|it| it.get(RUN)).cloned();
        if let Some(run) = label {
            let (_, pods) = runs.entry(run).or_insert((metadata, Vec::new()));
            pods.extend(pod);
        }
    }
    let left = runs
        .into_iter()
        .map(|(run, (metadata, pods))| Left::of(namespace, Some(run), &metadata, &pods));
    Ok(left.collect())
}

/// `run k7f3, 2 pods, 12 min old, started by ann@desk, has ended`.
impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.run {
            Some(_) => "run",
            None => "namespace",
        };
        let state = match self.may_go_on {
            true => "may go on",
            false => "has ended",
        };
        write!(
            f,
            "{what} {}, {} pods, {} min old, started by {}, {state}",
            self.name(),
            self.pods,
            self.age.as_secs() / 60,
            self.started_by
        )
    }
}

impl Left {
    /// By which the run is asked for: its word, or the name of its namespace.
    pub fn name(&self) -> &str {
        self.run.as_deref().unwrap_or(&self.namespace)
    }

    fn of(namespace: &str, run: Option<String>, metadata: &ObjectMeta, pods: &[Pod]) -> Self {
        let annotations = metadata.annotations.as_ref();
        let started_by = annotations.and_then(|it| it.get(STARTED_BY));
        let process = annotations.and_then(|it| it.get(PROCESS));
        let has_ended = process.is_some_and(|it| identity::has_ended(it));
        let created = metadata.creation_timestamp.as_ref();
        let age = created.map_or(Duration::ZERO, age);
        let begins = pods.is_empty() && age < BEGINNING;
        Self {
            namespace: namespace.to_owned(),
            run,
            is_own: started_by.is_some_and(|it| is_own(it)),
            started_by: started_by.map_or("unknown", String::as_str).to_owned(),
            age,
            pods: pods.len(),
            may_go_on: !has_ended && (begins || pods.iter().any(may_run)),
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
    let known = left.iter().find(|it| it.name() == name);
    let problem = match known {
        Some(it) if !it.may_go_on => return Ok(it),
        Some(it) => format!(
            "the run of {name} may go on: it was started by {}, and has pods that run; end it with \
             Ctrl-C, or try again when its pods have ended, some minutes after a run was killed",
            it.started_by
        ),
        None => {
            format!("there is no run {name}; `plumbline cleanup` lists those that left something")
        }
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
    use crate::manifest::{self, RunMark, Spot, namespace_name};
    use crate::planted::{PlantedServer, Reply};
    use crate::request::started_by;
    use crate::seat::{Seat, tests::POD};

    fn long_ago() -> Option<Time> {
        Some(Time("2026-01-01T00:00:00Z".parse().unwrap()))
    }

    fn pod(phase: &str) -> Pod {
        let mut pod = manifest::pod(Seat::Client(POD), Spot::Anywhere, "image:1", &mark());
        pod.status.get_or_insert_default().phase = Some(phase.to_owned());
        pod
    }

    fn mark() -> RunMark {
        RunMark {
            run: "3fa2".to_owned(),
            started_by: started_by(),
            shares_namespace: true,
        }
    }

    fn of(namespace: &Namespace, pods: &[Pod]) -> Left {
        Left::of(&namespace.name_any(), None, &namespace.metadata, pods)
    }

    fn left(by: &str, pods: &[Pod]) -> Left {
        let mut namespace = manifest::namespace(&namespace_name(false), false, by);
        namespace.metadata.creation_timestamp = long_ago();
        of(&namespace, pods)
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
        assert!(unknown.to_string().contains("no run default"), "{unknown}");
    }

    /// Its pods ended, and somebody deleted them.
    #[test]
    fn a_policy_that_a_run_left_is_found() {
        let policy = Reply::Left("3fa2");
        let server = PlantedServer::start([Reply::Gone, Reply::Gone, policy], Reply::Gone);
        let left = within(&server.session(), "shared").unwrap();
        let [one] = &left[..] else { panic!("{left:?}") };
        assert_eq!((one.name(), one.pods, one.may_go_on), ("3fa2", 0, false));
    }

    /// Their services were deleted, and they were not.
    #[test]
    fn endpoints_that_a_run_left_are_found() {
        let slice = Reply::Left("3fa2");
        let server =
            PlantedServer::start([Reply::Gone, Reply::Gone, Reply::Gone, slice], Reply::Gone);
        let left = within(&server.session(), "shared").unwrap();
        let [one] = &left[..] else { panic!("{left:?}") };
        assert_eq!((one.name(), one.pods, one.may_go_on), ("3fa2", 0, false));
        let asked = server.asked();
        assert!(
            asked[3].contains("/namespaces/shared/endpointslices"),
            "{asked:?}"
        );
    }

    /// As with a role that an earlier build printed.
    #[test]
    fn who_may_not_see_endpoints_finds_the_rest() {
        let refused = Reply::Status(403, "Forbidden", "is forbidden: User \"ann\" cannot list");
        let policy = Reply::Left("3fa2");
        let server = PlantedServer::start([Reply::Gone, Reply::Gone, policy], refused);
        assert_eq!(within(&server.session(), "shared").unwrap().len(), 1);
    }

    /// On the machine that it ran on nobody has to wait until its pods notice.
    #[test]
    fn a_run_whose_process_is_gone_has_ended() {
        let mut namespace = manifest::namespace(&namespace_name(false), false, "ann");
        assert!(of(&namespace, &[pod("Running")]).may_go_on);
        let annotations = namespace.metadata.annotations.as_mut().unwrap();
        let process = annotations.get_mut(PROCESS).expect("this kernel shows it");
        // Another one has its number.
        *process = format!("{}-1", process.rsplit_once('-').unwrap().0);
        assert!(!of(&namespace, &[pod("Running")]).may_go_on);
    }

    #[test]
    fn a_run_that_begins_has_no_pods_yet() {
        let namespace = manifest::namespace(&namespace_name(true), true, "ann");
        assert!(of(&namespace, &[]).may_go_on);
        assert!(!left("ann", &[]).may_go_on, "it began long ago");
        let mut going = pod("Running");
        going.metadata.deletion_timestamp = long_ago();
        assert!(!left("ann", &[going]).may_go_on, "it is being deleted");
    }
}
