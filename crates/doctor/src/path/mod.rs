//! What is wrong with a path: packets are sent over it both ways, and every place that can be
//! looked at is looked at before and after. Nothing is changed but what a trial of offloads
//! switches off and puts back, and what the commands of remedies do, where that is allowed.

mod allowed;
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

use plumbline_harness::{Path, TargetError};
use plumbline_sys::bpf::network_maps;

use crate::finding::Finding;
use crate::maps;
pub use allowed::PathTrials;

/// Looks at a path, which takes some seconds, and as long again for each remedy that is tried.
///
/// # Errors
///
/// Agents that do not start or cannot look around, and paths on which no command can be run
/// where remedies are to be tried. What is wrong with the path is no error.
pub fn examine_path(path: &dyn Path, trials: &PathTrials) -> Result<Vec<Finding>, TargetError> {
    let found = look(path, trials)?;
    match trials.remedies {
        true => remedies::tried(path, found, || look(path, trials)),
        false => Ok(found),
    }
}

/// Looks once.
fn look(path: &dyn Path, trials: &PathTrials) -> Result<Vec<Finding>, TargetError> {
    let seen = examine::see(path, trials)?;
    let mut findings = judge::ways(&seen);
    findings.extend(places::judge(&seen));
    findings.extend(seen.name.as_ref().map(names::judge));
    if trials.of_this_kernel {
        findings.push(maps::judge(network_maps()));
    }
    Ok(findings)
}
