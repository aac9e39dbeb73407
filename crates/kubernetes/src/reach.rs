//! Whether a new path can be made, and leads to its server.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use plumbline_experiment::{Protocol, Treatment};
use plumbline_harness::{Path as _, TargetError, reach};

use crate::ClusterError;
use crate::path::ClusterPath;
use crate::session::ClusterConnection;

/// How long it may take until pods behind a service are reached: kube-proxy writes
/// its rules a moment after a pod is ready.
pub(crate) const REACH: Duration = Duration::from_secs(20);

/// How long it may take until the end of a pod is reported, and how often that is
/// waited for.
const UNTOLD: Duration = Duration::from_secs(2);
const UNTOLD_ATTEMPTS: usize = 2;

/// Makes something from pods, and tries again when no agent starts in them: a pod
/// that has ended is shown as running until its kubelet reports it.
pub(crate) fn until_told<T>(
    session: &ClusterConnection,
    mut make: impl FnMut() -> Result<T, ClusterError>,
) -> Result<T, ClusterError> {
    let mut made = make();
    for _ in 0..UNTOLD_ATTEMPTS {
        if !matches!(made, Err(ClusterError::Agent(_))) {
            break;
        }
        session.pause(UNTOLD)?;
        made = make();
    }
    made
}

/// Waits until packets get through.
pub(crate) fn until_reached(
    session: &ClusterConnection,
    path: &ClusterPath,
    treatment: &Treatment,
    limit: Duration,
) -> Result<(), ClusterError> {
    let started = Instant::now();
    loop {
        let interrupted = session.interrupted();
        match reach(path, Protocol::Tcp, interrupted) {
            Ok(()) => return Ok(()),
            Err(_) if interrupted.load(Ordering::SeqCst) => {
                return Err(ClusterError::Interrupted);
            }
            Err(error) if started.elapsed() > limit => {
                return Err(ClusterError::Agent(TargetError::Unreached(format!(
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
