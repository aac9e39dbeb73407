//! Looks into networks, one after the other, in rounds. In each round a network is measured alone,
//! with programs that follow nobody, and followed, in changing order: what observing costs is the
//! difference of the last to the first, and what a sight adds to a hop that of the second one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumbline_experiment::{Scene, Task, Treatment, Workload};
use plumbline_harness::{Path, Settings, Target, TargetError, Thresholds, load_once};
use plumbline_lab::Lab;
use plumbline_record::LoadObservation;

use crate::account::{TRACEPOINTS, Unfollowed, Xray};
use crate::error::XrayError;
use crate::ground::{ClusterGround, Ground, LabGround, RequestSample};
use crate::load::{TIMING, TrialLatency, limit, workload};
use crate::order::XrayOrder;
use crate::sampling::Sampling;
use crate::subject::NamedScene;
use crate::sum::{NetworkSeen, RoundSeen, observer_share, sum_up};
use crate::view::Glimpse;

/// First port of the receivers. Each has its own, so that none finds connections of an earlier
/// one.
const FIRST_PORT: u16 = 20_000;
const PORTS: u64 = 10_000;

/// A network that is looked into.
struct LookedInto<'a> {
    subject: &'a NamedScene,
    /// Latencies above it do not count, nanoseconds.
    limit: u64,
    seen: NetworkSeen,
    failed: Option<XrayError>,
}

/// Looks into these networks of a lab; `say` hears how far it is. A network that cannot
/// be followed is left out with the reason. Interrupted, it gives what it has.
///
/// # Errors
///
/// Kernels and rights that do not suffice; what keeps the only network from being followed,
/// and [`XrayError::NoneFollowed`] where that is so of each of several.
pub fn survey(
    order: XrayOrder,
    subjects: &[NamedScene],
    lab: &mut Lab,
    interrupted: &AtomicBool,
    say: &dyn Fn(&str),
) -> Result<Xray, XrayError> {
    let ground = LabGround::new(lab, order, say)?;
    look_into(order, subjects, ground, interrupted, say)
}

/// As [`survey`](fn@survey), into paths of a target each of which has a waypoint on its sender's
/// node and one on its receiver's, where an agent may load programs into the kernel.
///
/// # Errors
///
/// As [`survey`](fn@survey).
pub fn survey_target(
    order: XrayOrder,
    subjects: &[NamedScene],
    target: &mut dyn Target,
    interrupted: &AtomicBool,
    say: &dyn Fn(&str),
) -> Result<Xray, XrayError> {
    let ground = ClusterGround::new(target, order);
    look_into(order, subjects, ground, interrupted, say)
}

fn look_into<G: Ground>(
    order: XrayOrder,
    subjects: &[NamedScene],
    mut ground: G,
    interrupted: &AtomicBool,
    say: &dyn Fn(&str),
) -> Result<Xray, XrayError> {
    let workload = workload().map_err(|refusal| XrayError::Refused(refusal.to_string()))?;
    // What no network can do without.
    ground.prepare(&[])?;
    let by = ground.by();
    let mut sampling = Sampling::new(ground.one_in(order.one_in));
    let mut look = Look {
        ground,
        workload,
        interrupted,
        begun: 0,
        one_in: sampling.next(),
    };
    let mut followed = Vec::new();
    let mut failed = Vec::new();
    for subject in subjects {
        match look.first_look(&subject.scene) {
            Ok(limit) => followed.push(LookedInto::new(subject, limit)),
            Err(error) if error.is_of_network() => failed.push((&*subject.name, error)),
            Err(error) => return Err(error),
        }
    }
    for round in 0..order.rounds {
        if followed.is_empty() {
            return Err(none_followed(failed));
        }
        say(&format!("round {} of {}", round + 1, order.rounds));
        look.one_in = sampling.next();
        for at in in_turn(round, followed.len()) {
            look.round(round + at, &mut followed[at])?;
        }
        let (gone, left): (Vec<_>, _) = followed.into_iter().partition(LookedInto::has_failed);
        followed = left;
        failed.extend(gone.into_iter().filter_map(LookedInto::failure));
        if interrupted.load(Ordering::SeqCst) {
            break;
        }
        let seen: Vec<_> = followed.iter().map(|it| &it.seen).collect();
        let cost = |one_in| observer_share(&seen, one_in);
        sampling.note_round(order.rounds - round - 1, cost);
    }
    let seen: Vec<_> = followed.iter().map(|it| &it.seen).collect();
    if seen.is_empty() {
        return Err(none_followed(failed));
    }
    if seen.iter().any(|network| network.rounds.is_empty()) {
        return Err(XrayError::Interrupted);
    }
    let unfollowed = failed.into_iter().map(|(name, error)| Unfollowed {
        name: name.to_owned(),
        why: error.reason(),
    });
    Ok(sum_up(&seen, unfollowed.collect(), sampling.found(), by))
}

