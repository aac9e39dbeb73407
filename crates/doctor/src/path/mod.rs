//! What is wrong with a path: packets are sent over it both ways, and every place that can be
//! looked at is looked at before and after. Nothing is changed but what a trial of offloads
//! switches off and puts back, where that is allowed.

mod examine;
mod judge;
mod names;
mod places;
mod post;
mod seen;
mod size;
mod trial;

use plumbline_harness::{Path, TargetError};

use crate::finding::Finding;

/// Looks at a path, which takes some seconds. `tries_offloads` is the user's leave to switch
/// offloads of its devices off for a moment.
///
/// # Errors
///
/// Agents that do not start or cannot look around. What is wrong with the path is no error.
pub fn examine_path(path: &dyn Path, tries_offloads: bool) -> Result<Vec<Finding>, TargetError> {
    let seen = examine::see(path, tries_offloads)?;
    let mut findings = judge::ways(&seen);
    findings.extend(places::judge(&seen));
    findings.extend(seen.name.as_ref().map(names::judge));
    Ok(findings)
}
