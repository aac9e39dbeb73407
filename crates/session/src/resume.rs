//! Going on with a run that was cut off.

use std::path::Path;

use plumbline_harness::{Target, pending};
use plumbline_record::{Build, Run, RunDirectory};
use plumbline_report::compare::{CompareError, differences};

use crate::begin::make;
use crate::prepared::Prepared;
use crate::{RunOptions, SessionError, conditions, precision};

/// Opens a run in the environment that it was started in (C-13). There its trials go on
/// as the record says; in another one, as this program and that environment have it.
pub(crate) fn resume(
    path: &Path,
    target: &mut dyn Target,
    options: &RunOptions<'_>,
) -> Result<Prepared, SessionError> {
    let (run, trials, directory) = RunDirectory::open(path)?;
    let command = run.provenance.command.join(" ");
    let refused =
        |problem: String| SessionError::Usage(format!("--resume {}: {problem}", path.display()));
    let recorded = &run.provenance.target;
    if recorded != target.name() {
        return Err(refused(format!(
            "the run was started with --target {recorded}; give the same flags of the target \
             again, as in `{command}`"
        )));
    }
    if run.provenance.anonymised {
        return Err(refused(
            "it was recorded with --anonymise, and lacks the names that it needs to go on; run \
             the experiment anew"
                .to_owned(),
        ));
    }
    let build = other_build(&run, options)?;
    let begun = run.plan.clone().as_begun(precision::begun(&trials));
    let first = pending(&begun, &trials);
    make(target, run.plan.link, &run.plan.treatments, &first)?;
    if options.pairing(target) != run.plan.pairing {
        return Err(refused(format!(
            "the run was of other pairs of nodes; give the same flags again, as in `{command}`, \
             and name the nodes where they have changed"
        )));
    }
    let differences = differences(1, &run.fingerprint, &target.fingerprint()?);
    if !differences.is_empty() && !options.across_environments {
        return Err(CompareError::DifferentEnvironments(differences).into());
    }
    let recorded = run.conditions.as_ref().filter(|_| differences.is_empty());
    let settings = recorded.map_or_else(|| conditions::settings(target), conditions::restored);
    Ok(Prepared {
        directory,
        anonymous: None,
        run,
        trials,
        build,
        settings,
    })
}

/// This program, where it is not the one that began the run: two builds may
/// measure differently, and a table must not mix them in silence.
fn other_build(run: &Run, options: &RunOptions<'_>) -> Result<Option<Build>, SessionError> {
    let here = plumbline_build::build().map_err(SessionError::Build)?;
    if run.provenance.build.as_ref() == Some(&here) {
        return Ok(None);
    }
    if options.mix_builds {
        return Ok(Some(here));
    }
    let before = match &run.provenance.build {
        Some(build) => format!("{} ({})", build.version, short(build)),
        None => format!("{}, which noted no hash of itself", run.provenance.version),
    };
    Err(SessionError::Usage(format!(
        "the run was begun by another build of Plumbline: {before}; this one is {} ({}). Resume it \
         with that program, or say --mix-builds, and every table will say so",
        here.version,
        short(&here)
    )))
}

/// The first digits of a hash: enough to tell builds apart.
fn short(build: &Build) -> &str {
    build.sha256.get(..12).unwrap_or(&build.sha256)
}
