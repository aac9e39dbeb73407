//! The Target: several clusters that stand side by side.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumbline_experiment::{Asked, Placement, Scene, Treatment};
use plumbline_harness::{Cpus, Path, Target, TargetError};
use plumbline_record::{Fingerprint, Floor, IdleSample, Warning};

use crate::alike;
use crate::cluster::{Cluster, ClusterOptions};
use crate::error::ClusterError;
use crate::level;
use crate::route::available;

/// One of several clusters.
struct Member {
    name: String,
    /// What its machines are called: both nodes, and the first.
    machines: [String; 2],
    cluster: Cluster,
}

/// Several clusters, the first of which the others are compared with. The names
/// of networks are those of the clusters' paths with the cluster before them,
/// such as `calico/pod`. Dropping it removes all that it made in them.
pub struct Clusters {
    members: Vec<Member>,
    across_environments: bool,
}

impl Clusters {
    /// Reads the configuration of each context; says nothing to the clusters yet.
    /// Nodes that differ are refused unless `across_environments`.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Configuration`], also for a context that is given twice.
    pub fn open(
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
                machines: machines(name),
                name: name.clone(),
                cluster,
            });
        }
        Ok(Self {
            members,
            across_environments,
        })
    }

    /// The scenes that an experiment asks for, with what of them cannot be had.
    ///
    /// # Errors
    ///
    /// A sentence, for a word that is neither one of the contexts nor a path.
    pub fn scenes(&self, asked: &Asked<'_>) -> Result<(Vec<Scene>, Vec<Warning>), String> {
        let names: Vec<String> = self.members.iter().map(|it| it.name.clone()).collect();
        let Some(first) = self.members.first() else {
            return Ok(Default::default());
        };
        let (here, mut missing) = available(first.cluster.has_host_network());
        let is_whole = |word: &str| names.iter().any(|name| name == word);
        if asked.path.is_some() || !asked.network.name().is_none_or(is_whole) {
            missing.clear();
        }
        let scenes = level::scenes(asked, &names, &here, |word| {
            if names.iter().any(|name| name == word) {
                return Ok(());
            }
            Err(format!(
                "`{word}` is neither a path nor one of the contexts {}",
                names.join(", ")
            ))
        })?;
        Ok((scenes, missing))
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
}

/// What the machines of a cluster are called: both nodes, and the first.
pub(crate) fn machines(cluster: &str) -> [String; 2] {
    [
        format!("both nodes of {cluster}"),
        format!("the first node of {cluster}"),
    ]
}

/// Which of them a treatment is on.
pub(crate) fn machines_under(treatment: &Treatment) -> usize {
    match treatment.scene.placement {
        Placement::CrossNode => 0,
        Placement::SameNode => 1,
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

    fn validate(&self, treatments: &[Treatment]) -> Result<(), TargetError> {
        let mut shares: BTreeMap<usize, Vec<Treatment>> = BTreeMap::new();
        for treatment in treatments {
            let share = shares.entry(self.member(treatment)?).or_default();
            share.push(level::within(treatment));
        }
        for (at, share) in shares {
            self.members[at].cluster.validate(&share)?;
        }
        Ok(())
    }

    fn path(&mut self, treatment: &Treatment) -> Result<&mut dyn Path, TargetError> {
        let at = self.member(treatment)?;
        self.members[at].cluster.path(&level::within(treatment))
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
                     that a comparison says nothing of these: of {name}, {}; \
                     --across-environments compares them all the same",
                    differing.join("; ")
                )));
            }
            others.insert(name, other);
        }
        whole.others.extend(others);
        Ok(whole)
    }

    fn machines(&self, treatment: &Treatment) -> &str {
        match self.member(treatment) {
            Ok(at) => &self.members[at].machines[machines_under(treatment)],
            Err(_) => "",
        }
    }

    fn idle_sample(
        &mut self,
        treatment: &Treatment,
        length: Duration,
    ) -> Result<IdleSample, TargetError> {
        let at = self.member(treatment)?;
        let treatment = level::within(treatment);
        self.members[at].cluster.idle_sample(&treatment, length)
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
