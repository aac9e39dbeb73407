//! Nodes that are tuned while a run lasts, each from a pod on it.

use std::time::{Duration, Instant};

use plumbline_harness::{Target as _, TargetError};
use plumbline_protocol::LookOrder;
use plumbline_record::Fingerprint;

use super::Cluster;
use crate::seat::Seat;

/// How long a node may take until it is tuned: its pod runs milliseconds before that. One on
/// which there is nothing to set never is.
const LIMIT: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(100);

impl Cluster {
    /// Waits until the nodes are tuned, if they are to be.
    pub(super) fn until_tuned(&self) -> Result<(), TargetError> {
        let started = Instant::now();
        while self.tuned()?.iter().any(Vec::is_empty) && started.elapsed() < LIMIT {
            self.session.pause(LOOK)?;
        }
        Ok(())
    }

    /// Adds what is tuned on the nodes to what is known of them. On nodes that share a kernel
    /// it is set by one of them for all.
    pub(super) fn add_tuned(&self, whole: &mut Fingerprint) -> Result<(), TargetError> {
        let of_node = self.tuned()?;
        let is_shared = whole.others.is_empty();
        for (number, (name, tuned)) in self.nodes().into_iter().zip(of_node).enumerate() {
            let name = if self.is_pair() { "server" } else { &name };
            let other = whole.others.get_mut(name);
            let of = match other {
                Some(other) if number > 0 => other,
                _ if number == 0 || is_shared => &mut *whole,
                _ => continue,
            };
            for one in tuned {
                if !of.tuned.contains(&one) {
                    of.tuned.push(one);
                }
            }
        }
        Ok(())
    }

    /// What is tuned on each node; nothing where that was not asked for.
    fn tuned(&self) -> Result<Vec<Vec<String>>, TargetError> {
        if !self.options.tuning {
            return Ok(Vec::new());
        }
        self.of_each_node(|node| {
            let observer = self.observer(Seat::Tuner(node as u16))?;
            Ok(observer.look(LookOrder::default())?.fingerprint.tuned)
        })
    }
}
