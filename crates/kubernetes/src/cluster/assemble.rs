//! Making paths from running pods.

use std::net::SocketAddr;
use std::time::Duration;

use plumbline_experiment::{Ends, Treatment};
use plumbline_harness::TargetError;

use super::Cluster;
use crate::error::ClusterError;
use crate::manifest;
use crate::path::{ClusterPath, PodSite, lock};
use crate::policy::RunPolicy;
use crate::reach::{REACH, until_reached, until_told};
use crate::route::ClusterRoute;
use crate::seat::{PathKey, Seat};

/// How long a path may lead nowhere before the run's policy is taken for the reason.
const UNDER_POLICY: Duration = Duration::from_secs(10);

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
            self.until_reached(&path, treatment)?;
            self.first.insert(key, path);
            self.unreached.remove(&key);
        }
        Ok(())
    }

    /// As [`make_first`](Self::make_first). That no packet gets through is noted, and no
    /// error: others may be better.
    pub(super) fn try_first(&mut self, treatment: &Treatment) -> Result<(), TargetError> {
        let key = self.key(treatment)?;
        if self.unreached.contains_key(&key) {
            return Ok(());
        }
        match self.make_first(treatment) {
            Err(TargetError::Unreached(why)) => {
                self.unreached.insert(key, why);
                Ok(())
            }
            made => made,
        }
    }

    /// Waits until packets get through, without the run's policy where they do not under
    /// it. Once the record says that it stands, it stays.
    fn until_reached(&self, path: &ClusterPath, treatment: &Treatment) -> Result<(), ClusterError> {
        let wait = |limit| until_reached(&self.session, path, treatment, limit);
        let admitted = match lock(&self.standing).policy() {
            RunPolicy::Stands(nodes) if !self.is_recorded => nodes.clone(),
            _ => return wait(REACH),
        };
        let reached = wait(UNDER_POLICY);
        if !matches!(reached, Err(ClusterError::Agent(_))) {
            return reached;
        }
        lock(&self.standing).do_without(format!(
            "`{}` led nowhere under the run's own, as where a network knows its nodes by no \
             address (Cilium); leave that path out to keep it",
            treatment.label
        ))?;
        let reached = wait(REACH);
        if reached.is_err() {
            // It was not the reason.
            lock(&self.standing).apply(admitted)?;
        }
        reached
    }

    /// Has the run's policy admit what all of many nodes send to pods, so that it does not
    /// change while they are measured.
    pub(super) fn admit_nodes(&self) -> Result<(), TargetError> {
        if !matches!(lock(&self.standing).policy(), RunPolicy::Stands(_)) {
            return Ok(());
        }
        for &key in self.planned.iter().filter(|it| it.route.comes_from_node()) {
            let next = |node: usize| (node + 1) % self.members().len();
            self.of_each_node(|node| Ok(self.build_path(key, [node, next(node)]).map(drop)?))?;
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
        let server = (key, self.seats_of(key, ends).1);
        if key.route.is_service() && !lock(&self.reached).contains(&server) {
            self.until_reached(&path, treatment)?;
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
        let family = key.family;
        let (client, server) = self.seats_of(key, ends);
        let client = self.site(client, family, 0)?;
        let is_service = key.route.is_service();
        let port = if is_service { manifest::PORT } else { 0 };
        let servers = server.together().into_iter();
        let servers = servers.map(|seat| self.site(seat, family, port));
        let servers: Vec<PodSite> = servers.collect::<Result<_, _>>()?;
        let front = if is_service {
            Some(self.front(key, server)?)
        } else {
            None
        };
        let path = ClusterPath::new(client, servers, front, &self.observers)?;
        if key.route.comes_from_node() {
            lock(&self.standing).admit(&path.sender_addresses())?;
        }
        Ok(path)
    }

    /// The address before the servers of a route through a service.
    fn front(&self, key: PathKey, server: Seat) -> Result<SocketAddr, ClusterError> {
        let family = key.family;
        let has_port = |it: &PathKey| it.route == ClusterRoute::NodePort;
        // One of many nodes has one service, for all paths.
        let wants_port = has_port(&key) || !self.is_pair() && self.planned.iter().any(has_port);
        let front = lock(&self.standing).front(server, family, wants_port)?;
        if key.route != ClusterRoute::NodePort {
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
