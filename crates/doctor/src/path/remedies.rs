//! Runs the commands of remedies, and looks again.

use std::time::Duration;

use plumbline_harness::{Path, TargetError};

use crate::finding::{Finding, RemedyCommand, Severity, Tried};

/// Longest time of one command.
const LIMIT: Duration = Duration::from_secs(10);

/// Runs what is to set each finding right, one after the other, and looks whether it is gone. One
/// that is to be run elsewhere than on the path is left alone.
pub(super) fn tried(
    path: &dyn Path,
    mut found: Vec<Finding>,
    look: impl Fn() -> Result<Vec<Finding>, TargetError>,
) -> Result<Vec<Finding>, TargetError> {
    let ends = [path.client(), path.server()].into_iter();
    let places: Vec<&str> = ends.chain(path.waypoints()).map(|it| it.name()).collect();
    for finding in &mut found {
        let commands = &finding.commands;
        let is_here = |it: &RemedyCommand| places.contains(&it.place.as_str());
        if commands.is_empty() || !commands.iter().all(is_here) {
            continue;
        }
        finding.tried = Some(match run(path, commands) {
            Ok(()) if is_found(&look()?, finding) => Tried::Remains,
            Ok(()) => Tried::Gone,
            Err(TargetError::Failed(why)) => {
                finding.evidence = format!("{}; {why}", finding.evidence);
                Tried::Failed
            }
            Err(error) => return Err(error),
        });
    }
    Ok(found)
}

fn run(path: &dyn Path, commands: &[RemedyCommand]) -> Result<(), TargetError> {
    for RemedyCommand { place, command } in commands {
        let started = path.start_command(command, Some(place))?;
        started.finish(LIMIT)?;
    }
    Ok(())
}

/// Whether the same check has found something again.
fn is_found(all: &[Finding], finding: &Finding) -> bool {
    let mut bad = all.iter().filter(|it| it.level != Severity::Good);
    bad.any(|it| it.what == finding.what)
}
