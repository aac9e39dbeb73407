//! The Target: paths between pods of a cluster.

mod assemble;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumbline_experiment::{Asked, Family, Placement, Scene, Treatment};
use plumbline_harness::{Cpus, Path, Target, TargetError};
use plumbline_record::{Fingerprint, Floor, IdleSample, Warning};

use crate::choice::{Chosen, choose};
use crate::error::ClusterError;
use crate::fingerprint;
use crate::nodes;
use crate::path::{ClusterPath, Observers};
use crate::reach::{until_reached, until_told};
use crate::route::{self, NEEDS_HOST_NETWORK, Route};
use crate::session::Session;
use crate::standing::Standing;

/// What to run in, and how.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// File that names the cluster; the user's own configuration where there is
    /// none.
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; the current one where there is none.
    pub context: Option<String>,
    /// Names of the two nodes; empty for a choice.
    pub nodes: Vec<String>,
    /// Reference of the pods' image.
    pub image: String,
    /// Whether pods may be in the nodes' networks, in a namespace that allows it.
    pub host_network: bool,
    /// Who starts the run, for others who find its namespaces.
    pub started_by: String,
    /// Set when the user wants to stop.
    pub interrupted: &'static AtomicBool,
}

type Key = (Route, Placement, Family);

/// Paths in a cluster. Dropping it removes all that it made.
pub struct Cluster {
    options: ClusterOptions,
    session: Arc<Session>,
    standing: Standing,
    observers: Observers,
    chosen: RefCell<Option<Chosen>>,
    /// What the plan will ask for, so that all pods start side by side.
    planned: RefCell<BTreeSet<Key>>,
    paths: BTreeMap<Key, ClusterPath>,
}

impl Cluster {
    /// Reads the configuration; says nothing to the cluster yet.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Configuration`].
    pub fn open(options: ClusterOptions) -> Result<Self, ClusterError> {
        let context = options.context.as_deref();
        let file = options.kubeconfig.as_deref();
        let session = Arc::new(Session::open(file, context, options.interrupted)?);
        let standing = Standing::new(
            Arc::clone(&session),
            options.image.clone(),
            options.started_by.clone(),
        );
        Ok(Self {
            options,
            session,
            standing,
            observers: Observers::default(),
            chosen: RefCell::new(None),
            planned: RefCell::default(),
            paths: BTreeMap::new(),
        })
    }

    /// Whether pods may be in the nodes' networks.
    pub(crate) fn has_host_network(&self) -> bool {
        self.options.host_network
    }

    /// The scenes that an experiment asks for, with what of them cannot be had.
    ///
    /// # Errors
    ///
    /// A sentence, for a word that is no route, or one that may not be had.
    pub fn scenes(&self, asked: &Asked<'_>) -> Result<(Vec<Scene>, Vec<Warning>), String> {
        route::asked(asked, self.options.host_network)
    }

    fn chosen(&self) -> Result<Chosen, ClusterError> {
        if let Some(chosen) = &*self.chosen.borrow() {
            return Ok(chosen.clone());
        }
        let found = nodes::all(&self.session)?;
        let facts: Vec<_> = found.iter().map(nodes::facts).collect();
        let chosen = choose(&facts, &self.options.nodes)?;
        *self.chosen.borrow_mut() = Some(chosen.clone());
        Ok(chosen)
    }

    fn key(treatment: &Treatment) -> Result<Key, TargetError> {
        let scene = &treatment.scene;
        Ok((Route::of(scene)?, scene.placement, scene.family))
    }

