//! Treatments of one workload that take turns in a block, and *no load* with them.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use plumbline_experiment::{Rotation, Slice, Treatment};
use plumbline_record::{DeviceCounters, GateFailure, IdleSample, RotationRecord, Trial};

use super::group::{FIRST_TWO, Group, TrialSlot, behind, spread};
use super::watchers::{WatchedMachines, Watchers};
use crate::agent::TrialError;
use crate::clock::{ClockError, Clocks, LEADS_NS};
use crate::error::TargetError;
use crate::exercise::{self, TrialOrder};
use crate::gate::{self, TurnSeen};
use crate::path::Path;
use crate::target::ends_of;
use crate::together::{Start, Ticket, joined};
use crate::trial::{self, CheckedObservation};

/// How often the machines are measured before turns, to wait for a quiet moment.
const RESTS: usize = 3;

/// A treatment and its place in the plan.
pub(super) type TurnMember<'a> = (TrialSlot, &'a Treatment);

type TrialResult = Result<CheckedObservation, TrialError>;
type StagedPath<'a> = Result<Box<dyn Path + Send + 'a>, TargetError>;

/// What came of treatments that were to take turns.
pub(super) enum Turned {
    /// A trial of each.
    Trials(Vec<Trial>),
    /// Their agents have no clock in common.
    Refused(ClockError),
    /// The user wants to stop.
    Interrupted,
}

