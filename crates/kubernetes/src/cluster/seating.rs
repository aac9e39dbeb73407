//! The pods of a run on its nodes, and what those do that are there to tune them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use plumbline_harness::{Target as _, TargetError};
use plumbline_protocol::{LookOrder, Sight};
use plumbline_record::Fingerprint;

use super::Cluster;
use crate::ClusterError;
use crate::seat::Seat;
use crate::site::lock;

/// How long a node may take until it is tuned. One on which there is nothing to set never is.
const LIMIT: Duration = Duration::from_secs(3);
/// Far longer than from the first of its settings to the last.
const LOOK: Duration = Duration::from_millis(100);

impl Cluster {
    /// Ensures that the pods of some nodes run, and that those have tuned their nodes which
    /// are there for that. The observers of replaced pods go with them.
    pub(super) fn seat(&self, nodes: &[usize]) -> Result<(), ClusterError> {
        let seats = self.planned_seats(nodes);
        let mut standing = lock(&self.standing);
        standing.refresh()?;
        standing.guard(&Vec::from_iter(seats.iter().copied()))?;
        standing.seat(&seats, |seat| self.node_of(seat))?;
        self.observers.keep(&standing);
        drop(standing);
        self.until_tuned(&seats)?;
        Ok(())
    }

    /// Waits until those of these pods that are new have tuned their nodes, which they do
    /// milliseconds after they run.
    fn until_tuned(&self, seats: &BTreeSet<Seat>) -> Result<(), TargetError> {
        let uid = |seat| lock(&self.standing).pod(seat).map(|pod| pod.uid.clone());
        let is_new = |seat| uid(seat).is_some_and(|it| !lock(&self.tuned).contains(&it));
        let new = |seat: &&Seat| seat.tunes() && is_new(**seat);
        let new: BTreeSet<Seat> = seats.iter().filter(new).copied().collect();
        if new.is_empty() {
            return Ok(());
        }
        self.of_each_node(|node| {
            let seat = Seat::Tuner(node as u16);
            let started = Instant::now();
            let is_over = || !new.contains(&seat) || started.elapsed() > LIMIT;
            while !is_over() && !is_tuned(&self.sight_of(seat)?) {
                self.session.pause(LOOK)?;
            }
            Ok(())
        })?;
        self.session.pause(LOOK)?;
        lock(&self.tuned).extend(new.into_iter().filter_map(uid));
        Ok(())
    }

    /// Adds what is tuned on the nodes to what is known of them. On nodes that share a kernel
    /// any of them sets it for all.
    pub(super) fn add_tuned(&self, whole: &mut Fingerprint) -> Result<(), TargetError> {
        let sights = self.of_each_node(|node| {
            let seat = Seat::Tuner(node as u16);
            let is_there = lock(&self.standing).pod(seat).is_some();
            is_there.then(|| self.sight_of(seat)).transpose()
        })?;
        let first = sights.first().and_then(Option::as_ref);
        let first = first.map(|it| it.boot.clone()).unwrap_or_default();
        for (number, (name, sight)) in self.nodes().into_iter().zip(sights).enumerate() {
            let Some(sight) = sight else { continue };
            let is_of_first = number == 0 || !first.is_empty() && sight.boot == first;
            let name = if self.is_pair() { "server" } else { &name };
            let of = match whole.others.get_mut(name) {
                _ if is_of_first => &mut *whole,
                Some(other) => other,
                None => continue,
            };
            of.tuned.extend(sight.fingerprint.tuned);
            of.tuned.sort();
            of.tuned.dedup();
            of.wake_up_limit_us = of.wake_up_limit_us.or(sight.fingerprint.wake_up_limit_us);
        }
        Ok(())
    }

    fn sight_of(&self, tuner: Seat) -> Result<Sight, TargetError> {
        self.observer(tuner)?.look(LookOrder::default())
    }
}

fn is_tuned(sight: &Sight) -> bool {
    let of = &sight.fingerprint;
    !of.tuned.is_empty() || of.wake_up_limit_us.is_some()
}