    fn check(&self, chosen: &Chosen, key: Key) -> Result<(), TargetError> {
        let (route, placement, family) = key;
        if placement == Placement::CrossNode && chosen.far.is_none() {
            return Err(TargetError::Unsupported {
                what: "a path between nodes".to_owned(),
                needs: format!(
                    "two ready nodes that take pods, and here is one ({}): see `kubectl get \
                     nodes`; --placement same-node needs no other",
                    chosen.near.name
                ),
            });
        }
        if route.needs_host_network() && !self.options.host_network {
            return Err(TargetError::Unsupported {
                what: format!("the path `{}`", route.name()),
                needs: NEEDS_HOST_NETWORK.to_owned(),
            });
        }
        if !chosen.near.addresses.iter().any(|it| family.holds(*it)) {
            return Err(TargetError::Unsupported {
                what: format!("IPv{}", u8::from(family)),
                needs: format!(
                    "nodes that have such addresses; {} has none",
                    chosen.near.name
                ),
            });
        }
        Ok(())
    }
}

impl Target for Cluster {
    fn name(&self) -> &'static str {
        "kubernetes"
    }

    fn validate(&self, treatments: &[Treatment]) -> Result<(), TargetError> {
        let chosen = self.chosen()?;
        for treatment in treatments {
            let key = Self::key(treatment)?;
            self.check(&chosen, key)?;
            self.planned.borrow_mut().insert(key);
        }
        Ok(())
    }

    fn path(&mut self, treatment: &Treatment) -> Result<&mut dyn Path, TargetError> {
        let key = Self::key(treatment)?;
        let chosen = self.chosen()?;
        self.check(&chosen, key)?;
        self.planned.borrow_mut().insert(key);
        let session = Arc::clone(&self.session);
        if let Some(mut path) = until_told(&session, || self.stand(key, &chosen))? {
            until_reached(&self.session, &mut path, treatment)?;
            self.paths.insert(key, path);
        }
        match self.paths.get_mut(&key) {
            Some(path) => Ok(path),
            None => unreachable!("it was just put there"),
        }
    }

    fn cpus(&self) -> Cpus {
        let path = self.paths.values().next();
        path.map(ClusterPath::cpus).unwrap_or_default()
    }

    /// On the client's node.
    fn floor(&mut self, cpus: Cpus, _: &AtomicBool) -> Result<Option<Floor>, TargetError> {
        match self.paths.values().next() {
            Some(path) => path.floor(cpus),
            None => Ok(None),
        }
    }

    fn fingerprint(&mut self) -> Result<Fingerprint, TargetError> {
        let chosen = self.chosen()?;
        let mut whole = fingerprint::of_paths(&self.paths)?;
        fingerprint::add_cluster(&mut whole, &self.session, &chosen)?;
        Ok(whole)
    }

    fn machines(&self, treatment: &Treatment) -> &str {
        match treatment.scene.placement {
            Placement::CrossNode => "both nodes",
            Placement::SameNode => "the first node",
        }
    }

    fn idle_sample(
        &mut self,
        treatment: &Treatment,
        length: Duration,
    ) -> Result<IdleSample, TargetError> {
        let key = Self::key(treatment)?;
        let mut rest = || {
            self.path(treatment)?;
            match self.paths.get(&key) {
                Some(path) => path.rest(length),
                None => unreachable!("it was just made"),
            }
        };
        // An observer may have been lost with an API server that is back, which
        // only the question shows.
        rest().or_else(|_| rest())
    }

    fn warnings(&self) -> Vec<Warning> {
        let chosen = self.chosen.borrow();
        let remarks = chosen.iter().flat_map(|it| it.remarks.clone());
        let mut warnings: Vec<Warning> = remarks.map(|detail| Warning::Nodes { detail }).collect();
        if self
            .paths
            .values()
            .any(ClusterPath::is_one_kernel_posing_as_two)
        {
            warnings.push(Warning::OneKernel);
        }
        warnings
    }

    fn teardown(&mut self) -> Vec<TargetError> {
        self.paths.clear();
        self.observers.end();
        let errors = self.standing.take_down();
        errors.into_iter().map(TargetError::from).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Best effort: whoever wants the errors calls `teardown` before.
        self.teardown();
    }
}
