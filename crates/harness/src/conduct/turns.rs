//! Treatments of one workload that take turns in a block, and *no load* with them.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use plumbline_agent::Watched;
use plumbline_experiment::{Rotation, Slice, Treatment};
use plumbline_record::{IdleSample, RotationRecord, Trial};

use super::group::{FIRST_TWO, Group, TrialSlot, spread};
use crate::agent::TrialError;
use crate::error::TargetError;
use crate::exercise::{self, LEAD_NS, TrialOrder};
use crate::gate;
use crate::target::ends_of;
use crate::together::{Start, Ticket, joined};
use crate::trial::{self, CheckedObservation};

/// A treatment and its place in the plan.
pub(super) type TurnMember<'a> = (TrialSlot, &'a Treatment);

type TrialResult = Result<CheckedObservation, TrialError>;

impl Group<'_> {
    /// Whether treatments may take turns here.
    pub(super) fn can_rotate(&self) -> bool {
        self.target.can_rotate()
    }

    pub(super) fn keeps_sites_together(&self) -> bool {
        self.target.keeps_sites_together()
    }

    /// Runs treatments that have the same load once, in turns; `None` when it was
    /// interrupted.
    pub(super) fn rotate(&mut self, members: &[TurnMember<'_>]) -> Option<Vec<Trial>> {
        let (slot, first) = members[0];
        let started = (self.settings.now)();
        let clock = Instant::now();
        let faults = members.iter().map(|(_, treatment)| {
            let ready = self.target.ready(treatment, &ends_of(treatment, FIRST_TWO));
            ready.err().map(|error| error.to_string())
        });
        let faults: Vec<Option<String>> = faults.collect();
        let seed = self.seed_of(slot, FIRST_TWO) ^ spread(slot.position as u64 + 1);
        let traffic = first.task.traffic();
        let rotation = Rotation::new(members.len() + 1, traffic, first.timing, seed);
        let (mut results, watched) = self.take_turns(members, &faults, &rotation);
        if self.is_interrupted(&results) || self.interrupted.load(Ordering::SeqCst) {
            return None;
        }
        // The turns of all together, shared out equally.
        let took_ns = clock.elapsed().as_nanos() as u64 / members.len() as u64;
        self.complete(members, &mut results, &rotation, watched);
        let trials = members.iter().zip(results);
        let trials = trials.map(|(&(slot, treatment), result)| {
            let trial = self.line(slot, treatment, &started);
            self.finished(trial, treatment, took_ns, result)
        });
        Some(trials.collect())
    }

    /// All side by side, each in a thread of its own, while the CPUs are watched; in the
    /// last slices of each rotation nobody sends.
    fn take_turns(
        &self,
        members: &[TurnMember<'_>],
        faults: &[Option<String>],
        rotation: &Rotation,
    ) -> (Vec<TrialResult>, Result<Watched, TrialError>) {
        let start = Start::of(members.len() + 1);
        thread::scope(|scope| {
            let slices = &rotation.members;
            let trials = members.iter().zip(faults).zip(slices);
            let trials = trials.map(|((member, fault), slices)| {
                let ticket = start.ticket();
                scope.spawn(move || match fault {
                    Some(fault) => Err(TargetError::Failed(fault.clone()).into()),
                    None => self.turn(member, slices, ticket),
                })
            });
            // All are started before the first is waited for.
            let trials: Vec<_> = trials.collect();
            let ticket = start.ticket();
            let watched = self.watch(slices, ticket);
            (trials.into_iter().map(joined).collect(), watched)
        })
    }

    fn turn(
        &self,
        &(slot, treatment): &TurnMember<'_>,
        slices: &[Slice],
        ticket: Ticket<'_>,
    ) -> TrialResult {
        let path = self
            .target
            .stage(treatment, ends_of(treatment, FIRST_TWO))?;
        trial::run(
            &*path,
            &*exercise::of(treatment),
            TrialOrder {
                seed: self.seed_of(slot, FIRST_TWO),
                // Measured meanwhile.
                idle: IdleSample::default(),
                settings: self.settings,
                interrupted: self.interrupted,
                others: Some(ticket),
                slices: Some(slices.to_vec()),
            },
        )
    }

    fn watch(&self, members: &[Vec<Slice>], ticket: Ticket<'_>) -> Result<Watched, TrialError> {
        let together_ns = ticket.wait_for_all(self.interrupted, || Ok(()))?;
        let start_ns = together_ns + LEAD_NS;
        let watched = plumbline_agent::watch(start_ns, members, self.interrupted);
        watched.map_err(|error| {
            let fault = format!("the CPU time of this machine cannot be read: {error}");
            TargetError::Failed(fault).into()
        })
    }

    /// Adds what concerns all of them.
    fn complete(
        &self,
        members: &[TurnMember<'_>],
        results: &mut [TrialResult],
        rotation: &Rotation,
        watched: Result<Watched, TrialError>,
    ) {
        let watched = match watched {
            Ok(watched) => watched,
            Err(error) => {
                let fault = error.to_string();
                for result in results {
                    *result = Err(TargetError::Failed(fault.clone()).into());
                }
                return;
            }
        };
        for (result, idle) in results.iter_mut().zip(watched.idle.iter().flatten()) {
            if let Ok((seen, _)) = result
                && let [machine] = &mut seen.common.machines[..]
            {
                idle.correct(machine);
            }
        }
        let seen = members.iter().zip(&*results);
        let seen = seen.map(|((_, treatment), it)| Some((*treatment, &it.as_ref().ok()?.0)));
        let seen: Vec<_> = seen.collect();
        let (of_all, of_each) = gate::judge_together(&seen, &self.settings.thresholds);
        let recorded =
            |slices: &Vec<Slice>| slices.iter().filter(|it| it.recorded_ns() > 0).count();
        let record = RotationRecord {
            treatments: results.len() as u32,
            slices: rotation.members.first().map_or(0, recorded) as u32,
            slice_ns: rotation.slice_ns,
            skipped_ns: rotation.skipped_ns,
        };
        for (result, own) in results.iter_mut().zip(of_each) {
            if let Ok((seen, gates)) = result {
                seen.common.idle = watched.rest;
                seen.common.rotation = Some(record);
                gates.extend(own.into_iter().chain(of_all.clone()));
            }
        }
    }
}
