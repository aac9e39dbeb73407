//! One cluster as a Target.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumbline_experiment::{Asked, Ends, Family, Scene, TaskKind, Treatment};
use plumbline_harness::{Cpus, Demand, Levels, Path, Target, TargetError};
use plumbline_record::{Fingerprint, Floor, IdleSample, SetUp, Warning};

use super::Cluster;
use crate::path::ClusterPath;
use crate::policy::RunPolicy;
use crate::route::ClusterRoute;
use crate::site::lock;
use crate::standing::StandingPods;
use crate::{fingerprint, level, nodes, own};

impl Target for Cluster {
    fn name(&self) -> &'static str {
        "kubernetes"
    }

    fn scenes(
        &mut self,
        asked: &Asked<'_>,
        _: &[Family],
        said: &mut Vec<Warning>,
    ) -> Result<Vec<Scene>, String> {
        let host_network = self.options.host_network;
        let only = [String::new()];
        level::scenes(asked, &only, host_network, said, |word| match asked.path {
            Some(path) => Err(format!(
                "`{word}/{path}` names one of several clusters, but this run has one: write `{path}`",
                path = path.word()
            )),
            None => ClusterRoute::named(word, host_network).map(|_| ()),
        })
    }

    fn lacks(&mut self, variant: &Scene) -> Result<Option<String>, String> {
        own::lacks(variant)
    }

    fn supports(&self, factor: &str) -> Levels {
        match factor {
            "network" | "path" | "planted" | "settings" | "family" => Self::pair_supports(factor),
            _ if !self.is_pair() => Levels::Default,
            _ => Self::pair_supports(factor),
        }
    }

    fn does(&self, task: TaskKind) -> bool {
        match task {
            TaskKind::Load(_) => true,
            TaskKind::Programming | TaskKind::Survive | TaskKind::Launch => self.is_pair(),
        }
    }

    fn prepare(&mut self, demand: &Demand<'_>) -> Result<(), TargetError> {
        self.plan(demand.treatments)?;
        let all: Vec<usize> = (0..self.members().len()).collect();
        self.seat(&all)?;
        for treatment in demand.treatments {
            self.try_first(treatment)?;
        }
        if self.is_pair() {
            self.try_dressings(demand.treatments)?;
            return self.check_egress(demand.treatments);
        }
        self.sights = self.look_at_all()?;
        self.admit_nodes()
    }

    fn nodes(&self) -> Vec<String> {
        self.members()
            .iter()
            .map(|node| node.name.clone())
            .collect()
    }

    /// Also when only some nodes share one, as containers of one machine do.
    fn is_one_kernel(&self) -> bool {
        if self.is_pair() {
            let mut paths = self.first.values();
            return paths.any(ClusterPath::is_one_kernel_posing_as_two);
        }
        let boots = self.sights.iter().map(|sight| &sight.boot);
        let boots: Vec<&String> = boots.filter(|boot| !boot.is_empty()).collect();
        let distinct: BTreeSet<&String> = boots.iter().copied().collect();
        distinct.len() < boots.len()
    }

    /// Of a pair. With many nodes trials may use any CPU, because one number does not
    /// suit all of them.
    fn cpus(&self) -> Cpus {
        let path = self.first.values().next().filter(|_| self.is_pair());
        path.map(ClusterPath::cpus).unwrap_or_default()
    }

    /// On the first node.
    fn floor(&mut self, cpus: Cpus, _: &AtomicBool) -> Result<Option<Floor>, TargetError> {
        match self.first.values().next() {
            Some(path) => path.floor(cpus),
            None => Ok(None),
        }
    }

    fn fingerprint(&mut self) -> Result<Fingerprint, TargetError> {
        let mut whole = fingerprint::of_paths(&self.first)?;
        let first_two = self.members().iter().take(2).map(|node| &*node.name);
        fingerprint::add_cluster(&mut whole, &self.session, first_two)?;
        fingerprint::add_policy(&mut whole, lock(&self.standing).policy());
        self.is_recorded = true;
        if self.is_pair() {
            self.add_tuned(&mut whole)?;
            return Ok(whole);
        }
        let names = self.nodes();
        if !self.is_one_kernel() {
            let others = names.iter().zip(&self.sights).skip(1);
            let others = others.map(|(name, sight)| (name.clone(), sight.fingerprint.clone()));
            whole.others = others.collect();
        }
        self.add_tuned(&mut whole)?;
        for node in nodes::all(&self.session)? {
            let name = node.metadata.name.unwrap_or_default();
            let info = node.status.and_then(|status| status.node_info);
            if let Some(info) = info.filter(|_| names.contains(&name)) {
                let facts = format!("{}, {}", info.kubelet_version, info.kernel_version);
                whole.versions.insert(format!("node {name}"), facts);
            }
        }
        Ok(whole)
    }

    fn warnings(&self) -> Vec<Warning> {
        let remarks = self.members.iter().flat_map(|it| it.remarks.clone());
        let mut warnings: Vec<Warning> = remarks.map(|detail| Warning::Nodes { detail }).collect();
        if let RunPolicy::Missing(why) = lock(&self.standing).policy() {
            warnings.push(Warning::Unguarded { why: why.clone() });
        }
        let is_seen = self.options.host_network || self.options.tuning;
        warnings.extend(self.wardrobe.warning(is_seen));
        let posing = ClusterPath::is_one_kernel_posing_as_two;
        if self.is_one_kernel() || self.first.values().any(posing) {
            warnings.push(Warning::OneKernel);
        }
        warnings
    }

    fn ready(&mut self, treatment: &Treatment, nodes: &[usize]) -> Result<(), TargetError> {
        self.plan(std::slice::from_ref(treatment))?;
        self.seat(nodes)?;
        if self.is_pair() {
            self.make_first(treatment)?;
            self.dress(treatment)?;
        }
        Ok(())
    }

    fn set_up(&mut self) -> Option<SetUp> {
        self.dressing.take_set_up()
    }

    fn stage(
        &self,
        treatment: &Treatment,
        ends: Ends,
    ) -> Result<Box<dyn Path + Send + '_>, TargetError> {
        let key = self.key(treatment)?;
        if let Some(why) = self.unreached.get(&key).filter(|_| self.is_pair()) {
            return Err(TargetError::Unreached(why.clone()));
        }
        let path = match self.standing_first(key, ends) {
            Some(path) => path.clone(),
            None => self.make(key, treatment, ends)?,
        };
        let path = self
            .dressed(path, treatment)?
            .controlled(key.own.tcp_congestion_control);
        let neighbours = treatment.scene.neighbours;
        if neighbours.is_none() {
            return Ok(Box::new(path));
        }
        let other = self.make(key.beside(neighbours), treatment, ends)?;
        Ok(Box::new(path.among(neighbours, other)))
    }

    fn idle_sample(
        &self,
        treatment: &Treatment,
        node: usize,
        length: Duration,
    ) -> Result<IdleSample, TargetError> {
        let (client, server) = self.seats_of(self.key(treatment)?, [node; 2]);
        let is_server = self.is_pair() && node > 0;
        let seat = if is_server { server } else { client };
        // An observer may have been lost while the API server was away, which only a
        // question shows.
        let rest = || self.observer(seat)?.rest(length);
        rest().or_else(|_| rest())
    }

    fn shares_kernel(&self, treatment: &Treatment, [client, server]: Ends) -> bool {
        if !self.is_pair() {
            let boot = |node: usize| self.sights.get(node).map(|sight| &sight.boot);
            let known = boot(client).filter(|boot| !boot.is_empty());
            return known.is_some() && known == boot(server);
        }
        let key = self.key(treatment).ok();
        let path = key.and_then(|key| self.first.get(&key));
        path.map_or(client == server, |path| !path.is_on_two_machines())
    }

    fn can_rotate(&self, one: &Treatment, other: &Treatment) -> bool {
        self.is_pair() && Self::pair_rotates(one, other)
    }

    /// Each copy has pods of its own, in the network of the nodes agents of its own. Not
    /// where several clusters are compared: it would take one in each.
    fn has_controls(&self) -> bool {
        self.is_pair()
    }

    fn has_tried(&self, treatment: &Treatment) -> bool {
        let key = self.key(treatment).ok();
        self.is_pair() && key.is_some_and(|key| self.first.contains_key(&key))
    }

    fn teardown(&mut self) -> Vec<TargetError> {
        self.end(StandingPods::take_down)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Best effort: callers that want the errors call `teardown` first.
        self.teardown();
    }
}