impl<'a> LookedInto<'a> {
    fn new(subject: &'a NamedScene, limit: u64) -> Self {
        Self {
            subject,
            limit,
            seen: NetworkSeen {
                name: subject.name.clone(),
                ..NetworkSeen::default()
            },
            failed: None,
        }
    }

    fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    fn failure(self) -> Option<(&'a str, XrayError)> {
        Some((&self.subject.name, self.failed?))
    }
}

/// Why there is nothing to show.
fn none_followed(mut failed: Vec<(&str, XrayError)>) -> XrayError {
    if failed.len() == 1 {
        return failed.remove(0).1;
    }
    let each = failed.iter();
    let each = each.map(|(name, error)| format!("{name}: {}", error.reason()));
    XrayError::NoneFollowed(each.collect::<Vec<_>>().join("; "))
}

/// The networks in another order in each round: each begins as often as others, and as often
/// with one neighbour before it as with the other.
fn in_turn(round: usize, networks: usize) -> Vec<usize> {
    let back = round % 2 == 1;
    let nth = |at: usize| match back {
        true => (round % networks + networks - at) % networks,
        false => (round + at) % networks,
    };
    (0..networks).map(nth).collect()
}

/// How a network is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrialKind {
    /// While nobody looks.
    Alone,
    /// While programs are called and follow nobody.
    Rehearsed,
    /// While requests are followed.
    Watched,
}

/// All kinds, in one of their six orders, each of which is one of six turns.
fn kinds_in_turn(turn: usize) -> [TrialKind; 3] {
    let mut kinds = [TrialKind::Alone, TrialKind::Rehearsed, TrialKind::Watched];
    kinds.rotate_left(turn % 3);
    if turn % 2 == 1 {
        kinds.reverse();
    }
    kinds
}

fn treatment(scene: &Scene, workload: &Workload) -> Treatment {
    Treatment {
        id: 0,
        label: scene.name().into_owned(),
        scene: scene.clone(),
        copy: 1,
        task: Task::Load(workload.clone()),
        timing: TIMING,
        baseline: None,
    }
}

/// What all trials share.
struct Look<'a, G> {
    ground: G,
    workload: Workload,
    interrupted: &'a AtomicBool,
    /// How many there were.
    begun: u64,
    one_in: u64,
}

