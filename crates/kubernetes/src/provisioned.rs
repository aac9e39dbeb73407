//! The Target: clusters that are brought up for the run, one at a time.

mod target;
mod up;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plumbline_experiment::Treatment;
use plumbline_record::{Fingerprint, SetUp};

use crate::cluster::{Cluster, ClusterOptions};
use crate::error::ClusterError;
use crate::image::ImageError;
use crate::maker::{Made, Maker};

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

/// The cluster that stands.
struct Up {
    made: Made,
    cluster: Cluster,
    /// A treatment whose path could be made.
    works: Option<Treatment>,
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
}
