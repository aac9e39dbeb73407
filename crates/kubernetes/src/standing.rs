//! What stands in the cluster for a run: namespaces, pods, services.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Namespace, Pod, Service};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use plumbline_experiment::Family;

use crate::ClusterError;
use crate::choice::NodeFacts;
use crate::manifest;
use crate::pods::{RunningPod, is_running, said, state};
use crate::route::Seat;
use crate::session::{ClusterConnection, PATIENCE};

/// Longest wait for pods to run. Pulling an image of 15 MB takes seconds.
const START: Duration = Duration::from_secs(60);

/// How often pods that start are checked.
const LOOK: Duration = Duration::from_millis(150);

/// Longest wait for the end of a namespace.
const END: Duration = Duration::from_secs(60);

/// The addresses before a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Front {
    pub(crate) cluster_ip: IpAddr,
    pub(crate) node_port: Option<u16>,
}

pub(crate) struct StandingPods {
    session: Arc<ClusterConnection>,
    image: String,
    started_by: String,
    /// Whether it is that of the pods in the nodes' networks, and its name.
    namespaces: BTreeMap<bool, String>,
    /// Namespaces that were asked for; whether they were made is not known.
    unanswered: Vec<String>,
    pods: BTreeMap<Seat, RunningPod>,
    services: BTreeMap<(Seat, bool), Front>,
}

