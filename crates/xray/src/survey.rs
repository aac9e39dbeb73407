//! Looks into networks of a lab, one after the other, in rounds. In each round a network is
//! measured twice, observed and alone, in changing order: what observing costs is the difference.

mod port;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumbline_experiment::{Link, Scene, Task, Treatment, Workload};
use plumbline_harness::{
    Demand, Settings, Target as _, TargetError, Thresholds, load_once, prepare,
};
use plumbline_lab::{Lab, StandingNetwork};
use plumbline_record::LoadObservation;

use crate::account::{NetworkSeen, RoundSeen, Unfollowed, Xray, observer_share, sum_up};
use crate::around::{Surroundings, inode};
use crate::error::XrayError;
use crate::eye::Eye;
use crate::load::{TIMING, TrialLatency, limit, workload};
use crate::sampling::Sampling;
use crate::subject::NamedScene;
use crate::taps;
use crate::traces::{Followed, Traces};
use crate::view::{drops_of, hops_of, journeys_of, unseen, within_ends};
use port::AtPort;

/// First port of the receivers. Each has its own, so that none finds connections of an earlier
/// one.
const FIRST_PORT: u16 = 20_000;
const PORTS: u64 = 10_000;

/// How to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XrayOrder {
    /// How often each network is looked at.
    pub rounds: usize,
    /// One of so many requests is followed.
    pub one_in: u64,
    /// By taps, whatever else could be had.
    pub taps: bool,
}

impl Default for XrayOrder {
    fn default() -> Self {
        Self {
            rounds: 12,
            one_in: 8,
            taps: false,
        }
    }
}

/// A network that is looked into.
struct LookedInto<'a> {
    subject: &'a NamedScene,
    /// Latencies above it do not count, nanoseconds.
    limit: u64,
    seen: NetworkSeen,
    failed: Option<XrayError>,
}

/// Looks into these networks; `say` hears how far it is. A network that cannot
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
    let mut eye = Eye::open(order.taps, say)?;
    let workload = workload().map_err(|refusal| XrayError::Refused(refusal.to_string()))?;
    // What no network can do without.
    prepare(lab, &demand(&[]))?;
    let settings = Settings {
        cpus: lab.cpus(),
        thresholds: Thresholds::default(),
        idle: Duration::ZERO,
        slice_scale: 1,
        now: String::new,
    };
    let mut sampling = Sampling::new(eye.one_in(order.one_in));
    let mut look = Look {
        lab,
        eye: &mut eye,
        workload,
        settings,
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
            let is_watched_first = (round + at) % 2 == 1;
            look.round(is_watched_first, &mut followed[at])?;
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
    Ok(sum_up(
        &seen,
        unfollowed.collect(),
        sampling.found(),
        eye.by(),
    ))
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

/// What is asked of the lab for these.
fn demand(treatments: &[Treatment]) -> Demand<'_> {
    Demand {
        treatments,
        first: &[],
        link: Link::default(),
    }
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
struct Look<'a> {
    lab: &'a mut Lab,
    eye: &'a mut Eye,
    workload: Workload,
    settings: Settings,
    interrupted: &'a AtomicBool,
    /// How many there were.
    begun: u64,
    one_in: u64,
}

