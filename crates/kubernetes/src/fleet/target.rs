//! Many nodes as a Target: what concerns all of them, and the first two.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumbline_experiment::Treatment;
use plumbline_harness::{Cpus, Fleet as _, Path, Target, TargetError};
use plumbline_record::{Fingerprint, Floor, IdleSample, Warning};

use super::{ClusterFleet, lock};
use crate::choice::{Chosen, NodeFacts};
use crate::path::ClusterPath;
use crate::reach::until_reached;
use crate::{fingerprint, nodes};

impl Target for ClusterFleet {
    fn name(&self) -> &'static str {
        "kubernetes"
    }

    fn validate(&self, treatments: &[Treatment]) -> Result<(), TargetError> {
        let members = self.members()?;
        for treatment in treatments {
            let (route, _, family) = self.key(treatment)?;
            let has_none = |node: &&NodeFacts| !node.addresses.iter().any(|it| family.holds(*it));
            if let Some(node) = members.nodes.iter().find(has_none) {
                return Err(TargetError::Unsupported {
                    what: format!("IPv{}", u8::from(family)),
                    needs: format!("nodes that have such addresses; {} has none", node.name),
                });
            }
            lock(&self.planned).insert(route);
        }
        Ok(())
    }

    /// Between the first two nodes. The pods of all nodes are made by the first
    /// call, so that they start side by side.
    fn path(&mut self, treatment: &Treatment) -> Result<&mut dyn Path, TargetError> {
        let key = self.key(treatment)?;
        let all: Vec<usize> = (0..self.members()?.nodes.len()).collect();
        self.seat(&all)?;
        let stands = {
            let standing = lock(&self.standing);
            let path = self.first.get(&key);
            path.is_some_and(|path| path.stands_in(&standing))
        };
        if !stands {
            let mut path = self.build(treatment, [0, 1])?;
            until_reached(&self.session, &mut path, treatment)?;
            self.first.insert(key, path);
        }
        match self.first.get_mut(&key) {
            Some(path) => Ok(path),
            None => unreachable!("it was just put there"),
        }
    }

    /// On the first node. The trials are on any CPU, as one number does not hold
    /// for many nodes.
    fn floor(&mut self, cpus: Cpus, _: &AtomicBool) -> Result<Option<Floor>, TargetError> {
        match self.first.values().next() {
            Some(path) => path.floor(cpus),
            None => Ok(None),
        }
    }

    fn fingerprint(&mut self) -> Result<Fingerprint, TargetError> {
        self.sights = self.look_at_all()?;
        let mut whole = fingerprint::of_paths(&self.first)?;
        let [near, far, ..] = &self.members()?.nodes[..] else {
            return Ok(whole);
        };
        let chosen = Chosen {
            near: near.clone(),
            far: Some(far.clone()),
            remarks: Vec::new(),
        };
        fingerprint::add_cluster(&mut whole, &self.session, &chosen)?;
        let names = self.nodes();
        if !self.is_one_kernel() {
            let others = names.iter().zip(&self.sights).skip(1);
            let others = others.map(|(name, sight)| (name.clone(), sight.fingerprint.clone()));
            whole.others = others.collect();
        }
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

    fn idle_sample(&mut self, _: &Treatment, length: Duration) -> Result<IdleSample, TargetError> {
        self.rest(0, length)
    }

    fn warnings(&self) -> Vec<Warning> {
        let members = self.members.get();
        let remarks = members.iter().flat_map(|it| it.remarks.clone());
        let mut warnings: Vec<Warning> = remarks.map(|detail| Warning::Nodes { detail }).collect();
        let posing = ClusterPath::is_one_kernel_posing_as_two;
        if self.is_one_kernel() || self.first.values().any(posing) {
            warnings.push(Warning::OneKernel);
        }
        warnings
    }

    fn teardown(&mut self) -> Vec<TargetError> {
        self.first.clear();
        lock(&self.observers).end();
        let errors = lock(&self.standing).take_down();
        errors.into_iter().map(TargetError::from).collect()
    }
}

impl Drop for ClusterFleet {
    fn drop(&mut self) {
        // Best effort: whoever wants the errors calls `teardown` before.
        self.teardown();
    }
}
