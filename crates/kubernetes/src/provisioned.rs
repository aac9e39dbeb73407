//! The Target: clusters that are brought up for the run, one at a time.

mod target;
mod up;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use plumbline_experiment::Treatment;
use plumbline_record::{Fingerprint, SetUp};

use crate::cluster::{Cluster, ClusterOptions};
use crate::maker::{Made, Maker};

/// Clusters that are made for the run: a fresh one for each network of each
/// block. Networks are named as in [`Clusters`](crate::Clusters). Dropping it
/// takes down what stands.
pub(crate) struct Provisioned {
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
    /// Those that were not recorded yet.
    set_ups: Vec<SetUp>,
    /// The network of the last request.
    asked: String,
    /// The first cluster, which the others have to be like.
    first: Option<Fingerprint>,
}

/// The cluster that stands.
struct Up {
    made: Made,
    cluster: Cluster,
    /// A treatment whose path could be made.
    works: Option<Treatment>,
}

impl Provisioned {
    /// Does nothing yet. `cluster` says how runs are done in each, but for the
    /// configuration, which is the one that is handed over; nodes may differ between
    /// clusters where `across_environments`.
    pub(crate) fn new(maker: Maker, cluster: ClusterOptions, across_environments: bool) -> Self {
        Self {
            maker,
            cluster,
            across_environments,
            networks: Vec::new(),
            planned: Vec::new(),
            block: None,
            used: false,
            up: None,
            failed: BTreeMap::new(),
            set_ups: Vec::new(),
            asked: String::new(),
            first: None,
        }
    }

    fn is_interrupted(&self) -> bool {
        self.cluster.interrupted.load(Ordering::SeqCst)
    }
}
