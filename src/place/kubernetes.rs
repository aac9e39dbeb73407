//! A cluster as a place.

use std::sync::atomic::AtomicBool;

use plumbline_experiment::Family;
use plumbline_harness::Fleet;
use plumbline_kubernetes::{Cluster, ClusterFleet, ClusterOptions, Route, image};
use plumbline_record::{Floor, Warning};

use super::{Cpus, Place};
use crate::cli::{ClusterArgs, PairingArgs};

/// The target of what was typed. Connects to nothing yet.
pub(super) fn pick(args: &ClusterArgs, pairing: &PairingArgs) -> anyhow::Result<Box<dyn Place>> {
    let options = options(args)?;
    if pairing.given().is_some() {
        let pairs = pairing.pairs.map(|pairs| pairs as usize);
        return Ok(Box::new(ClusterFleet::open(options, pairs)?));
    }
    Ok(Box::new(Cluster::open(options)?))
}

fn options(args: &ClusterArgs) -> anyhow::Result<ClusterOptions> {
    let reference = || image::local_reference(env!("CARGO_PKG_VERSION"));
    Ok(ClusterOptions {
        context: args.context.clone(),
        nodes: args.nodes.clone(),
        image: args.image.clone().unwrap_or_else(reference),
        host_network: args.allow_host_network,
        started_by: started_by(),
        interrupted: plumbline_sys::signal::interruption()?,
    })
}

/// For whoever finds the namespaces of a run and wonders whose they are.
fn started_by() -> String {
    let user = std::env::var("USER").unwrap_or_else(|_| "somebody".to_owned());
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let host = host.unwrap_or_else(|_| "an unnamed machine".to_owned());
    let host = host.trim();
    format!("{user} on {host}, process {}", std::process::id())
}

/// `all` and `usual` are every path that is to be had.
fn names(
    word: &str,
    route: impl FnOnce(&str) -> Result<Route, String>,
    routes: impl FnOnce() -> (Vec<Route>, Vec<Warning>),
    said: &mut Vec<Warning>,
) -> Result<Vec<String>, String> {
    if !matches!(word, "all" | "usual") {
        return Ok(vec![route(word)?.name().into_owned()]);
    }
    let (here, missing) = routes();
    said.extend(missing);
    Ok(here.iter().map(|route| route.name().into_owned()).collect())
}

impl Place for ClusterFleet {
    fn networks(
        &self,
        word: &str,
        _: &[Family],
        said: &mut Vec<Warning>,
    ) -> Result<Vec<String>, String> {
        names(word, |word| self.route(word), || self.routes(), said)
    }

    fn fleet(&self) -> Option<&dyn Fleet> {
        Some(self)
    }

    /// Any: one number does not hold for many nodes.
    fn cpus(&self) -> Cpus {
        Cpus::default()
    }

    fn floor(&mut self, _: &AtomicBool) -> anyhow::Result<Option<Floor>> {
        Ok(ClusterFleet::floor(self)?)
    }
}

impl Place for Cluster {
    fn networks(
        &self,
        word: &str,
        _: &[Family],
        said: &mut Vec<Warning>,
    ) -> Result<Vec<String>, String> {
        names(word, |word| self.route(word), || self.routes(), said)
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