impl StandingPods {
    pub(crate) fn new(session: Arc<ClusterConnection>, image: String, started_by: String) -> Self {
        Self {
            session,
            image,
            started_by,
            namespaces: BTreeMap::new(),
            unanswered: Vec::new(),
            pods: BTreeMap::new(),
            services: BTreeMap::new(),
        }
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
            self.create(seat, node_of(seat))?;
        }
        self.wait_for(&missing)
    }

    fn create(&mut self, seat: Seat, node: &NodeFacts) -> Result<(), ClusterError> {
        let namespace = self.namespace(seat.is_host())?;
        let pod = manifest::pod(seat, &node.name, node.control_plane, &self.image);
        let api: Api<Pod> = Api::namespaced(self.session.client(), &namespace);
        let what = format!("create pod {namespace}/{}", seat.name());
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
        let api: Api<Namespace> = Api::all(self.session.client());
        let name = manifest::namespace_name(host);
        let wanted = manifest::namespace(&name, host, &self.started_by);
        let what = "create a namespace";
        let made = self
            .session
            .call(what, api.create(&PostParams::default(), &wanted));
        match made {
            Ok(_) => {
                self.namespaces.insert(host, name.clone());
                Ok(name)
            }
            Err(error) => {
                if error.is_away() || matches!(error, ClusterError::Interrupted) {
                    self.unanswered.push(name);
                }
                Err(error)
            }
        }
    }

    fn wait_for(&mut self, seats: &[Seat]) -> Result<(), ClusterError> {
        let started = Instant::now();
        loop {
            let pods = self.list()?;
            let mut waiting = None;
            for &seat in seats {
                match pods.iter().find(|pod| pod.name_any() == seat.name()) {
                    Some(pod) => match state(pod, started.elapsed(), &self.image)? {
                        Some(running) => {
                            self.pods.insert(seat, running);
                        }
                        None => waiting = Some(said(pod)),
                    },
                    None => waiting = Some(format!("pod {} is gone", seat.name())),
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
        for namespace in self.namespaces.values() {
            let api: Api<Pod> = Api::namespaced(self.session.client(), namespace);
            let all = ListParams::default();
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
            .filter(|(seat, known)| {
                let now = pods.iter().find(|pod| pod.name_any() == seat.name());
                !now.is_some_and(|pod| pod.uid().as_ref() == Some(&known.uid) && is_running(pod))
            })
            .map(|(seat, _)| *seat)
            .collect();
        for seat in gone {
            if let Some(known) = self.pods.remove(&seat) {
                self.remove(seat, &known.namespace)?;
            }
        }
        Ok(())
    }

    fn remove(&self, seat: Seat, namespace: &str) -> Result<(), ClusterError> {
        let api: Api<Pod> = Api::namespaced(self.session.client(), namespace);
        let what = format!("delete pod {namespace}/{}", seat.name());
        let now = DeleteParams::default().grace_period(0);
        let started = Instant::now();
        while started.elapsed() < START {
            let deleted = self
                .session
                .call(&what, async { found(api.delete(&seat.name(), &now).await) })?;
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

    /// The service before a server, made when first asked for.
    pub(crate) fn front(
        &mut self,
        seat: Seat,
        family: Family,
        node_port: bool,
    ) -> Result<Front, ClusterError> {
        let v6 = family == Family::V6;
        if let Some(front) = self.services.get(&(seat, v6)) {
            return Ok(*front);
        }
        let namespace = self.namespace(false)?;
        let api: Api<Service> = Api::namespaced(self.session.client(), &namespace);
        let what = format!("create service {namespace}/{}", seat.group());
        let wanted = manifest::service(seat, node_port, v6);
        let made = self
            .session
            .call(&what, api.create(&PostParams::default(), &wanted))?;
        let front = read_front(&made).ok_or_else(|| ClusterError::Refused {
            what,
            message: "it got no address".to_owned(),
        })?;
        self.services.insert((seat, v6), front);
        Ok(front)
    }

    /// Deletes the namespaces with all that is in them, and waits until they
    /// are gone. Gives what could not be done.
    pub(crate) fn take_down(&mut self) -> Vec<ClusterError> {
        self.pods.clear();
        self.services.clear();
        let mut names: Vec<String> = std::mem::take(&mut self.namespaces).into_values().collect();
        names.append(&mut self.unanswered);
        delete_namespaces(&self.session, &names)
    }
}

/// Deletes namespaces, and waits until they are gone: all at once, because each
/// takes some seconds. An API server that is away is waited for.
pub(crate) fn delete_namespaces(
    session: &ClusterConnection,
    names: &[String],
) -> Vec<ClusterError> {
    let mut errors = Vec::new();
    let mut going = Vec::new();
    let until = Instant::now() + PATIENCE;
    let api: Api<Namespace> = Api::all(session.client());
    for name in names {
        // With no grace: a kubelet that does not answer would keep its pods, and so the
        // namespace; and the pods have nothing to finish.
        let pods: Api<Pod> = Api::namespaced(session.client(), name);
        let now = DeleteParams::default().grace_period(0);
        let all = ListParams::default();
        let what = format!("delete the pods of namespace {name}");
        let deleted = session.insist(&what, until, || async {
            found(pods.delete_collection(&now, &all).await)
        });
        errors.extend(deleted.err());
        let what = format!("delete namespace {name}");
        let deleted = session.insist(&what, until, || async {
            found(api.delete(name, &DeleteParams::default()).await)
        });
        match deleted {
            Ok(_) => going.push(name),
            Err(error) => errors.push(error),
        }
    }
    let started = Instant::now();
    for name in going {
        errors.extend(wait_until_gone(session, &api, name, started).err());
    }
    errors
}

fn wait_until_gone(
    session: &ClusterConnection,
    api: &Api<Namespace>,
    name: &str,
    started: Instant,
) -> Result<(), ClusterError> {
    let what = format!("look for namespace {name}");
    loop {
        let looked = session.insist(&what, started + PATIENCE, || api.get_opt(name));
        let Some(namespace) = looked? else {
            return Ok(());
        };
        if started.elapsed() > END {
            return Err(ClusterError::TooLong {
                what: format!("the end of namespace {name}"),
                limit: END,
                hint: format!(
                    "{}; it goes when that is resolved, or try `plumbline cleanup` later",
                    why_it_stays(&namespace)
                ),
            });
        }
        std::thread::sleep(LOOK);
    }
}

fn why_it_stays(namespace: &Namespace) -> String {
    let conditions = namespace
        .status
        .iter()
        .flat_map(|it| it.conditions.iter().flatten());
    let messages: Vec<&str> = conditions
        .filter(|it| it.status == "True")
        .filter_map(|it| it.message.as_deref())
        .collect();
    if messages.is_empty() {
        String::new()
    } else {
        format!(" ({})", messages.join("; "))
    }
}

/// `None` for what is not there.
fn found<T>(answer: kube::Result<T>) -> kube::Result<Option<T>> {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        other => other.map(Some),
    }
}

fn read_front(service: &Service) -> Option<Front> {
    let spec = service.spec.as_ref()?;
    let ports = spec.ports.as_ref()?;
    let node_port = |protocol: &str| {
        let port = ports
            .iter()
            .find(|it| it.protocol.as_deref() == Some(protocol))?;
        u16::try_from(port.node_port?).ok()
    };
    // The API server gives both protocols of a port the same number.
    let both = node_port("TCP").filter(|tcp| node_port("UDP") == Some(*tcp));
    Some(Front {
        cluster_ip: spec.cluster_ip.as_ref()?.parse().ok()?,
        node_port: both,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted::{PlantedServer, Reply};

    #[test]
    fn a_teardown_waits_for_an_api_server_that_is_away() {
        let troubled = |code| Reply::Status(code, "InternalError", "etcd is slow");
        let replies = [
            Reply::Nothing,
            troubled(500),
            troubled(503),
            troubled(504),
            Reply::Status(404, "NotFound", "no pods"),
            troubled(500),
        ];
        let gone = Reply::Status(404, "NotFound", "no such namespace");
        let server = PlantedServer::start(replies, gone);
        let errors = delete_namespaces(&server.session(), &["plumbline-x".to_owned()]);
        assert!(errors.is_empty(), "{errors:?}");
        let asked = server.asked();
        let pods = "DELETE /api/v1/namespaces/plumbline-x/pods";
        assert_eq!(
            asked.iter().filter(|it| it.starts_with(pods)).count(),
            5,
            "{asked:?}"
        );
        assert!(asked.last().unwrap().starts_with("GET "), "{asked:?}");
    }

    /// Whether the server made it before the connection was lost, nobody knows.
    #[test]
    fn a_namespace_whose_creation_was_cut_off_is_deleted() {
        let gone = Reply::Status(404, "NotFound", "no such namespace");
        let server = PlantedServer::start([Reply::Nothing], gone);
        let session = Arc::new(server.session());
        let mut standing = StandingPods::new(session, "image:1".into(), "me".into());
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
        let mut standing = StandingPods::new(session, "image:1".into(), "me".into());
        standing.namespace(false).unwrap_err();
        assert!(standing.take_down().is_empty());
        assert_eq!(server.asked().len(), 1);
    }

    #[test]
    fn a_refusal_is_not_tried_again() {
        let forbidden = Reply::Status(403, "Forbidden", "is forbidden: User \"ann\" cannot delete");
        let server = PlantedServer::start([], forbidden);
        let errors = delete_namespaces(&server.session(), &["plumbline-x".to_owned()]);
        assert_eq!((errors.len(), server.asked().len()), (2, 2), "{errors:?}");
    }
}