impl Group<'_> {
    /// Splits positions of a block, whose treatments `of` gives, into sets of those that
    /// may take turns here.
    pub(super) fn that_rotate<'t>(
        &self,
        positions: Vec<usize>,
        of: impl Fn(usize) -> &'t Treatment,
    ) -> Vec<Vec<usize>> {
        let may_rotate = |one: &Treatment, other: &Treatment| {
            self.target.site_of(one) == self.target.site_of(other)
                && !self.has_refused(one)
                && self.target.can_rotate(one, other)
        };
        let mut sets: Vec<Vec<usize>> = Vec::new();
        for position in positions {
            let with_all =
                |set: &&mut Vec<usize>| set.iter().all(|it| may_rotate(of(*it), of(position)));
            match sets.iter_mut().find(with_all) {
                Some(set) => set.push(position),
                None => sets.push(vec![position]),
            }
        }
        sets
    }

    /// From now on treatments of this one's site have whole windows, for a reason that
    /// their trials tell.
    pub(super) fn refuse_turns(&mut self, treatment: &Treatment, why: &ClockError) {
        let site = self.target.site_of(treatment);
        self.refused.insert(site, why.to_string());
    }

    /// Whether treatments of this one's site cannot take turns.
    pub(super) fn has_refused(&self, treatment: &Treatment) -> bool {
        self.refused.contains_key(&self.target.site_of(treatment))
    }

    pub(super) fn keeps_sites_together(&self) -> bool {
        self.target.keeps_sites_together()
    }

    /// Runs treatments that have the same load once, in turns.
    pub(super) fn rotate(&mut self, members: &[TurnMember<'_>]) -> Turned {
        let (slot, first) = members[0];
        let started = (self.settings.now)();
        let faults = self.make_all_ready(members, &started);
        let idle_load = self.idle_load(members);
        let clock = Instant::now();
        let seed = self.seed_of(slot, FIRST_TWO) ^ spread(slot.position as u64 + 1);
        let slice_ns = self.plan.slice_ns * self.settings.slice_scale;
        let rotation = Rotation::new(members.len() + 1, slice_ns, first.timing, seed);
        let mut results = self.take_turns(members, &rotation);
        while self.is_to_begin_later(&results) {
            results = self.take_turns(members, &rotation);
        }
        if self.is_interrupted(&results) || self.interrupted.load(Ordering::SeqCst) {
            return Turned::Interrupted;
        }
        let refused = results.iter().find_map(|result| match result {
            Err(TrialError::Clock(why)) => Some(why.clone()),
            _ => None,
        });
        if let Some(why) = refused {
            return Turned::Refused(why);
        }
        // The turns of all together, shared out equally.
        let took_ns = clock.elapsed().as_nanos() as u64 / members.len() as u64;
        self.judge_all(members, &mut results, idle_load);
        let trials = members.iter().zip(results).zip(faults);
        let trials = trials.map(|((&(slot, treatment), result), fault)| {
            let result = result.map_err(|error| behind(fault.as_deref(), error));
            let trial = self.line(slot, treatment, &started);
            self.finished(trial, (treatment, FIRST_TWO), took_ns, result)
        });
        let trials = trials.collect();
        self.lateness.end_turns();
        Turned::Trials(trials)
    }

    /// Whether senders heard too late that their turns begin, and are told earlier from now
    /// on. That is up to the machine and says nothing of any treatment: all take their turns
    /// again, and it is no attempt of theirs.
    fn is_to_begin_later(&mut self, results: &[TrialResult]) -> bool {
        let is_late = |it: &TrialResult| matches!(it, Err(TrialError::Late { .. }));
        let again = self.lead_ns < LEADS_NS[1]
            && results.iter().any(is_late)
            && !self.is_interrupted(results);
        if again {
            self.lead_ns *= 2;
        }
        again
    }

    /// Gives what is wrong with the target for each.
    fn make_all_ready(&mut self, members: &[TurnMember<'_>], started: &str) -> Vec<Option<String>> {
        let faults = members.iter().map(|&(slot, treatment)| {
            let ready = self.target.ready(treatment, &ends_of(treatment, FIRST_TWO));
            let fault = ready.err().map(|error| error.to_string());
            self.note_set_up(slot, treatment, started, fault.as_deref());
            fault
        });
        faults.collect()
    }

    /// All side by side, each in a thread of its own, while their machines are watched;
    /// in the last slices of each rotation nobody sends.
    fn take_turns(&self, members: &[TurnMember<'_>], rotation: &Rotation) -> Vec<TrialResult> {
        let stage = |(_, treatment): &TurnMember<'_>| {
            let ends = ends_of(treatment, FIRST_TWO);
            self.target.stage(treatment, ends)
        };
        let paths: Vec<StagedPath<'_>> = members.iter().map(stage).collect();
        let standing = paths.iter().flatten().map(|path| &**path as &dyn Path);
        let shared = shared_devices(standing.clone());
        let is_apart =
            |path: &StagedPath<'_>| path.as_ref().is_ok_and(|it| it.is_on_two_machines());
        let apart: Vec<bool> = paths.iter().map(is_apart).collect();
        let watchers = Watchers::start(standing);
        let start = Start::in_turns(
            members.len() + 1,
            Clocks {
                lead_ns: self.lead_ns,
                skipped_ns: rotation.skipped_ns,
                length_ns: rotation.length_ns(),
                ..Clocks::default()
            },
        );
        let slices = &rotation.members;
        let (mut results, watched) = thread::scope(|scope| {
            let trials = members.iter().zip(paths).zip(slices);
            let trials = trials.map(|((member, path), slices)| {
                let ticket = start.ticket();
                scope.spawn(move || self.turn(member, path, slices, ticket))
            });
            // All are started before the first is waited for.
            let trials: Vec<_> = trials.collect();
            let ticket = start.ticket();
            let watched = watchers.and_then(|it| it.watch(slices, ticket, self.interrupted));
            (trials.into_iter().map(joined).collect::<Vec<_>>(), watched)
        });
        for (seen, _) in results.iter_mut().flatten() {
            let is_own =
                |it: &DeviceCounters| !shared.contains(&(it.namespace.clone(), it.device.clone()));
            seen.common.devices.retain(is_own);
        }
        complete(&mut results, &apart, rotation, watched);
        results
    }

    fn turn(
        &self,
        &(slot, treatment): &TurnMember<'_>,
        path: StagedPath<'_>,
        slices: &[Slice],
        ticket: Ticket<'_>,
    ) -> TrialResult {
        trial::run(
            &*path?,
            &*exercise::of(treatment),
            TrialOrder {
                seed: self.seed_of(slot, FIRST_TWO),
                // Measured meanwhile.
                idle: IdleSample::default(),
                settings: self.settings,
                interrupted: self.interrupted,
                others: Some(ticket),
                slices: Some(slices.to_vec()),
                neighbour: exercise::beside(treatment),
            },
        )
    }

    /// C-14, before the first slice: in those in which nobody sends a slow path may still
    /// carry what it was given. Who does not answer fails by its path.
    fn idle_load(&mut self, members: &[TurnMember<'_>]) -> Option<GateFailure> {
        let (target, settings) = (&*self.target, self.settings);
        let machines = members
            .iter()
            .map(|(_, one)| (*one, ends_of(one, FIRST_TWO)));
        let machines: Vec<_> = machines.collect();
        let nodes = machines.iter().flat_map(|(_, ends)| *ends).collect();
        for _ in 0..RESTS {
            self.rest.measure(target, members[0].1, &nodes, settings);
        }
        machines.into_iter().find_map(|(treatment, ends)| {
            let idle = self.rest.of(target, treatment, ends);
            gate::idle_load(&idle, &settings.thresholds)
        })
    }

    fn judge_all(
        &mut self,
        members: &[TurnMember<'_>],
        results: &mut [TrialResult],
        idle_load: Option<GateFailure>,
    ) {
        let seen = members.iter().zip(&*results);
        let seen = seen.map(|((_, treatment), it)| {
            let seen = it.as_ref().ok();
            (*treatment, seen.map(|(seen, _)| seen))
        });
        let seen: Vec<TurnSeen<'_>> = seen.collect();
        let limits = &self.settings.thresholds;
        let (mut of_all, of_each) = gate::judge_together(&seen, &mut self.lateness, limits);
        of_all.extend(idle_load);
        for (result, own) in results.iter_mut().zip(of_each) {
            if let Ok((_, gates)) = result {
                gates.extend(own.into_iter().chain(of_all.clone()));
            }
        }
    }
}

/// Devices of several paths, which count the packets of all that take turns. Of those
/// that are private, names say nothing: each path has its own.
fn shared_devices<'a>(paths: impl Iterator<Item = &'a dyn Path>) -> BTreeSet<(String, String)> {
    let (mut known, mut shared) = (BTreeSet::new(), BTreeSet::new());
    for path in paths {
        let legs = path.legs().into_iter().filter(|leg| !leg.is_private);
        let own: BTreeSet<(String, String)> = legs.flat_map(|leg| leg.devices).collect();
        shared.extend(own.intersection(&known).cloned());
        shared.extend(path.crossed_by_others());
        known.extend(own);
    }
    shared
}

/// Adds what was seen of the machines in the slices of each. `apart` says which have
/// two.
fn complete(
    results: &mut [TrialResult],
    apart: &[bool],
    rotation: &Rotation,
    watched: Result<WatchedMachines, TrialError>,
) {
    let watched = match watched {
        Ok(watched) => watched,
        Err(error) => {
            let fault = error.to_string();
            for result in results.iter_mut().filter(|it| it.is_ok()) {
                *result = Err(TargetError::Failed(fault.clone()).into());
            }
            return;
        }
    };
    let recorded = |slices: &Vec<Slice>| slices.iter().filter(|it| it.recorded_ns() > 0).count();
    let record = RotationRecord {
        treatments: results.len() as u32,
        slices: rotation.members.first().map_or(0, recorded) as u32,
        slice_ns: rotation.slice_ns,
        skipped_ns: rotation.skipped_ns,
        receiver_error_ns: None,
    };
    for (number, (result, &apart)) in results.iter_mut().zip(apart).enumerate() {
        if let Ok((seen, _)) = result {
            watched.complete(number, apart, &mut seen.common);
            seen.common.rotation = Some(RotationRecord {
                receiver_error_ns: watched.receiver_error_ns.filter(|_| apart),
                ..record
            });
        }
    }
}
