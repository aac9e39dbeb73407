//! What stands in the cluster for a run: namespaces, pods, services, a policy.

mod front;
mod policy;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, PostParams};

use crate::ClusterError;
use crate::bulk;
use crate::choice::NodeFacts;
use crate::manifest::{self, RunMark, Spot};
use crate::pods::{RunningPod, is_running, said, state};
use crate::policy::RunPolicy;
use crate::seat::Seat;
use crate::session::ClusterConnection;
use crate::teardown::{begin_to_delete, delete_namespaces, delete_selected, end_in_peace, found};

/// Longest wait for pods to run. Pulling an image of 15 MB takes seconds.
const START: Duration = Duration::from_secs(60);

/// How often pods that start are checked.
const LOOK: Duration = Duration::from_millis(150);

/// The addresses before a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Front {
    pub(crate) cluster_ip: IpAddr,
    /// Those of the nodes that lead to [`PORT`](manifest::PORT) and to the next one.
    pub(crate) node_ports: Option<[u16; 2]>,
}

pub(crate) struct StandingPods {
    session: Arc<ClusterConnection>,
    image: String,
    mark: RunMark,
    /// The namespace that all pods go to, if the user named one.
    given: Option<String>,
    /// Those in use: whether it is that of the pods in the nodes' networks, and its name.
    namespaces: BTreeMap<bool, String>,
    /// Namespaces that were asked for; whether they were made is not known.
    unanswered: Vec<String>,
    pods: BTreeMap<Seat, RunningPod>,
    /// Pods that were asked for and have something to put back: namespaces and names.
    tuners: BTreeSet<(String, String)>,
    services: BTreeMap<(Seat, bool), Front>,
    policy: RunPolicy,
    /// Whether many objects may have been made by number.
    has_many: bool,
}

impl StandingPods {
    pub(crate) fn new(
        session: Arc<ClusterConnection>,
        image: String,
        given: Option<String>,
        mark: RunMark,
        wants_policy: bool,
    ) -> Self {
        Self {
            session,
            image,
            mark,
            given,
            namespaces: BTreeMap::new(),
            unanswered: Vec::new(),
            pods: BTreeMap::new(),
            tuners: BTreeSet::new(),
            services: BTreeMap::new(),
            policy: if wants_policy {
                RunPolicy::Wanted
            } else {
                RunPolicy::Unwanted
            },
            has_many: false,
        }
    }

    /// Where many objects can be made by number: a namespace, and what marks them. They go
    /// with the pods.
    pub(crate) fn place_of_many(&mut self) -> Result<(String, RunMark), ClusterError> {
        let namespace = self.namespace(false)?;
        self.has_many = true;
        Ok((namespace, self.mark.clone()))
    }

    /// What marks all that it makes.
    pub(crate) fn mark(&self) -> &RunMark {
        &self.mark
    }

    /// A pod that was seen running; [`refresh`](Self::refresh) says whether it
    /// still does.
    pub(crate) fn pod(&self, seat: Seat) -> Option<&RunningPod> {
        self.pods.get(&seat)
    }

