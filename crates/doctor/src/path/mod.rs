//! What is wrong with a path: packets are sent over it both ways, and every place that can be
//! looked at is looked at before and after. Nothing is changed but what a trial of offloads
//! switches off and puts back, and what the commands of remedies do, where that is allowed.

mod drops;
mod examine;
mod judge;
mod names;
mod places;
mod post;
mod remedies;
mod seen;
mod size;
mod trial;

use clap::Args;
use plumbline_harness::{Path, TargetError};
use plumbline_sys::bpf::network_maps;

use crate::finding::Finding;
use crate::maps;

/// What may be done on a path beside looking.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct PathTrials {
    /// Switch offloads on the path off for a moment, to see whether one is broken
    #[arg(id = "try_offloads", long = "try-offloads", requires = "path")]
    pub offloads: bool,
    /// Run the commands of remedies and look whether what they are for is gone, in a lab
    #[arg(id = "try_remedies", long = "try-remedies", requires = "path")]
    pub remedies: bool,
    /// In a cluster, make a pod on each node that may load programs into the node's kernel, which
    /// see what it drops
    #[arg(id = "allow_tracing", long = "allow-tracing", requires = "path")]
    pub tracing: bool,
    /// Whether the path is of this machine's own kernel: then, as root, a program in it sees what
    /// it drops, and the maps of its programs are counted.
    #[arg(skip)]
    pub of_this_kernel: bool,
}

/// Looks at a path, which takes some seconds, and as long again for each remedy that is tried.
///
/// # Errors
///
/// Agents that do not start or cannot look around, and paths on which no command can be run
/// where remedies are to be tried. What is wrong with the path is no error.
pub fn examine_path(path: &dyn Path, trials: PathTrials) -> Result<Vec<Finding>, TargetError> {
    let found = look(path, trials)?;
    match trials.remedies {
        true => remedies::tried(path, found, || look(path, trials)),
        false => Ok(found),
    }
}

/// Looks once.
fn look(path: &dyn Path, trials: PathTrials) -> Result<Vec<Finding>, TargetError> {
    let seen = examine::see(path, trials)?;
    let mut findings = judge::ways(&seen);
    findings.extend(places::judge(&seen));
    findings.extend(seen.name.as_ref().map(names::judge));
    if trials.of_this_kernel {
        findings.push(maps::judge(network_maps()));
    }
    Ok(findings)
}
