//! Whether a new path leads to its server.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use plumbline_experiment::Treatment;
use plumbline_harness::{Path as _, TargetError, reach};

use crate::ClusterError;
use crate::path::ClusterPath;
use crate::session::Session;

/// How pods behind a service are first reached: kube-proxy writes its rules
/// a moment after the pod is ready.
const REACH: Duration = Duration::from_secs(20);

/// Waits until packets get through.
pub(crate) fn until_reached(
    session: &Session,
    path: &mut ClusterPath,
    treatment: &Treatment,
) -> Result<(), ClusterError> {
    let started = Instant::now();
    loop {
        let interrupted = session.interrupted();
        match reach(path, treatment, interrupted) {
            Ok(()) => return Ok(()),
            Err(_) if interrupted.load(Ordering::SeqCst) => {
                return Err(ClusterError::Interrupted);
            }
            Err(error) if started.elapsed() > REACH => {
                return Err(ClusterError::Agent(TargetError::Failed(format!(
                    "the path `{}` leads nowhere: {error}; is a NetworkPolicy or a firewall \
                     between {} and {}?",
                    treatment.label,
                    path.client().name(),
                    path.server().name(),
                ))));
            }
            Err(_) => session.pause(Duration::from_millis(300))?,
        }
    }
}
