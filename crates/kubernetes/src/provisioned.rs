//! The Target: clusters that are brought up for the run, one at a time.

mod up;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path as FilePath, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumbline_experiment::{Asked, Ends, Family, Scene, Treatment, TreatmentId};
use plumbline_harness::{Cpus, Demand, Levels, Path, Target, TargetError};
use plumbline_record::{Fingerprint, Floor, IdleSample, SetUp, Warning};

use crate::cluster::{Cluster, ClusterOptions};
use crate::error::ClusterError;
use crate::image::{self, ImageError};
use crate::level;
use crate::maker::Maker;
use crate::route::ROUTES;
use up::Up;

/// How clusters are brought up and down.
#[derive(Clone, Debug)]
pub struct ProvisionOptions {
    /// Brings one up; `{network}` in it is the level.
    pub up: String,
    /// Takes it down; what the first command said where there is none.
    pub down: Option<String>,
    /// Longest time for bringing one up; half an hour where there is none.
    pub limit: Option<Duration>,
    /// Directory for what the commands say, made when there is something.
    pub logs: PathBuf,
    /// Whether nodes may differ between clusters.
    pub across_environments: bool,
    /// How runs are done in each. Its configuration is the one that is handed over.
    pub cluster: ClusterOptions,
}

/// Clusters that are made for the run: a fresh one for each network of each
/// block. Networks are named as in [`Clusters`](crate::Clusters). Dropping it
/// takes down what stands.
pub struct Provisioned {
    cluster: ClusterOptions,
    across_environments: bool,
    maker: Maker,
    /// The networks that were asked for, in their order.
    networks: Vec<String>,
    planned: Vec<Treatment>,
    block: Option<usize>,
    /// Whether anything was asked of this block's clusters.
    used: bool,
    up: Option<Up>,
    /// Networks that did not come up in this block, and why.
    failed: BTreeMap<String, String>,
    /// What nobody has asked for yet.
    set_ups: Vec<SetUp>,
    /// The network that was last asked for.
    asked: String,
    /// The first cluster, which the others have to be like.
    first: Option<Fingerprint>,
}

impl Provisioned {
    /// Does nothing yet.
    ///
    /// # Errors
    ///
    /// No private directory could be made.
    pub fn new(options: ProvisionOptions) -> Result<Self, ClusterError> {
        Ok(Self {
            maker: Maker::new(
                options.up,
                options.down,
                options.limit,
                options.logs,
                options.cluster.interrupted,
            )?,
            cluster: options.cluster,
            across_environments: options.across_environments,
            networks: Vec::new(),
            planned: Vec::new(),
            block: None,
            used: false,
            up: None,
            failed: BTreeMap::new(),
            set_ups: Vec::new(),
            asked: String::new(),
            first: None,
        })
    }

    /// The network whose cluster a treatment needs: treatments of one stay
    /// together in a block.
    fn network_of(treatment: &Treatment) -> &str {
        &treatment.scene.network
    }

    /// Brings up the first cluster of a block that comes up, in the order of the
    /// block. It is the one that the run begins with, or a later one of its
    /// first block.
    ///
    /// # Errors
    ///
    /// None comes up: what each said.
    fn begin(
        &mut self,
        treatments: &[Treatment],
        order: &[TreatmentId],
    ) -> Result<(), TargetError> {
        for &id in order {
            let failed = self.ready(&treatments[id], &[0, 1]).err();
            match failed {
                None => return Ok(()),
                Some(error) if self.is_interrupted() => return Err(error),
                Some(_) => {}
            }
        }
        let reasons: Vec<&str> = self.failed.values().map(String::as_str).collect();
        Err(TargetError::Failed(format!(
            "none of the clusters came up: {}; what the commands said is in {}",
            reasons.join("; "),
            self.maker.logs().display()
        )))
    }

