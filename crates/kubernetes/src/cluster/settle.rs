//! Waiting for nodes to come to rest.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use plumbline_experiment::Treatment;
use plumbline_harness::{Target as _, TargetError};
use plumbline_record::IdleSample;

use super::Cluster;

/// How long nodes may be busy with what was made or changed before they are measured, and
/// the share of CPU that counts as busy.
const LIMIT: Duration = Duration::from_secs(20);
const BUSY: f64 = 0.10;
const LOOK: Duration = Duration::from_millis(500);

impl Cluster {
    /// Waits until the nodes of a treatment's path are quiet: those who watch a cluster are
    /// busy for a while after what was made or changed acts. If they never are, they are
    /// measured all the same, and the gates report what they see.
    pub(crate) fn settle(&self, treatment: &Treatment) {
        let nodes = if self.shares_kernel(treatment, [0, 1]) {
            0..1
        } else {
            0..2
        };
        let started = Instant::now();
        let is_over =
            || started.elapsed() > LIMIT || self.session.interrupted().load(Ordering::SeqCst);
        while !is_over() {
            let samples = nodes.clone();
            let samples = samples.map(|node| self.idle_sample(treatment, node, LOOK));
            let samples: Result<Vec<IdleSample>, TargetError> = samples.collect();
            let Ok(samples) = samples else { return };
            let busy = |one: &IdleSample| one.busy_ns as f64 / one.capacity_ns.max(1) as f64;
            if samples.iter().all(|one| busy(one) < BUSY) {
                return;
            }
        }
    }
}
