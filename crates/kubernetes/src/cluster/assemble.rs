//! Paths of pods that run.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumbline_experiment::{Family, Treatment};
use plumbline_harness::{Path as _, TargetError, reach};

use super::{Cluster, Key};
use crate::choice::Chosen;
use crate::error::ClusterError;
use crate::path::{ClusterPath, PodSite};
use crate::route::{Route, Seat};

/// How pods behind a service are first reached: kube-proxy writes its rules
/// a moment after the pod is ready.
const REACH: Duration = Duration::from_secs(20);

impl Cluster {
    /// Makes a path of pods that run.
    pub(super) fn build(&mut self, key: Key, chosen: &Chosen) -> Result<ClusterPath, ClusterError> {
        let (route, placement, family) = key;
        let (client, seat) = route.seats(placement);
        let client = self.site(client, family, 0)?;
        let port = if route.is_service() {
            crate::manifest::PORT
        } else {
            0
        };
        let servers = seat.together().into_iter();
        let servers = servers.map(|seat| self.site(seat, family, port));
        let servers = servers.collect::<Result<_, _>>()?;
        let front = if route.is_service() {
            Some(self.front(route, seat, family, chosen)?)
        } else {
            None
        };
        ClusterPath::new(client, servers, front, &mut self.observers)
    }

    /// The address before the servers of a route through a service.
    fn front(
        &mut self,
        route: Route,
        seat: Seat,
        family: Family,
        chosen: &Chosen,
    ) -> Result<SocketAddr, ClusterError> {
        let planned = self.planned.borrow();
        let mut leads_here = planned.iter().map(|it| (it.0, it.0.seats(it.1).1));
        let wants_port = leads_here.any(|it| it == (Route::NodePort, seat));
        drop(planned);
        let front = self.standing.front(seat, family, wants_port)?;
        if route != Route::NodePort {
            return Ok((front.cluster_ip, crate::manifest::PORT).into());
        }
        let far = chosen.far.as_ref().filter(|_| seat.is_far());
        let node = far.unwrap_or(&chosen.near);
        let address = node.addresses.iter().copied().find(|it| family.holds(*it));
        let (Some(address), Some(port)) = (address, front.node_port) else {
            return Err(ClusterError::Refused {
                what: "give the service a port of the nodes".to_owned(),
                message: "one number for TCP and UDP, and a node of this family, are needed"
                    .to_owned(),
            });
        };
        Ok((address, port).into())
    }

    fn site(&self, seat: Seat, family: Family, port: u16) -> Result<PodSite, ClusterError> {
        let pod = self.standing.pod(seat);
        let address = pod.and_then(|pod| Some((pod, pod.address(family)?)));
        let Some((pod, address)) = address else {
            return Err(ClusterError::Pod {
                pod: seat.name().into_owned(),
                message: format!(
                    "it has no IPv{} address; does the cluster's network have this family?",
                    u8::from(family)
                ),
            });
        };
        Ok(PodSite::new(
            Arc::clone(&self.session),
            pod,
            seat,
            address,
            port,
        ))
    }

    /// Waits until packets get through.
    pub(super) fn reached(
        &self,
        path: &mut ClusterPath,
        treatment: &Treatment,
    ) -> Result<(), ClusterError> {
        let started = Instant::now();
        loop {
            let interrupted = self.session.interrupted();
            match reach(path, treatment, interrupted) {
                Ok(()) => return Ok(()),
                Err(_) if interrupted.load(std::sync::atomic::Ordering::SeqCst) => {
                    return Err(ClusterError::Interrupted);
                }
                Err(error) if started.elapsed() > REACH => {
                    return Err(ClusterError::Agent(TargetError::Failed(format!(
                        "the path `{}` leads nowhere: {error}; is a NetworkPolicy or a firewall \
                         between {} and {}?",
                        treatment.label,
                        path.client().name(),
                        path.server().name(),
                    ))));
                }
                Err(_) => self.session.pause(Duration::from_millis(300))?,
            }
        }
    }
}