    /// Makes the pods that are not there, and waits until all run.
    pub(crate) fn seat<'a>(
        &mut self,
        seats: &BTreeSet<Seat>,
        node_of: impl Fn(Seat) -> &'a NodeFacts,
    ) -> Result<(), ClusterError> {
        let missing: Vec<Seat> = seats
            .iter()
            .copied()
            .filter(|seat| !self.pods.contains_key(seat))
            .collect();
        for &seat in &missing {
            let node = node_of(seat);
            let spot = Spot::On {
                node: &node.name,
                control_plane: node.control_plane,
            };
            self.create(seat, spot)?;
        }
        self.wait_for(&missing)
    }

    /// Makes the pods of these seats, each on a node of its own: on those of these names,
    /// else where the scheduler puts them. Gives the nodes as far as their pods show them.
    pub(crate) fn scout(
        &mut self,
        seats: &[Seat],
        names: &[String],
    ) -> Result<Vec<NodeFacts>, ClusterError> {
        for (at, &seat) in seats.iter().enumerate() {
            let spot = match names.get(at) {
                Some(node) => Spot::On {
                    node,
                    control_plane: false,
                },
                None if at == 0 => Spot::Anywhere,
                None => Spot::ApartFrom(seats[0]),
            };
            self.create(seat, spot)?;
        }
        self.wait_for(seats)?;
        let pods = seats.iter().filter_map(|seat| self.pods.get(seat));
        let facts = |pod: &RunningPod| NodeFacts {
            name: pod.node.clone(),
            usable: true,
            addresses: pod.node_addresses.clone(),
            ..NodeFacts::default()
        };
        Ok(pods.map(facts).collect())
    }

    fn create(&mut self, seat: Seat, spot: Spot<'_>) -> Result<(), ClusterError> {
        let namespace = self.namespace(seat.is_host())?;
        let pod = manifest::pod(seat, spot, &self.image, &self.mark);
        let api: Api<Pod> = Api::namespaced(self.session.client(), &namespace);
        let what = format!("create pod {namespace}/{}", pod.name_any());
        if seat.tunes() {
            self.tuners.insert((namespace.clone(), pod.name_any()));
        }
        let request = || async {
            match api.create(&PostParams::default(), &pod).await {
                // An answer that was lost, and the request came again.
                Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
                other => other.map(|_| ()),
            }
        };
        self.session.patiently(&what, request)
    }

    /// The namespace for pods of one kind, made when first asked for.
    fn namespace(&mut self, host: bool) -> Result<String, ClusterError> {
        if let Some(name) = self.namespaces.get(&host) {
            return Ok(name.clone());
        }
        let name = match &self.given {
            Some(given) => given.clone(),
            None => self.make_namespace(host)?,
        };
        self.namespaces.insert(host, name.clone());
        Ok(name)
    }

    fn make_namespace(&mut self, host: bool) -> Result<String, ClusterError> {
        let api: Api<Namespace> = Api::all(self.session.client());
        let name = manifest::namespace_name(host);
        let wanted = manifest::namespace(&name, host, &self.mark.started_by);
        let params = PostParams::default();
        let made = api.create(&params, &wanted);
        match self.session.call("create a namespace", made) {
            Ok(_) => Ok(name),
            Err(error) => {
                if error.is_away() || matches!(error, ClusterError::Interrupted) {
                    self.unanswered.push(name);
                }
                Err(error)
            }
        }
    }

    /// What the pod of a seat is called.
    fn name_of(&self, seat: Seat) -> String {
        self.mark.name(&seat.pod())
    }

    fn wait_for(&mut self, seats: &[Seat]) -> Result<(), ClusterError> {
        let started = Instant::now();
        loop {
            let pods = self.list()?;
            let mut waiting = None;
            for &seat in seats {
                let name = self.name_of(seat);
                match pods.iter().find(|pod| pod.name_any() == name) {
                    Some(pod) => match state(pod, started.elapsed(), &self.image)? {
                        Some(running) => {
                            self.pods.insert(seat, running);
                        }
                        None => waiting = Some(said(pod)),
                    },
                    None => waiting = Some(format!("pod {name} is gone")),
                }
            }
            let Some(waiting) = waiting else {
                return Ok(());
            };
            if started.elapsed() > START {
                return Err(ClusterError::TooLong {
                    what: "the start of the pods".to_owned(),
                    limit: START,
                    hint: format!(": {waiting}; is the kubelet of the node healthy?"),
                });
            }
            self.session.pause(LOOK)?;
        }
    }

    fn list(&self) -> Result<Vec<Pod>, ClusterError> {
        let mut pods = Vec::new();
        // One may be for both kinds.
        for namespace in BTreeSet::from_iter(self.namespaces.values()) {
            let api: Api<Pod> = Api::namespaced(self.session.client(), namespace);
            let all = ListParams::default().labels(&self.mark.selector());
            let what = format!("list the pods of namespace {namespace}");
            pods.extend(self.session.patiently(&what, || api.list(&all))?.items);
        }
        Ok(pods)
    }

    /// Forgets pods that no longer run, and removes what is left of them, so that
    /// [`seat`](Self::seat) makes new ones and looks up whatever depends on them
    /// (addresses, endpoints of services).
    pub(crate) fn refresh(&mut self) -> Result<(), ClusterError> {
        if self.pods.is_empty() {
            return Ok(());
        }
        let pods = self.list()?;
        let gone: Vec<Seat> = self
            .pods
            .iter()
            .filter(|(_, known)| {
                let is_it = |pod: &Pod| pod.uid().as_ref() == Some(&known.uid) && is_running(pod);
                !pods.iter().any(is_it)
            })
            .map(|(seat, _)| *seat)
            .collect();
        for seat in gone {
            if let Some(known) = self.pods.remove(&seat) {
                self.remove(seat, &known)?;
            }
        }
        Ok(())
    }

    fn remove(&self, seat: Seat, pod: &RunningPod) -> Result<(), ClusterError> {
        let api: Api<Pod> = Api::namespaced(self.session.client(), &pod.namespace);
        let what = format!("delete pod {}/{}", pod.namespace, pod.name);
        let how = match seat.tunes() {
            true => DeleteParams::default(),
            false => DeleteParams::default().grace_period(0),
        };
        let started = Instant::now();
        while started.elapsed() < START {
            let deleted = self
                .session
                .call(&what, async { found(api.delete(&pod.name, &how).await) })?;
            if deleted.is_none() {
                return Ok(());
            }
            self.session.pause(LOOK)?;
        }
        Err(ClusterError::TooLong {
            what,
            limit: START,
            hint: String::new(),
        })
    }

    /// Deletes the namespaces with all that is in them, or what the run made in the one that
    /// was given, and waits until all is gone. Gives what could not be done.
    pub(crate) fn take_down(&mut self) -> Vec<ClusterError> {
        self.remove_all(delete_namespaces)
    }

    /// As [`take_down`](Self::take_down), without waiting for the end of namespaces of the
    /// run's own.
    pub(crate) fn release(&mut self) -> Vec<ClusterError> {
        self.remove_all(|session, names| begin_to_delete(session, names).1)
    }

    fn remove_all(
        &mut self,
        delete: impl Fn(&ClusterConnection, &[String]) -> Vec<ClusterError>,
    ) -> Vec<ClusterError> {
        self.pods.clear();
        self.services.clear();
        // These have something to put back, and what is below is deleted with no grace.
        let mut errors = end_in_peace(&self.session, &std::mem::take(&mut self.tuners));
        let used = std::mem::take(&mut self.namespaces);
        let selector = self.mark.selector();
        if std::mem::take(&mut self.has_many)
            && let Some(namespace) = used.get(&false)
        {
            errors.extend(bulk::clear(&self.session, namespace, &selector));
        }
        errors.extend(match &self.given {
            Some(_) if used.is_empty() => Vec::new(),
            Some(given) => delete_selected(&self.session, given, &selector),
            None => {
                let mut names = Vec::from_iter(used.into_values());
                names.append(&mut self.unanswered);
                delete(&self.session, &names)
            }
        });
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted::{PlantedServer, Reply};

    fn standing(session: Arc<ClusterConnection>) -> StandingPods {
        let mark = RunMark {
            run: "3fa2".to_owned(),
            started_by: "me".to_owned(),
            shares_namespace: false,
        };
        StandingPods::new(session, "image:1".into(), None, mark, true)
    }

    /// Whether the server made it before the connection was lost, nobody knows.
    #[test]
    fn a_namespace_whose_creation_was_cut_off_is_deleted() {
        let gone = Reply::Status(404, "NotFound", "no such namespace");
        let server = PlantedServer::start([Reply::Nothing], gone);
        let session = Arc::new(server.session());
        let mut standing = standing(session);
        let error = standing.namespace(false).unwrap_err();
        assert!(error.is_away(), "{error}");
        let errors = standing.take_down();
        assert!(errors.is_empty(), "{errors:?}");
        let asked = server.asked();
        let deletes = |it: &&String| it.starts_with("DELETE /api/v1/namespaces/plumbline-");
        assert_eq!(asked.iter().filter(deletes).count(), 2, "{asked:?}");
    }

    #[test]
    fn a_namespace_that_was_refused_is_not_looked_for() {
        let forbidden = Reply::Status(403, "Forbidden", "is forbidden: User \"ann\" cannot create");
        let server = PlantedServer::start([], forbidden);
        let session = Arc::new(server.session());
        let mut standing = standing(session);
        standing.namespace(false).unwrap_err();
        assert!(standing.take_down().is_empty());
        assert_eq!(server.asked().len(), 1);
    }
}