impl<G: Ground> Look<'_, G> {
    /// Has a network stand, and says which latencies count on it; sees that its packets can be
    /// followed.
    fn first_look(&mut self, scene: &Scene) -> Result<u64, XrayError> {
        if !scene.neighbours.is_none() {
            return Err(TargetError::Unsupported {
                what: "a path with neighbours".to_owned(),
                needs: "a path alone, for nobody works beside it while hops are seen".to_owned(),
            }
            .into());
        }
        self.ground.prepare(&[treatment(scene, &self.workload)])?;
        let alone = self.alone(scene)?.ok_or(XrayError::Interrupted)?;
        let limit = limit(&alone.load.latency);
        let watched = self.watched(scene, limit, self.one_in)?;
        let (_, seen) = watched.ok_or(XrayError::Interrupted)?;
        match seen.unseen() {
            None => Ok(limit),
            Some(why) => Err(not_seen(scene, why)),
        }
    }

    /// A round of a network, which is noted in it, and so is what keeps it from being followed.
    fn round(&mut self, turn: usize, of: &mut LookedInto<'_>) -> Result<(), XrayError> {
        match self.trials(&of.subject.scene, of.limit, turn, &mut of.seen) {
            Err(error) if error.is_of_network() => {
                of.failed = Some(error);
                Ok(())
            }
            done => done,
        }
    }

    /// A trial without a tracer, one with a tracer that follows nobody, unless that is what most
    /// requests of the next one are, and one that follows. Interrupted, nothing is added.
    fn trials(
        &mut self,
        scene: &Scene,
        limit: u64,
        turn: usize,
        network: &mut NetworkSeen,
    ) -> Result<(), XrayError> {
        let (mut alone, mut rehearsed, mut watched) = (None, None, None);
        let rehearses = self.ground.by() == TRACEPOINTS;
        for kind in kinds_in_turn(turn) {
            match kind {
                TrialKind::Alone => alone = self.alone(scene)?,
                TrialKind::Rehearsed if rehearses => {
                    rehearsed = self.watched(scene, limit, 0)?.map(|(load, _)| load);
                }
                TrialKind::Rehearsed => {}
                TrialKind::Watched => watched = self.watched(scene, limit, self.one_in)?,
            }
        }
        let (Some(alone), Some((watched, seen))) = (alone, watched) else {
            return Ok(());
        };
        if rehearses && rehearsed.is_none() {
            return Ok(());
        }
        if seen.journeys == 0 {
            let why = seen.unseen();
            let why = why.unwrap_or_else(|| "all of them took too long".to_owned());
            return Err(not_seen(scene, why));
        }
        let of = |it: &LoadObservation| {
            TrialLatency::of(&it.load.latency, limit).ok_or_else(|| {
                let why = "every request took longer than nearly all of those of the first trial; \
                           is the machine overloaded?";
                TargetError::Failed(why.to_owned())
            })
        };
        // Most requests pass taps that do not keep them, which is a rehearsal.
        let rehearsed = rehearsed.as_ref().unwrap_or(&watched);
        let (alone, rehearsed, latency) = (of(&alone)?, of(rehearsed)?, of(&watched)?);
        network.journeys += seen.journeys;
        network.lost += seen.lost;
        for (text, packets) in &seen.drops {
            match network.drops.iter_mut().find(|(known, _)| known == text) {
                Some((_, all)) => *all += packets,
                None => network.drops.push((text.clone(), *packets)),
            }
        }
        network.rounds.push(RoundSeen {
            one_in: self.one_in,
            alone,
            rehearsed,
            watched: latency,
            kept_ns: seen.kept_ns,
            hops: seen.with_ends(&watched.load, latency, limit),
        });
        Ok(())
    }

    /// A trial that nobody looks at; `None` when it was interrupted.
    fn alone(&mut self, scene: &Scene) -> Result<Option<LoadObservation>, XrayError> {
        let (seed, port) = self.next_trial();
        let (settings, interrupted) = (self.settings(), self.interrupted);
        let treatment = treatment(scene, &self.workload);
        let load = (&self.workload, TIMING);
        let work = |path: &dyn Path| load_once(path, load, seed, &settings, interrupted);
        Ok(self.ground.alone(&treatment, port, work)??)
    }

    /// A trial with the tracer, which follows one of so many requests; `None` when it was
    /// interrupted.
    fn watched(
        &mut self,
        scene: &Scene,
        longest_ns: u64,
        one_in: u64,
    ) -> Result<Option<(LoadObservation, Glimpse)>, XrayError> {
        let (seed, port) = self.next_trial();
        let (settings, interrupted) = (self.settings(), self.interrupted);
        let workload = self.ground.stamped(&self.workload);
        let treatment = treatment(scene, &workload);
        let sample = RequestSample { one_in, longest_ns };
        let load = (&workload, TIMING);
        let work = |path: &dyn Path| load_once(path, load, seed, &settings, interrupted);
        let (done, seen) = self.ground.watched(&treatment, port, sample, work)?;
        Ok(done?.map(|done| (done, seen)))
    }

    fn settings(&self) -> Settings {
        Settings {
            cpus: self.ground.cpus(),
            thresholds: Thresholds::default(),
            idle: Duration::ZERO,
            slice_scale: 1,
            now: String::new,
        }
    }

    /// The seed of the next trial, and the port of its receiver.
    fn next_trial(&mut self) -> (u64, u16) {
        self.begun += 1;
        (self.begun, FIRST_PORT + (self.begun % PORTS) as u16)
    }
}

fn not_seen(scene: &Scene, why: String) -> XrayError {
    XrayError::Unseen {
        network: scene.name().into_owned(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_has_every_network_once() {
        for round in 0..6 {
            let mut order = in_turn(round, 4);
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3]);
        }
        let first: Vec<_> = (0..4).map(|round| in_turn(round, 4)[0]).collect();
        assert_eq!(first, [0, 1, 2, 3]);
        assert_eq!(in_turn(1, 4), [1, 0, 3, 2]);
    }

    #[test]
    fn six_turns_have_each_order_of_trials_once() {
        let orders: Vec<_> = (0..6).map(kinds_in_turn).collect();
        for (at, order) in orders.iter().enumerate() {
            assert!(!orders[..at].contains(order), "{orders:?}");
            assert!(order.contains(&TrialKind::Rehearsed), "{order:?}");
        }
        assert_eq!(kinds_in_turn(6), orders[0]);
    }
}