    /// Makes the image of a program that is known as `reference`, for the command
    /// to load into the nodes: `PLUMBLINE_IMAGE` tells it where the archive is.
    ///
    /// # Errors
    ///
    /// As [`image::write`](crate::image::write).
    pub fn hand_image(
        &mut self,
        program: &mut impl Read,
        reference: &str,
    ) -> Result<(), ImageError> {
        self.maker.hand_image(program, reference)
    }

    fn is_interrupted(&self) -> bool {
        self.cluster.interrupted.load(Ordering::SeqCst)
    }

    /// The cluster of a treatment, where it is the one that stands.
    fn standing(&self, treatment: &Treatment) -> Result<&Cluster, TargetError> {
        let network = level::cluster_of(treatment)?;
        let up = self.up.as_ref().filter(|up| up.made.network == network);
        up.map(|up| &up.cluster).ok_or_else(|| not_up(network))
    }

    /// The cluster of a treatment, brought up when it does not stand.
    fn bring(&mut self, treatment: &Treatment) -> Result<&mut Cluster, TargetError> {
        let network = level::cluster_of(treatment)?.to_owned();
        self.used = true;
        self.asked.clone_from(&network);
        if let Some(why) = self.failed.get(&network) {
            // The whole story once; the trials that follow point to it.
            let is_news = self.set_ups.iter().any(|it| it.network == network);
            return Err(if is_news {
                TargetError::Failed(why.clone())
            } else {
                not_up(&network)
            });
        }
        if self.up.as_ref().is_none_or(|up| up.made.network != network) {
            self.take_down();
            if let Err(why) = self.bring_up(&network) {
                let why = format!("the network {network} did not come up: {why}");
                self.failed.insert(network, why.clone());
                return Err(TargetError::Failed(why));
            }
        }
        match &mut self.up {
            Some(up) => Ok(&mut up.cluster),
            None => unreachable!("it was just brought up"),
        }
    }
}

fn not_up(network: &str) -> TargetError {
    TargetError::Failed(format!(
        "the network {network} did not come up in this block"
    ))
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
                "`{}`: which networks? A command that brings clusters up has to be told, as in \
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

    /// Puts what the commands said there.
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

    /// Of the first cluster; that of each is with what it took to bring it up.
    fn fingerprint(&mut self) -> Result<Fingerprint, TargetError> {
        match &self.first {
            Some(first) => Ok(first.clone()),
            None => Err(TargetError::Failed("no cluster was up".to_owned())),
        }
    }

    fn site_of(&self, treatment: &Treatment) -> String {
        Self::network_of(treatment).to_owned()
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
        self.standing(treatment)?
            .stage(&level::within(treatment), ends)
    }

    fn idle_sample(
        &self,
        treatment: &Treatment,
        node: usize,
        length: Duration,
    ) -> Result<IdleSample, TargetError> {
        let cluster = self.standing(treatment)?;
        cluster.idle_sample(&level::within(treatment), node, length)
    }

    fn shares_kernel(&self, treatment: &Treatment, ends: Ends) -> bool {
        let cluster = self.standing(treatment).ok();
        cluster.is_some_and(|it| it.shares_kernel(&level::within(treatment), ends))
    }

    fn set_up(&mut self) -> Option<SetUp> {
        let of_it = |it: &SetUp| it.network == self.asked;
        let at = self.set_ups.iter().position(of_it)?;
        Some(self.set_ups.remove(at))
    }

    fn may_try_again(&self, treatment: &Treatment) -> bool {
        !self.failed.contains_key(Self::network_of(treatment))
    }

    fn warnings(&self) -> Vec<Warning> {
        let up = self.up.as_ref();
        up.map(|up| up.cluster.warnings()).unwrap_or_default()
    }

    fn teardown(&mut self) -> Vec<TargetError> {
        self.take_down();
        std::mem::take(self.maker.left())
    }
}

impl Drop for Provisioned {
    fn drop(&mut self) {
        // Best effort: whoever wants the errors calls `teardown` before.
        self.take_down();
    }
}
