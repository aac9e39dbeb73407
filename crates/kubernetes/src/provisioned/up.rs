//! The one cluster that stands: made, measured against the first, unmade.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use plumbline_experiment::{Treatment, TreatmentId};
use plumbline_harness::{Target as _, TargetError};
use plumbline_record::{Fingerprint, IdleSample, SetUp};

use super::{Provisioned, Up};
use crate::alike;
use crate::cluster::{Cluster, ClusterOptions};
use crate::clusters::named;
use crate::level;
use crate::maker::{LOGS, Made};

/// How long nodes may take until pods can be placed on them.
const NODES: Duration = Duration::from_secs(60);
const NODES_LOOK: Duration = Duration::from_millis(300);

/// How long a new cluster may keep its machines busy before it is measured, and the
/// share of CPU that counts as busy.
const SETTLE: Duration = Duration::from_secs(20);
const SETTLED: f64 = 0.10;
const SETTLE_LOOK: Duration = Duration::from_millis(500);

impl Provisioned {
    /// Brings up the first cluster of a block that comes up, in the order of the
    /// block. It is the one that the run begins with, or a later one of its
    /// first block.
    ///
    /// # Errors
    ///
    /// None comes up: what each said.
    pub(super) fn begin(
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
            self.maker.logs.display()
        )))
    }

    /// The cluster of a treatment, where it is the one that stands.
    pub(super) fn cluster_for(&self, treatment: &Treatment) -> Result<&Cluster, TargetError> {
        let network = level::cluster_of(treatment)?;
        let up = self.up.as_ref().filter(|up| up.made.network == network);
        up.map(|up| &up.cluster).ok_or_else(|| not_up(network))
    }

    /// The cluster of a treatment, brought up when it does not stand.
    pub(super) fn bring(&mut self, treatment: &Treatment) -> Result<&mut Cluster, TargetError> {
        let network = level::cluster_of(treatment)?.to_owned();
        self.used = true;
        self.asked.clone_from(&network);
        if let Some(why) = self.failed.get(&network) {
            // The reason once, in full; later trials refer to it.
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

    /// Brings a cluster up, and records what that took. A cluster that fails is taken down.
    fn bring_up(&mut self, network: &str) -> Result<(), String> {
        let log = self.maker.next_log(network);
        let started = Instant::now();
        let made = self.maker.make(network, &log);
        let mut set_up = SetUp {
            network: network.to_owned(),
            took_ns: nanoseconds(started.elapsed()),
            paths_ns: None,
            came_up: false,
            log: format!("{LOGS}/{log}"),
            fingerprint: None,
        };
        let ready = made.and_then(|made| self.open(made)).and_then(|()| {
            let started = Instant::now();
            self.make_paths(network)?;
            set_up.paths_ns = Some(nanoseconds(started.elapsed()));
            self.settle();
            self.compare_with_first()
        });
        let result = match ready {
            Ok(fingerprint) => {
                set_up.came_up = true;
                set_up.fingerprint = Some(fingerprint);
                Ok(())
            }
            Err(why) => {
                self.take_down();
                Err(format!("{why} ({LOGS}/{log} has all of it)"))
            }
        };
        self.set_ups.push(set_up);
        result
    }

    fn open(&mut self, made: Made) -> Result<(), String> {
        match reached_by(&made.kubeconfig, &self.cluster) {
            Ok(cluster) => {
                self.up = Some(Up {
                    made,
                    cluster,
                    works: None,
                });
                Ok(())
            }
            Err(why) => {
                self.maker.unmake(&made);
                Err(why)
            }
        }
    }

    /// Makes every path that the plan wants of a network. One that cannot be
    /// made fails its own trials; when none can, the network is not up.
    fn make_paths(&mut self, network: &str) -> Result<(), String> {
        let own = self.planned.iter().filter(|it| it.scene.network == network);
        let mut own: Vec<Treatment> = own.map(level::within).collect();
        // A path is the same for every workload.
        let mut seen = BTreeSet::new();
        own.retain(|it| seen.insert(it.scene.clone()));
        self.wait_for_nodes(&own)?;
        let Some(up) = &mut self.up else {
            return Err("it is gone".to_owned());
        };
        let mut first_error = None;
        up.works = None;
        for treatment in own {
            match up.cluster.ready(&treatment, &[0, 1]) {
                Ok(()) => up.works = up.works.take().or(Some(treatment)),
                Err(error) if self.cluster.interrupted.load(Ordering::SeqCst) => {
                    return Err(error.to_string());
                }
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        match (&up.works, first_error) {
            (Some(_), _) => Ok(()),
            (None, Some(error)) => Err(error.to_string()),
            (None, None) => Err("the plan has no path in it".to_owned()),
        }
    }

    /// Waits until the nodes that the paths need take pods: the command may end
    /// a moment before they do.
    fn wait_for_nodes(&mut self, own: &[Treatment]) -> Result<(), String> {
        let started = Instant::now();
        loop {
            let Some(up) = &mut self.up else {
                return Err("it is gone".to_owned());
            };
            let Err(error) = up.cluster.plan(own) else {
                return Ok(());
            };
            if started.elapsed() > NODES || self.cluster.interrupted.load(Ordering::SeqCst) {
                return Err(error.to_string());
            }
            std::thread::sleep(NODES_LOOK);
            // A cluster keeps the nodes that it chose.
            up.cluster = reached_by(&up.made.kubeconfig, &self.cluster)?;
        }
    }

    /// What the cluster is made of, when it is as the first was (C-13).
    fn compare_with_first(&mut self) -> Result<Fingerprint, String> {
        let Some(up) = &mut self.up else {
            return Err("it is gone".to_owned());
        };
        let seen = up.cluster.fingerprint().map_err(|it| it.to_string())?;
        let seen = named(&up.made.network, seen);
        let first = self.first.get_or_insert_with(|| seen.clone());
        let differing = alike::differences(first, &seen);
        if differing.is_empty() || self.across_environments {
            return Ok(seen);
        }
        Err(format!(
            "it differs from the first cluster of the run in more than its network: {}; \
             --across-environments compares them all the same",
            differing.join("; ")
        ))
    }

    /// Takes down what stands. What goes wrong is kept for the end.
    pub(super) fn take_down(&mut self) {
        let Some(mut up) = self.up.take() else {
            return;
        };
        // The command may keep the cluster for others, without its networks.
        let in_it = up.cluster.teardown();
        let Up { made, cluster, .. } = up;
        drop(cluster);
        if !self.maker.unmake(&made) {
            self.maker.left.extend(in_it);
        }
    }

    /// Waits until the machines of the cluster are quiet. If they never are, they are
    /// measured all the same, and the gates report what they see.
    fn settle(&mut self) {
        let Some(Up { cluster, works, .. }) = &mut self.up else {
            return;
        };
        let Some(treatment) = works else { return };
        let nodes: &[usize] = if cluster.shares_kernel(treatment, [0, 1]) {
            &[0]
        } else {
            &[0, 1]
        };
        let started = Instant::now();
        while started.elapsed() < SETTLE {
            let samples = nodes
                .iter()
                .map(|node| cluster.idle_sample(treatment, *node, SETTLE_LOOK));
            let samples: Result<Vec<IdleSample>, _> = samples.collect();
            let Ok(samples) = samples else { return };
            let busy = |one: &IdleSample| one.busy_ns as f64 / one.capacity_ns.max(1) as f64;
            if samples.iter().all(|one| busy(one) < SETTLED) {
                return;
            }
        }
    }
}

impl Drop for Provisioned {
    fn drop(&mut self) {
        // Best effort: callers that want the errors call `teardown` first.
        self.take_down();
    }
}

/// The cluster that a configuration names.
fn reached_by(kubeconfig: &Path, options: &ClusterOptions) -> Result<Cluster, String> {
    let opened = Cluster::open(ClusterOptions {
        kubeconfig: Some(kubeconfig.to_owned()),
        ..options.clone()
    });
    opened.map_err(|error| error.to_string())
}

fn not_up(network: &str) -> TargetError {
    TargetError::Failed(format!(
        "the network {network} did not come up in this block"
    ))
}

fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}
