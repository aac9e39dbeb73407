//! The Target: several clusters, side by side or one after the other.

use std::collections::BTreeMap;
use std::path::Path as FilePath;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumbline_experiment::{Asked, Ends, Family, Scene, TaskKind, Treatment};
use plumbline_harness::{Cpus, Demand, Levels, Path, Target, TargetError};
use plumbline_record::{Fingerprint, Floor, IdleSample, SetUp, Warning};

use crate::alike;
use crate::cluster::{Cluster, ClusterOptions};
use crate::error::ClusterError;
use crate::fresh::{FreshClusters, is_name, not_up};
use crate::image;
use crate::level;
use crate::member::Member;
use crate::own;

/// Several clusters: contexts that stand, the first of which the others are compared
/// with, or clusters that are made for the run, one at a time. The names of networks
/// are those of the clusters' paths with the cluster before them, such as
/// `calico/pod`. Dropping it removes all that it made.
pub(crate) struct Clusters {
    /// What can be asked for: the contexts, or the networks that were asked for, in
    /// their order.
    names: Vec<String>,
    /// Those that stand.
    members: Vec<Member>,
    /// Makes the others.
    fresh: Option<FreshClusters>,
    host_network: bool,
    across_environments: bool,
}

impl Clusters {
    /// Reads the configuration of each context; sends nothing to the clusters yet.
    /// Nodes that differ are refused unless `across_environments`.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Configuration`], also for a context that is given twice.
    pub(crate) fn open(
        contexts: Vec<String>,
        options: &ClusterOptions,
        across_environments: bool,
    ) -> Result<Self, ClusterError> {
        let mut members: Vec<Member> = Vec::new();
        for name in &contexts {
            if members.iter().any(|it| it.name == *name) {
                return Err(ClusterError::Configuration(format!(
                    "context {name} is given twice; to compare a cluster with itself, name a path \
                     twice: --network pod,pod"
                )));
            }
            let cluster = Cluster::open(ClusterOptions {
                context: Some(name.clone()),
                ..options.clone()
            })?;
            members.push(Member {
                name: name.clone(),
                cluster,
                made: None,
            });
        }
        Ok(Self {
            names: contexts,
            members,
            fresh: None,
            host_network: options.host_network,
            across_environments,
        })
    }

    /// None yet; each is made when a treatment asks for it.
    pub(crate) fn made_by(fresh: FreshClusters) -> Self {
        Self {
            names: Vec::new(),
            members: Vec::new(),
            // Each cluster's command decides.
            host_network: true,
            across_environments: fresh.across_environments,
            fresh: Some(fresh),
        }
    }

    fn position(&self, treatment: &Treatment) -> Result<usize, TargetError> {
        let name = level::cluster_of(treatment)?;
        let found = self.members.iter().position(|it| it.name == name);
        found.ok_or_else(|| match &self.fresh {
            Some(_) => not_up(name),
            None => TargetError::Failed(format!(
                "the run has no cluster {name}; give the same --context again"
            )),
        })
    }

    fn cluster_of(&self, treatment: &Treatment) -> Result<&Cluster, TargetError> {
        Ok(&self.members[self.position(treatment)?].cluster)
    }

    /// Sees to it that the cluster of a treatment stands, if it is made for the run.
    fn bring(&mut self, treatment: &Treatment) -> Result<(), TargetError> {
        let Some(fresh) = &mut self.fresh else {
            return Ok(());
        };
        let network = level::cluster_of(treatment)?;
        fresh.ask(&treatment.scene)?;
        if self.members.iter().all(|it| it.name != network) {
            for other in self.members.drain(..) {
                fresh.take_down(other);
            }
            self.members.push(fresh.bring_up(network)?);
        }
        Ok(())
    }

    /// Brings up the first cluster that comes up, in the order of the first block.
    ///
    /// # Errors
    ///
    /// None comes up: what each said.
    fn begin(&mut self, demand: &Demand<'_>) -> Result<(), TargetError> {
        for &id in demand.first {
            let ready = self.ready(&demand.treatments[id], &[0, 1]);
            let must_stop = self.fresh.as_ref().is_some_and(FreshClusters::must_stop);
            if ready.is_ok() || must_stop {
                return ready;
            }
        }
        let none_came_up = self.fresh.as_ref().map(FreshClusters::none_came_up);
        none_came_up.map_or(Ok(()), Err)
    }
}

