//! Pods as places for agents, and the agents that stay in them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumbline_experiment::Family;
use plumbline_harness::{AgentLink, Observer, Site, TargetError};

use crate::exec;
use crate::pods::RunningPod;
use crate::seat::Seat;
use crate::session::ClusterConnection;
use crate::standing::StandingPods;

/// A pod in which agents are started.
#[derive(Clone)]
pub(crate) struct PodSite {
    pub(crate) session: Arc<ClusterConnection>,
    pub(crate) seat: Seat,
    pub(crate) pod: RunningPod,
    /// With its namespace; of one that is there for its node, that of the node.
    pub(crate) name: String,
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
}

impl PodSite {
    pub(crate) fn new(
        session: Arc<ClusterConnection>,
        pod: &RunningPod,
        seat: Seat,
        address: IpAddr,
        port: u16,
    ) -> Self {
        Self {
            session,
            seat,
            name: match seat.traces() {
                true => pod.node.clone(),
                false => format!("{}/{}", pod.namespace, pod.name),
            },
            pod: pod.clone(),
            address,
            port,
        }
    }

    pub(crate) fn stands_in(&self, standing: &StandingPods) -> bool {
        standing
            .pod(self.seat)
            .is_some_and(|pod| pod.uid == self.pod.uid)
    }

    /// The address of its node, which may stand for it where packets are masqueraded.
    pub(crate) fn node_address(&self) -> Option<IpAddr> {
        self.pod.node_address(match self.address {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        })
    }
}

impl Site for PodSite {
    fn name(&self) -> &str {
        &self.name
    }

    fn address(&self) -> IpAddr {
        self.address
    }

    fn port(&self) -> u16 {
        self.port
    }

    fn start_agent(&self) -> Result<AgentLink, TargetError> {
        Ok(exec::start(&self.session, &self.pod, &["agent"])?)
    }
}

/// An agent in each pod that stays and reports on the pod and its node. By seat,
/// with the identity of the pod.
#[derive(Default)]
pub(crate) struct Observers(Mutex<BTreeMap<Seat, (String, Arc<Observer>)>>);

impl Observers {
    pub(crate) fn at(&self, site: &PodSite) -> Result<Arc<Observer>, TargetError> {
        if let Some((_, observer)) = lock(&self.0).get(&site.seat).filter(|it| it.1.is_alive()) {
            return Ok(Arc::clone(observer));
        }
        // Not locked meanwhile: agents of several pods start side by side.
        let observer = Arc::new(Observer::start(site)?);
        let own = (site.pod.uid.clone(), Arc::clone(&observer));
        lock(&self.0).insert(site.seat, own);
        Ok(observer)
    }

    /// Forgets those whose pods are gone.
    pub(crate) fn keep(&self, standing: &StandingPods) {
        let stands = |seat, uid: &String| standing.pod(seat).is_some_and(|pod| pod.uid == *uid);
        lock(&self.0).retain(|seat, (uid, _)| stands(*seat, uid));
    }

    /// Ends all. Their pods are deleted next, so how they end does not matter.
    pub(crate) fn end(&self) {
        lock(&self.0).clear();
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
