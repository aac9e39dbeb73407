//! One of several clusters.

use plumbline_harness::{Target as _, TargetError};
use plumbline_record::Fingerprint;

use crate::cluster::Cluster;
use crate::maker::Made;

pub(crate) struct Member {
    /// A context, or the network that the cluster was made with.
    pub(crate) name: String,
    pub(crate) cluster: Cluster,
    /// How it is taken down, if it was made for the run.
    pub(crate) made: Option<Made>,
}

impl Member {
    /// The cluster's fingerprint, with its name before each of its paths.
    pub(crate) fn fingerprint(&mut self) -> Result<Fingerprint, TargetError> {
        let mut seen = self.cluster.fingerprint()?;
        let devices = std::mem::take(&mut seen.devices).into_iter();
        let named = devices.map(|(path, devices)| (format!("{}/{path}", self.name), devices));
        seen.devices = named.collect();
        Ok(seen)
    }
}
