//! Paths of pods that run.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use plumbline_experiment::Family;

use super::{Cluster, Key};
use crate::choice::Chosen;
use crate::error::ClusterError;
use crate::path::{ClusterPath, PodSite};
use crate::route::{Route, Seat};

impl Cluster {
    /// Has all pods run that are planned, and makes the path of them; `None` when
    /// it stands.
    pub(super) fn stand(
        &mut self,
        key: Key,
        chosen: &Chosen,
    ) -> Result<Option<ClusterPath>, ClusterError> {
        self.standing.refresh()?;
        let planned = self.planned.borrow();
        let seats: BTreeSet<Seat> = planned
            .iter()
            .map(|(route, placement, _)| route.seats(*placement))
            .flat_map(|(client, server)| [vec![client], server.together()].concat())
            .collect();
        drop(planned);
        self.standing.seat(&seats, |seat| chosen.node_of(seat))?;
        // A pod that was replaced takes its paths with it.
        let standing = &self.standing;
        self.paths.retain(|_, path| path.stands_in(standing));
        self.observers.keep(standing);
        if self.paths.contains_key(&key) {
            return Ok(None);
        }
        self.build(key, chosen).map(Some)
    }

    /// Makes a path of pods that run.
    fn build(&mut self, key: Key, chosen: &Chosen) -> Result<ClusterPath, ClusterError> {
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
}
