//! The Target: several clusters that stand side by side.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumbline_experiment::{Asked, Ends, Family, Scene, Treatment};
use plumbline_harness::{Cpus, Demand, Levels, Path, Target, TargetError};
use plumbline_record::{Fingerprint, Floor, IdleSample, Warning};

use crate::alike;
use crate::cluster::{Cluster, ClusterOptions};
use crate::error::ClusterError;
use crate::level;
use crate::route::available;

struct Member {
    name: String,
    cluster: Cluster,
}

/// Several clusters, the first of which the others are compared with. The names
/// of networks are those of the clusters' paths with the cluster before them,
/// such as `calico/pod`. Dropping it removes all that it made in them.
pub(crate) struct Clusters {
    members: Vec<Member>,
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
        contexts: &[String],
        options: &ClusterOptions,
        across_environments: bool,
    ) -> Result<Self, ClusterError> {
        let mut members: Vec<Member> = Vec::new();
        for name in contexts {
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
            });
        }
        Ok(Self {
            members,
            across_environments,
        })
    }

    fn member(&self, treatment: &Treatment) -> Result<usize, TargetError> {
        let name = level::cluster_of(treatment)?;
        let found = self.members.iter().position(|it| it.name == name);
        found.ok_or_else(|| {
            TargetError::Failed(format!(
                "the run has no cluster {name}; give the same --context again"
            ))
        })
    }

    fn cluster_of(&self, treatment: &Treatment) -> Result<&Cluster, TargetError> {
        Ok(&self.members[self.member(treatment)?].cluster)
    }
}

/// A cluster's fingerprint with its name before each of its paths.
pub(crate) fn named(cluster: &str, mut fingerprint: Fingerprint) -> Fingerprint {
    let devices = std::mem::take(&mut fingerprint.devices).into_iter();
    fingerprint.devices = devices
        .map(|(path, devices)| (format!("{cluster}/{path}"), devices))
        .collect();
    fingerprint
}

impl Target for Clusters {
    fn name(&self) -> &'static str {
        "kubernetes"
    }

    /// A context, a path, or both as `CONTEXT/PATH`.
    fn scenes(
        &mut self,
        asked: &Asked<'_>,
        _: &[Family],
        said: &mut Vec<Warning>,
    ) -> Result<Vec<Scene>, String> {
        let names: Vec<String> = self.members.iter().map(|it| it.name.clone()).collect();
        let Some(first) = self.members.first() else {
            return Ok(Vec::new());
        };
        let (here, missing) = available(first.cluster.has_host_network());
        let is_cluster = |word: &str| names.iter().any(|name| name == word);
        if asked.path.is_none() && asked.network.name().is_none_or(is_cluster) {
            let news = missing.into_iter().filter(|one| !said.contains(one));
            let news: Vec<Warning> = news.collect();
            said.extend(news);
        }
        level::scenes(asked, &names, &here, |word| {
            if is_cluster(word) {
                return Ok(());
            }
            Err(format!(
                "`{word}` is neither a path nor one of the contexts {}",
                names.join(", ")
            ))
        })
    }

    fn supports(&self, factor: &str) -> Levels {
        let first = self.members.first();
        first.map_or(Levels::Default, |it| it.cluster.supports(factor))
    }

    fn prepare(&mut self, demand: &Demand<'_>) -> Result<(), TargetError> {
        let mut shares: BTreeMap<usize, Vec<Treatment>> = BTreeMap::new();
        for treatment in demand.treatments {
            let share = shares.entry(self.member(treatment)?).or_default();
            share.push(level::within(treatment));
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

    /// On the first cluster.
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
        let mut seen = Vec::new();
        for member in &mut self.members {
            seen.push(named(&member.name, member.cluster.fingerprint()?));
        }
        let names = self.members.iter().map(|it| it.name.clone());
        let mut seen = names.zip(seen);
        let Some((first_name, mut whole)) = seen.next() else {
            return Ok(Fingerprint::default());
        };
        let mut others = BTreeMap::new();
        for (name, other) in seen {
            let differing = alike::differences(&whole, &other);
            if !differing.is_empty() && !self.across_environments {
                return Err(TargetError::Failed(format!(
                    "the clusters {first_name} and {name} differ in more than their networks, so \
                     that a comparison says nothing about these: of {name}, {}; \
                     --across-environments compares them all the same",
                    differing.join("; ")
                )));
            }
            others.insert(name, other);
        }
        whole.others.extend(others);
        Ok(whole)
    }

    fn site_of(&self, treatment: &Treatment) -> String {
        treatment.scene.network.clone()
    }

    fn ready(&mut self, treatment: &Treatment, nodes: &[usize]) -> Result<(), TargetError> {
        let at = self.member(treatment)?;
        let treatment = level::within(treatment);
        self.members[at].cluster.ready(&treatment, nodes)
    }

    fn stage(
        &self,
        treatment: &Treatment,
        ends: Ends,
    ) -> Result<Box<dyn Path + Send + '_>, TargetError> {
        let cluster = self.cluster_of(treatment)?;
        cluster.stage(&level::within(treatment), ends)
    }

    fn idle_sample(
        &self,
        treatment: &Treatment,
        node: usize,
        length: Duration,
    ) -> Result<IdleSample, TargetError> {
        let cluster = self.cluster_of(treatment)?;
        cluster.idle_sample(&level::within(treatment), node, length)
    }

    fn shares_kernel(&self, treatment: &Treatment, ends: Ends) -> bool {
        let cluster = self.cluster_of(treatment).ok();
        cluster.is_some_and(|it| it.shares_kernel(&level::within(treatment), ends))
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut warnings: Vec<Warning> = Vec::new();
        for member in &self.members {
            for warning in member.cluster.warnings() {
                let warning = match warning {
                    Warning::Nodes { detail } => Warning::Nodes {
                        detail: format!("in {}: {detail}", member.name),
                    },
                    other => other,
                };
                if !warnings.contains(&warning) {
                    warnings.push(warning);
                }
            }
        }
        warnings
    }

    fn teardown(&mut self) -> Vec<TargetError> {
        let all = self.members.iter_mut();
        all.flat_map(|member| member.cluster.teardown()).collect()
    }
}