impl Look<'_> {
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
        prepare(self.lab, &demand(&[treatment(scene, &self.workload)]))?;
        let (alone, _) = self.alone(scene)?.ok_or(XrayError::Interrupted)?;
        let limit = limit(&alone.load.latency);
        let watched = self.watched(scene, limit)?;
        let (_, traces) = watched.ok_or(XrayError::Interrupted)?;
        match unseen(&traces) {
            None => Ok(limit),
            Some(why) => Err(not_seen(scene, why)),
        }
    }

    /// A round of a network, which is noted in it, and so is what keeps it from being followed.
    fn round(&mut self, is_watched_first: bool, of: &mut LookedInto<'_>) -> Result<(), XrayError> {
        match self.trials(&of.subject.scene, of.limit, is_watched_first, &mut of.seen) {
            Err(error) if error.is_of_network() => {
                of.failed = Some(error);
                Ok(())
            }
            done => done,
        }
    }

    /// A trial with the tracer and one without. Interrupted, nothing is added.
    fn trials(
        &mut self,
        scene: &Scene,
        limit: u64,
        is_watched_first: bool,
        seen: &mut NetworkSeen,
    ) -> Result<(), XrayError> {
        let early = match is_watched_first {
            true => self.watched(scene, limit)?,
            false => self.alone(scene)?,
        };
        let late = match is_watched_first {
            true => self.alone(scene)?,
            false => self.watched(scene, limit)?,
        };
        let (Some(early), Some(late)) = (early, late) else {
            return Ok(());
        };
        let (alone, watched) = match is_watched_first {
            true => (late, early),
            false => (early, late),
        };
        let around = Surroundings::of(standing(self.lab, scene)?)?;
        let (watched, traces) = watched;
        if journeys_of(&traces) == 0 {
            let why = unseen(&traces).unwrap_or_else(|| "all of them took too long".to_owned());
            return Err(not_seen(scene, why));
        }
        let spans = watched.load.spans.clone();
        let of = |it: &LoadObservation| TrialLatency::of(&it.load.latency, limit);
        let (Some(alone), Some(watched)) = (of(&alone.0), of(&watched)) else {
            let why = "every request took longer than nearly all of those of the first trial; \
                       is the machine overloaded?";
            return Err(TargetError::Failed(why.to_owned()).into());
        };
        seen.journeys += journeys_of(&traces);
        seen.lost += traces.lost;
        for (text, packets) in drops_of(&traces, &around) {
            match seen.drops.iter_mut().find(|(known, _)| *known == text) {
                Some((_, all)) => *all += packets,
                None => seen.drops.push((text, packets)),
            }
        }
        seen.rounds.push(RoundSeen {
            one_in: self.one_in,
            alone,
            watched,
            hops: within_ends(hops_of(&traces, &around), spans.as_deref(), limit),
        });
        Ok(())
    }

    /// A trial that nobody looks at; `None` when it was interrupted.
    fn alone(&mut self, scene: &Scene) -> Result<Option<(LoadObservation, Traces)>, XrayError> {
        let (seed, port) = self.next_trial();
        let path = AtPort::new(standing(self.lab, scene)?, port);
        let load = (&self.workload, TIMING);
        let seen = load_once(&path, load, seed, &self.settings, self.interrupted)?;
        Ok(seen.map(|seen| (seen, Traces::default())))
    }

    /// A trial with the tracer; `None` when it was interrupted.
    fn watched(
        &mut self,
        scene: &Scene,
        longest_ns: u64,
    ) -> Result<Option<(LoadObservation, Traces)>, XrayError> {
        let (seed, port) = self.next_trial();
        let standing = standing(self.lab, scene)?;
        let path = AtPort::new(standing, port);
        let followed = Followed {
            client: inode(standing.client_place()),
            port: path.asked_port(),
            one_in: self.one_in,
            longest_ns,
        };
        let workload = self.eye.stamped(&self.workload);
        let load = (&workload, TIMING);
        let work = || load_once(&path, load, seed, &self.settings, self.interrupted);
        let (seen, traces) = match self.eye {
            Eye::Tracer(tracer) => tracer.watch(followed, work)?,
            Eye::Taps => taps::watch(standing, followed, workload.request_size, work)?,
        };
        Ok(seen?.map(|seen| (seen, traces)))
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

/// The path of a scene.
fn standing<'a>(lab: &'a mut Lab, scene: &Scene) -> Result<&'a StandingNetwork, XrayError> {
    let standing = lab.stand_as(scene).map_err(TargetError::from)?;
    Ok(standing)
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
}
