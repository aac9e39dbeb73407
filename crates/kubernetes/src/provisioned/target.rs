//! What the harness asks of clusters that are made for the run.

use std::path::Path as FilePath;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumbline_experiment::{Asked, Ends, Family, Scene, Treatment};
use plumbline_harness::{Cpus, Demand, Levels, Path, Target, TargetError};
use plumbline_record::{Fingerprint, Floor, IdleSample, SetUp, Warning};

use super::Provisioned;
use crate::image;
use crate::level;
use crate::route::ROUTES;

impl Target for Provisioned {
    fn name(&self) -> &'static str {
        "kubernetes"
    }

    /// A network for the command, a path, or both as `NETWORK/PATH`. Any name may be
    /// one of a cluster: the command knows.
    fn scenes(
        &mut self,
        asked: &Asked<'_>,
        _: &[Family],
        _: &mut Vec<Warning>,
    ) -> Result<Vec<Scene>, String> {
        let found = level::scenes(asked, &self.networks, &ROUTES, is_name)?;
        if found.is_empty() {
            return Err(format!(
                "`{}`: which networks? A command that brings clusters up needs their names, as in \
                 --network flannel,calico",
                asked.network.word()
            ));
        }
        for scene in &found {
            if !self.networks.contains(&scene.network) {
                self.networks.push(scene.network.clone());
            }
        }
        Ok(found)
    }

    fn supports(&self, factor: &str) -> Levels {
        match factor {
            "network" | "path" | "backends" => Levels::Any,
            "placement" => Levels::These(&["same-node"]),
            "family" => Levels::These(&["6"]),
            _ => Levels::Default,
        }
    }

    /// One cluster at a time stands; the one that the first trials want is made.
    fn prepare(&mut self, demand: &Demand<'_>) -> Result<(), TargetError> {
        for treatment in demand.treatments {
            let network = level::cluster_of(treatment)?;
            is_name(network).map_err(TargetError::Failed)?;
        }
        image::check_servers(demand.treatments)?;
        self.planned = demand.treatments.to_vec();
        self.begin(demand.treatments, demand.first)
    }

    /// The output of the commands goes there.
    fn run_directory(&mut self, path: &FilePath) -> std::io::Result<()> {
        self.maker.keep_logs(path)
    }

    /// What they are called in each of the clusters.
    fn nodes(&self) -> Vec<String> {
        ["the first node", "the second node"]
            .map(str::to_owned)
            .into()
    }

    fn is_one_kernel(&self) -> bool {
        let up = self.up.as_ref();
        up.is_some_and(|up| up.cluster.is_one_kernel())
    }

    /// Those of the cluster that stands.
    fn cpus(&self) -> Cpus {
        let up = self.up.as_ref();
        up.map(|up| up.cluster.cpus()).unwrap_or_default()
    }

    /// On the cluster that stands.
    fn floor(
        &mut self,
        cpus: Cpus,
        interrupted: &AtomicBool,
    ) -> Result<Option<Floor>, TargetError> {
        match &mut self.up {
            Some(up) => up.cluster.floor(cpus, interrupted),
            None => Ok(None),
        }
    }

    /// Of the first cluster; the record of each set-up has its own.
    fn fingerprint(&mut self) -> Result<Fingerprint, TargetError> {
        match &self.first {
            Some(first) => Ok(first.clone()),
            None => Err(TargetError::Failed("no cluster was up".to_owned())),
        }
    }

    /// The network: treatments of one stay together in a block.
    fn site_of(&self, treatment: &Treatment) -> String {
        treatment.scene.network.clone()
    }

    fn keeps_sites_together(&self) -> bool {
        true
    }

    fn begin_block(&mut self, block: usize) {
        if self.block.is_some() && self.used {
            self.take_down();
            self.failed.clear();
        }
        self.block = Some(block);
        self.used = false;
    }

    fn ready(&mut self, treatment: &Treatment, nodes: &[usize]) -> Result<(), TargetError> {
        let within = level::within(treatment);
        self.bring(treatment)?.ready(&within, nodes)
    }

    fn stage(
        &self,
        treatment: &Treatment,
        ends: Ends,
    ) -> Result<Box<dyn Path + Send + '_>, TargetError> {
        self.cluster_for(treatment)?
            .stage(&level::within(treatment), ends)
    }

    fn idle_sample(
        &self,
        treatment: &Treatment,
        node: usize,
        length: Duration,
    ) -> Result<IdleSample, TargetError> {
        let cluster = self.cluster_for(treatment)?;
        cluster.idle_sample(&level::within(treatment), node, length)
    }

    fn shares_kernel(&self, treatment: &Treatment, ends: Ends) -> bool {
        let cluster = self.cluster_for(treatment).ok();
        cluster.is_some_and(|it| it.shares_kernel(&level::within(treatment), ends))
    }

    fn set_up(&mut self) -> Option<SetUp> {
        let of_it = |it: &SetUp| it.network == self.asked;
        let at = self.set_ups.iter().position(of_it)?;
        Some(self.set_ups.remove(at))
    }

    fn may_try_again(&self, treatment: &Treatment) -> bool {
        !self.failed.contains_key(&treatment.scene.network)
    }

    fn warnings(&self) -> Vec<Warning> {
        let up = self.up.as_ref();
        up.map(|up| up.cluster.warnings()).unwrap_or_default()
    }

    fn teardown(&mut self) -> Vec<TargetError> {
        self.take_down();
        std::mem::take(&mut self.maker.left)
    }
}

/// Whether a word may be the name of a cluster: it goes into a command for the
/// shell, and into names of files.
fn is_name(word: &str) -> Result<(), String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let begins = word.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && word.len() <= 64 && word.chars().all(fine) {
        return Ok(());
    }
    Err(format!(
        "`{word}` cannot stand for {{network}} in a command: use at most 64 letters, digits, `-`, \
         `_` or `.`"
    ))
}
