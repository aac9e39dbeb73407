//! Making paths from running pods.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use plumbline_experiment::{Ends, ObjectChange, ProgrammedObject, Protocol, Treatment};
use plumbline_harness::{Path as _, TargetError, reach};

use super::Cluster;
use crate::error::ClusterError;
use crate::manifest;
use crate::path::ClusterPath;
use crate::policy::RunPolicy;
use crate::reach::{REACH, until_reached, until_told};
use crate::route::ClusterRoute;
use crate::seat::{PathKey, Seat};
use crate::site::{PodSite, lock};

/// How long a path may lead nowhere before the run's policy is taken for the reason.
const UNDER_POLICY: Duration = Duration::from_secs(10);

/// How soon it is tried again whether a policy acts.
const AGAIN: Duration = Duration::from_millis(300);

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

    /// Sees whether the network enforces policies, where workloads make some: without that
    /// each of their trials would fail after a long wait.
    ///
    /// # Errors
    ///
    /// It does not.
    pub(super) fn check_egress(&self, treatments: &[Treatment]) -> Result<(), TargetError> {
        let makes_policies = |it: &&Treatment| {
            let task = it.task.programming();
            task.is_some_and(|it| it.object == ProgrammedObject::Policy)
                || survives_under_policy(it)
        };
        let Some(treatment) = treatments.iter().find(makes_policies) else {
            return Ok(());
        };
        let Some(path) = self.first.get(&self.key(treatment)?) else {
            return Ok(());
        };
        let anywhere = (path.server().address(), manifest::PORT).into();
        let object = path.programmable(ProgrammedObject::Policy, anywhere)?;
        object.change(ObjectChange::Remove)?;
        let since = Instant::now();
        while since.elapsed() < UNDER_POLICY {
            let interrupted = self.session.interrupted();
            match reach(path, Protocol::Tcp, interrupted) {
                Err(_) if interrupted.load(Ordering::SeqCst) => {
                    return Err(ClusterError::Interrupted.into());
                }
                Err(_) => return Ok(()),
                Ok(()) => self.session.pause(AGAIN)?,
            }
        }
        let remedy = match survives_under_policy(treatment) {
            true => "leave its `policy` out",
            false => "leave this workload out, as with --workload service-added,service-removed",
        };
        Err(TargetError::Unsupported {
            what: format!("the workload `{}`", treatment.task.name()),
            needs: format!(
                "a network that enforces NetworkPolicies: {} s after one forbade all that a pod \
                 sends, it still got through; {remedy}",
                UNDER_POLICY.as_secs()
            ),
        })
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
        let mark = lock(&self.standing).mark().clone();
        let tracers = match self.options.tracing && self.is_pair() {
            true => key.tracers(),
            false => Vec::new(),
        };
        let tracers = tracers.into_iter().map(|seat| self.site(seat, family, 0));
        let tracers = tracers.collect::<Result<_, _>>()?;
        let path = ClusterPath::new(client, servers, front, mark, &self.observers)?;
        let path = path.traced_from(tracers);
        let nodes = self.node_seats(key).into_iter();
        let nodes = nodes.map(|seat| self.site(seat, family, 0));
        let nodes = nodes.collect::<Result<_, _>>()?;
        let path = path.held_by(nodes, self.wardrobe.is_used(), &self.observers)?;
        if key.route.comes_from_node() {
            lock(&self.standing).admit(&path.sender_addresses())?;
        }
        Ok(path)
    }

    /// The addresses before the servers of a route through a service: for their first
    /// receivers, and for the next.
    fn front(&self, key: PathKey, server: Seat) -> Result<[SocketAddr; 2], ClusterError> {
        let family = key.family;
        let has_port = |it: &PathKey| it.route == ClusterRoute::NodePort;
        // One of many nodes has one service, for all paths.
        let wants_port = has_port(&key) || !self.is_pair() && self.planned.iter().any(has_port);
        let front = lock(&self.standing).front(server, family, wants_port)?;
        if key.route != ClusterRoute::NodePort {
            let ports = [manifest::PORT, manifest::NEXT_PORT];
            return Ok(ports.map(|port| (front.cluster_ip, port).into()));
        }
        let addresses = &self.node_of(server).addresses;
        let address = addresses.iter().copied().find(|it| family.holds(*it));
        let (Some(address), Some(ports)) = (address, front.node_ports) else {
            return Err(ClusterError::Refused {
                what: "give the service a port of the nodes".to_owned(),
                message: "one number for TCP and UDP, and a node of this family, are needed"
                    .to_owned(),
            });
        };
        Ok(ports.map(|port| (address, port).into()))
    }
}

/// Whether a command is to run under a policy.
fn survives_under_policy(treatment: &Treatment) -> bool {
    treatment.task.survive().is_some_and(|it| it.policy)
}
