//! Making paths from running pods.

use std::net::SocketAddr;

use plumbline_experiment::{Ends, Family, Treatment};
use plumbline_harness::TargetError;

use super::{Cluster, PathKey};
use crate::error::ClusterError;
use crate::manifest;
use crate::path::{ClusterPath, PodSite, lock};
use crate::reach::{until_reached, until_told};
use crate::route::{ClusterRoute, Seat};

impl Cluster {
    /// Makes the path of a treatment between the first two nodes, unless it stands, and
    /// checks that it leads to its server. The treatment must be planned.
    pub(crate) fn make_first(&mut self, treatment: &Treatment) -> Result<(), TargetError> {
        let key = self.key(treatment)?;
        // A pod that was replaced takes its paths with it.
        let standing = lock(&self.standing);
        self.first.retain(|_, path| path.stands_in(&standing));
        drop(standing);
        if !self.first.contains_key(&key) {
            let path = self.build_path(key, [0, 1])?;
            until_reached(&self.session, &path, treatment)?;
            self.first.insert(key, path);
        }
        Ok(())
    }

    /// The path of a treatment, if it is between the first two nodes and stands.
    pub(super) fn standing_first(&self, key: PathKey, ends: Ends) -> Option<&ClusterPath> {
        let path = self.first.get(&key)?;
        let is_first = self.is_pair() || ends == [0, 1];
        (is_first && path.stands_in(&lock(&self.standing))).then_some(path)
    }

    /// Makes a new path, and checks that it leads to its server where that is behind a
    /// service.
    pub(super) fn make(
        &self,
        key: PathKey,
        treatment: &Treatment,
        ends: Ends,
    ) -> Result<ClusterPath, TargetError> {
        let path = self.build_path(key, ends)?;
        let (route, _, family) = key;
        let server = (route, self.seats_of(key, ends).1, family);
        if route.is_service() && !lock(&self.reached).contains(&server) {
            until_reached(&self.session, &path, treatment)?;
            lock(&self.reached).insert(server);
        }
        Ok(path)
    }

    /// Assembles a path from running pods; those that have ended meanwhile are replaced.
    fn build_path(&self, key: PathKey, ends: Ends) -> Result<ClusterPath, ClusterError> {
        let mut are_seated = true;
        until_told(&self.session, || {
            if !std::mem::take(&mut are_seated) {
                self.seat(&ends)?;
            }
            self.assemble(key, ends)
        })
    }

    fn assemble(&self, key: PathKey, ends: Ends) -> Result<ClusterPath, ClusterError> {
        let (route, _, family) = key;
        let (client, server) = self.seats_of(key, ends);
        let client = self.site(client, family, 0)?;
        let is_service = route.is_service();
        let port = if is_service { manifest::PORT } else { 0 };
        let servers = server.together().into_iter();
        let servers = servers.map(|seat| self.site(seat, family, port));
        let servers: Vec<PodSite> = servers.collect::<Result<_, _>>()?;
        let front = if is_service {
            Some(self.front(route, server, family)?)
        } else {
            None
        };
        ClusterPath::new(client, servers, front, &self.observers)
    }

    /// The address before the servers of a route through a service.
    fn front(
        &self,
        route: ClusterRoute,
        server: Seat,
        family: Family,
    ) -> Result<SocketAddr, ClusterError> {
        let has_port = |it: &&PathKey| it.0 == ClusterRoute::NodePort;
        let mut by_port = self.planned.iter().filter(has_port);
        let wants_port =
            by_port.any(|it| !self.is_pair() || self.seats_of(*it, [0, 1]).1 == server);
        let front = lock(&self.standing).front(server, family, wants_port)?;
        if route != ClusterRoute::NodePort {
            return Ok((front.cluster_ip, manifest::PORT).into());
        }
        let addresses = &self.node_of(server).addresses;
        let address = addresses.iter().copied().find(|it| family.holds(*it));
        let (Some(address), Some(port)) = (address, front.node_port) else {
            return Err(ClusterError::Refused {
                what: "give the service a port of the nodes".to_owned(),
                message: "one number for TCP and UDP, and a node of this family, are needed"
                    .to_owned(),
            });
        };
        Ok((address, port).into())
    }
}
