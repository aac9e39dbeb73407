//! Waiting for nodes to come to rest.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use plumbline_experiment::Treatment;
use plumbline_harness::{Target as _, TargetError};
use plumbline_record::IdleSample;

use super::Cluster;

/// How long nodes may be busy with what was made or changed before they are measured, and
/// the share of CPU that counts as busy: this, or a tenth more than before anything was made.
const LIMIT: Duration = Duration::from_secs(20);
const BUSY: f64 = 0.10;
const MORE: f64 = 1.1;
const LOOK: Duration = Duration::from_millis(500);
/// Looks before anything is made, of which the quietest counts: pods have just started.
const LOOKS: usize = 5;

impl Cluster {
    /// Waits until the nodes of a treatment's path are quiet: those who watch a cluster are
    /// busy for a while after what was made or changed acts. What others do to nodes does not end
    /// with that. If they never are quiet, they are measured all the same, and the gates report
    /// what they see.
    pub(crate) fn settle(&self, treatment: &Treatment) {
        let before = self.dressing.busy_before.unwrap_or(0.0);
        let enough = BUSY.max(MORE * before);
        let started = Instant::now();
        let is_over = || started.elapsed() > LIMIT || self.is_interrupted();
        while !is_over() && self.busy(treatment).is_some_and(|it| it >= enough) {}
    }

    /// The share of CPU that others keep the nodes of a treatment's path busy with, unless one of
    /// them says nothing.
    pub(super) fn busy_with_others(&self, treatment: &Treatment) -> Option<f64> {
        let mut least = f64::INFINITY;
        for _ in 0..LOOKS {
            least = least.min(self.busy(treatment)?);
            if least < BUSY || self.is_interrupted() {
                break;
            }
        }
        Some(least)
    }

    fn is_interrupted(&self) -> bool {
        self.session.interrupted().load(Ordering::SeqCst)
    }

    /// Looks at the nodes of a treatment's path: the share of CPU of the busiest.
    fn busy(&self, treatment: &Treatment) -> Option<f64> {
        let nodes = if self.shares_kernel(treatment, [0, 1]) {
            0..1
        } else {
            0..2
        };
        let samples = nodes.map(|node| self.idle_sample(treatment, node, LOOK));
        let samples: Result<Vec<IdleSample>, TargetError> = samples.collect();
        let share = |one: IdleSample| one.busy_ns as f64 / one.capacity_ns.max(1) as f64;
        samples.ok()?.into_iter().map(share).reduce(f64::max)
    }
}