impl Target for Clusters {
    fn name(&self) -> &'static str {
        "kubernetes"
    }

    /// A cluster, a path, or both as `CLUSTER/PATH`. Where clusters are made, any name
    /// may be one of a cluster: the command knows.
    fn scenes(
        &mut self,
        asked: &Asked<'_>,
        _: &[Family],
        said: &mut Vec<Warning>,
    ) -> Result<Vec<Scene>, String> {
        let names = &self.names;
        let found = level::scenes(asked, names, self.host_network, said, |word| {
            if self.fresh.is_some() {
                return is_name(word);
            }
            if names.iter().any(|name| name == word) {
                return Ok(());
            }
            Err(format!(
                "`{word}` is neither a path nor one of the contexts {}",
                names.join(", ")
            ))
        })?;
        if found.is_empty() {
            return Err(format!(
                "`{}`: which networks? A command that brings clusters up needs their names, as in \
                 --network flannel,calico",
                asked.network.word()
            ));
        }
        for scene in &found {
            if !self.names.contains(&scene.network) {
                self.names.push(scene.network.clone());
            }
        }
        Ok(found)
    }

    fn lacks(&mut self, variant: &Scene) -> Result<Option<String>, String> {
        own::lacks(variant)
    }

    fn supports(&self, factor: &str) -> Levels {
        Cluster::pair_supports(factor)
    }

    fn does(&self, task: TaskKind) -> bool {
        // A command would not know which cluster it is for.
        task != TaskKind::Survive
    }

    /// Clusters that are made stand one at a time; the one that the first trials want is
    /// made.
    fn prepare(&mut self, demand: &Demand<'_>) -> Result<(), TargetError> {
        if let Some(fresh) = &mut self.fresh {
            fresh.plan(demand.treatments)?;
            image::check_servers(demand.treatments)?;
            return self.begin(demand);
        }
        let mut shares: BTreeMap<usize, Vec<Treatment>> = BTreeMap::new();
        for treatment in demand.treatments {
            let share = shares.entry(self.position(treatment)?).or_default();
            share.push(treatment.clone());
        }
        // What one of them lacks is reported before any is changed.
        for (at, share) in &shares {
            self.members[*at].cluster.plan(share)?;
        }
        for (at, share) in &shares {
            let demand = Demand {
                treatments: share,
                ..*demand
            };
            self.members[*at].cluster.prepare(&demand)?;
        }
        Ok(())
    }

    /// The output of the commands goes there.
    fn run_directory(&mut self, path: &FilePath) -> std::io::Result<()> {
        let fresh = self.fresh.as_mut();
        fresh.map_or(Ok(()), |fresh| fresh.maker.keep_logs(path))
    }

    /// What they are called in each of the clusters.
    fn nodes(&self) -> Vec<String> {
        ["the first node", "the second node"]
            .map(str::to_owned)
            .into()
    }

    fn is_one_kernel(&self) -> bool {
        self.members.iter().any(|it| it.cluster.is_one_kernel())
    }

    /// Those that are the same in all clusters.
    fn cpus(&self) -> Cpus {
        let mut all = self.members.iter().map(|it| it.cluster.cpus());
        let first = all.next().unwrap_or_default();
        if all.all(|cpus| cpus == first) {
            first
        } else {
            Cpus::default()
        }
    }

    /// On the first cluster that stands.
    fn floor(
        &mut self,
        cpus: Cpus,
        interrupted: &AtomicBool,
    ) -> Result<Option<Floor>, TargetError> {
        match self.members.first_mut() {
            Some(first) => first.cluster.floor(cpus, interrupted),
            None => Ok(None),
        }
    }

    fn fingerprint(&mut self) -> Result<Fingerprint, TargetError> {
        if let Some(fresh) = &self.fresh {
            return fresh.fingerprint();
        }
        let mut members = self.members.iter_mut();
        let Some(first) = members.next() else {
            return Ok(Fingerprint::default());
        };
        let mut whole = first.fingerprint()?;
        let mut others = BTreeMap::new();
        for member in members {
            let other = member.fingerprint()?;
            let differing = alike::differences(&whole, &other);
            if !differing.is_empty() && !self.across_environments {
                return Err(TargetError::Failed(format!(
                    "the clusters {} and {name} differ in more than their networks, so that a \
                     comparison says nothing about these: of {name}, {}; --across-environments \
                     compares them all the same",
                    first.name,
                    differing.join("; "),
                    name = member.name
                )));
            }
            others.insert(member.name.clone(), other);
        }
        whole.others.extend(others);
        Ok(whole)
    }

    fn site_of(&self, treatment: &Treatment) -> String {
        treatment.scene.network.clone()
    }

    fn keeps_sites_together(&self) -> bool {
        self.fresh.is_some()
    }

    fn begin_block(&mut self, _: usize) {
        let Some(fresh) = &mut self.fresh else { return };
        if fresh.begin_block() {
            for member in self.members.drain(..) {
                fresh.take_down(member);
            }
        }
    }

    fn ready(&mut self, treatment: &Treatment, nodes: &[usize]) -> Result<(), TargetError> {
        self.bring(treatment)?;
        let at = self.position(treatment)?;
        self.members[at].cluster.ready(treatment, nodes)
    }

    fn set_up(&mut self) -> Option<SetUp> {
        let of_cluster = self.fresh.as_mut().and_then(FreshClusters::set_up);
        let mut members = self.members.iter_mut();
        of_cluster.or_else(|| members.find_map(|it| it.cluster.set_up()))
    }

    fn may_try_again(&self, treatment: &Treatment) -> bool {
        let fresh = self.fresh.as_ref();
        !fresh.is_some_and(|it| it.has_failed(&treatment.scene))
    }

    fn carries_nothing(&self, treatment: &Treatment) -> bool {
        let fresh = self.fresh.as_ref();
        fresh.is_some_and(|it| it.carries_nothing(&treatment.scene))
    }

    fn stage(
        &self,
        treatment: &Treatment,
        ends: Ends,
    ) -> Result<Box<dyn Path + Send + '_>, TargetError> {
        self.cluster_of(treatment)?.stage(treatment, ends)
    }

    fn idle_sample(
        &self,
        treatment: &Treatment,
        node: usize,
        length: Duration,
    ) -> Result<IdleSample, TargetError> {
        let cluster = self.cluster_of(treatment)?;
        cluster.idle_sample(treatment, node, length)
    }

    fn shares_kernel(&self, treatment: &Treatment, ends: Ends) -> bool {
        let cluster = self.cluster_of(treatment);
        cluster.is_ok_and(|it| it.shares_kernel(treatment, ends))
    }

    /// Within one cluster, which need not stand yet.
    fn can_rotate(&self, one: &Treatment, other: &Treatment) -> bool {
        Cluster::pair_rotates(one, other)
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut warnings: Vec<Warning> = Vec::new();
        for member in &self.members {
            for warning in member.cluster.warnings() {
                let here = |text| format!("in {}: {text}", member.name);
                let warning = match warning {
                    // Where clusters are made, it concerns all of them.
                    other if self.fresh.is_some() => other,
                    Warning::Nodes { detail } => Warning::Nodes {
                        detail: here(detail),
                    },
                    Warning::Unguarded { why } => Warning::Unguarded { why: here(why) },
                    other => other,
                };
                if !warnings.contains(&warning) {
                    warnings.push(warning);
                }
            }
        }
        warnings
    }

    fn has_tried(&self, treatment: &Treatment) -> bool {
        let cluster = self.cluster_of(treatment);
        cluster.is_ok_and(|it| it.has_tried(treatment))
    }

    fn teardown(&mut self) -> Vec<TargetError> {
        let Some(fresh) = &mut self.fresh else {
            let all = self.members.iter_mut();
            return all.flat_map(|member| member.cluster.teardown()).collect();
        };
        for member in self.members.drain(..) {
            fresh.take_down(member);
        }
        std::mem::take(&mut fresh.maker.left)
    }
}

impl Drop for Clusters {
    fn drop(&mut self) {
        // Best effort: callers that want the errors call `teardown` first.
        self.teardown();
    }
}
