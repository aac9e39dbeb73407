//! A cluster as a place.

use std::sync::atomic::AtomicBool;

use plumbline_experiment::Family;
use plumbline_kubernetes::{Cluster, ClusterOptions, image};
use plumbline_record::{Floor, Warning};

use super::{Cpus, Place};
use crate::cli::ClusterArgs;

/// The target of what was typed. Connects to nothing yet.
pub(super) fn pick(args: &ClusterArgs) -> anyhow::Result<Cluster> {
    let reference = || image::local_reference(env!("CARGO_PKG_VERSION"));
    Ok(Cluster::open(ClusterOptions {
        context: args.context.clone(),
        nodes: args.nodes.clone(),
        image: args.image.clone().unwrap_or_else(reference),
        host_network: args.allow_host_network,
        started_by: started_by(),
        interrupted: plumbline_sys::signal::interruption()?,
    })?)
}

/// For whoever finds the namespaces of a run and wonders whose they are.
fn started_by() -> String {
    let user = std::env::var("USER").unwrap_or_else(|_| "somebody".to_owned());
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let host = host.unwrap_or_else(|_| "an unnamed machine".to_owned());
    let host = host.trim();
    format!("{user} on {host}, process {}", std::process::id())
}

impl Place for Cluster {
    /// `all` and `usual` are every path that is to be had.
    fn networks(
        &self,
        word: &str,
        _: &[Family],
        said: &mut Vec<Warning>,
    ) -> Result<Vec<String>, String> {
        if !matches!(word, "all" | "usual") {
            return Ok(vec![self.route(word)?.name().into_owned()]);
        }
        let (here, missing) = self.routes();
        said.extend(missing);
        Ok(here.iter().map(|route| route.name().into_owned()).collect())
    }

    fn cpus(&self) -> Cpus {
        let (client, server) = Cluster::cpus(self);
        Cpus { client, server }
    }

    fn floor(&mut self, _: &AtomicBool) -> anyhow::Result<Option<Floor>> {
        let Cpus { client, server } = Place::cpus(self);
        Ok(Cluster::floor(self, client, server)?)
    }
}
