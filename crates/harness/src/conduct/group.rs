//! Trials that run side by side on pairs which share no node; of a single pair,
//! one trial.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use plumbline_experiment::{Ends, Plan, Treatment};
use plumbline_record::{
    GateFailure, IdleSample, NodePair, Observation, ProcessCpu, Trial, TrialStatus, Warning, plain,
};

use super::rest::Rest;
use crate::agent::TrialError;
use crate::clock::LEADS_NS;
use crate::error::TargetError;
use crate::exercise::{self, TrialOrder};
use crate::gate::Lateness;
use crate::set_up;
use crate::settings::Settings;
use crate::target::{Target, ends_of};
use crate::together::{Start, Ticket, joined};
use crate::trial::{self, CheckedObservation};

/// The pair of a plan that has no pairing.
pub(super) const FIRST_TWO: Ends = [0, 1];

/// The place of a trial in the plan, but for its pair.
#[derive(Clone, Copy)]
pub(super) struct TrialSlot {
    pub(super) block: usize,
    pub(super) position: usize,
    pub(super) attempt: u32,
}

/// What went wrong before the trials of a group.
struct Faults {
    /// With the target. Pairs that work nevertheless do.
    of_all: Option<String>,
    /// With single nodes.
    of_node: BTreeMap<usize, String>,
}

impl Faults {
    /// Why a trial between two nodes is not even tried.
    fn of(&self, ends: Ends) -> Option<&String> {
        let of_node = ends.iter().find_map(|end| self.of_node.get(end))?;
        Some(self.of_all.as_ref().unwrap_or(of_node))
    }
}

/// The reason why a trial failed, where it is a fault of before.
pub(super) fn behind(fault: Option<&str>, error: TrialError) -> TrialError {
    match (fault, error) {
        (Some(fault), TrialError::Target(_)) => TargetError::Failed(fault.to_owned()).into(),
        (_, error) => error,
    }
}

/// Runs the trials of a plan, those of several pairs at the same time.
pub(super) struct Group<'a> {
    pub(super) plan: &'a Plan,
    session: u32,
    pub(super) target: &'a mut dyn Target,
    pub(super) settings: &'a Settings,
    pub(super) interrupted: &'a AtomicBool,
    pub(super) rest: Rest,
    /// The sites whose treatments cannot take turns although the target lets them, and
    /// why.
    pub(super) refused: BTreeMap<String, String>,
    /// How long before turns begin their senders are told.
    pub(super) lead_ns: u64,
    /// How late trials may be whose baseline takes no turns with them.
    pub(super) lateness: Lateness,
    /// What was set up and is not kept yet.
    set_ups: Vec<Trial>,
}

impl<'a> Group<'a> {
    /// To go on after the trials in `done`.
    pub(super) fn new(
        plan: &'a Plan,
        done: &[Trial],
        target: &'a mut dyn Target,
        settings: &'a Settings,
        interrupted: &'a AtomicBool,
    ) -> Self {
        Self {
            plan,
            session: done.iter().map(|t| t.session + 1).max().unwrap_or(0),
            target,
            settings,
            interrupted,
            rest: Rest::default(),
            refused: BTreeMap::new(),
            lead_ns: LEADS_NS[0],
            lateness: Lateness::default(),
            set_ups: Vec::new(),
        }
    }

    /// What had to be set up for the trials that were run since this was last asked.
    pub(super) fn take_set_ups(&mut self) -> Vec<Trial> {
        std::mem::take(&mut self.set_ups)
    }

    pub(super) fn begin_block(&mut self, block: usize) {
        self.target.begin_block(block);
        self.rest = Rest::default();
    }

    pub(super) fn begin_round(&mut self) {
        self.rest.forget_samples();
    }

    pub(super) fn may_try_again(&self, treatment: &Treatment) -> bool {
        self.target.may_try_again(treatment)
    }

    pub(super) fn carries_nothing(&self, treatment: &Treatment) -> bool {
        self.target.carries_nothing(treatment)
    }

    /// The names of a pair, as the plan has them; `None` for the only one.
    pub(super) fn named(&self, [client, server]: Ends) -> Option<NodePair> {
        let names = &self.plan.pairing.as_ref()?.nodes;
        Some(NodePair {
            client: names[client].clone(),
            server: names[server].clone(),
        })
    }

    /// Runs a treatment once on each of some pairs, at the same time; `None` when
    /// it was interrupted.
    pub(super) fn run(
        &mut self,
        slot: TrialSlot,
        pairs: &[Ends],
        treatment: &Treatment,
    ) -> Option<Vec<(Ends, Trial)>> {
        let faults = self.make_ready(pairs, treatment);
        let started = (self.settings.now)();
        self.note_set_up(slot, treatment, &started, faults.of_all.as_deref());
        let clock = Instant::now();
        let results = self.run_all(slot, pairs, treatment, &faults);
        if self.is_interrupted(&results) {
            return None;
        }
        let took_ns = clock.elapsed().as_nanos() as u64;
        let results = self.with_companions(treatment, results);
        let trials = pairs.iter().zip(results).map(|(&ends, result)| {
            let trial = Trial {
                pair: self.named(ends),
                ..self.line(slot, treatment, &started)
            };
            (
                ends,
                self.finished(trial, (treatment, ends), took_ns, result),
            )
        });
        Some(trials.collect())
    }

    /// A trial with what came of it.
    pub(super) fn finished(
        &mut self,
        trial: Trial,
        (treatment, ends): (&Treatment, Ends),
        took_ns: u64,
        result: Result<CheckedObservation, TrialError>,
    ) -> Trial {
        let mut warnings = Vec::new();
        if let Ok((seen, _)) = &result {
            let (pair, limits) = (self.pair_of(ends), &self.settings.thresholds);
            let late_tail = self.lateness.late_tail(treatment, pair, seen, limits);
            warnings.extend(late_tail);
            warnings.extend(exercise::of(treatment).distrust(seen, self.settings));
        }
        let refused = self.refused.get(&self.target.site_of(treatment)).cloned();
        warnings.extend(refused.map(|why| Warning::NoTurns { why }));
        let (status, observation) = self.judged(treatment, ends, result);
        Trial {
            took_ns,
            status,
            warnings,
            observation,
            ..trial
        }
    }

    /// A line of this place in the plan, to be filled in.
    pub(super) fn line(&self, slot: TrialSlot, treatment: &Treatment, started: &str) -> Trial {
        Trial {
            block: slot.block as u32,
            position: slot.position as u32,
            treatment: treatment.id,
            pair: None,
            attempt: slot.attempt,
            session: self.session,
            build: None,
            started: started.to_owned(),
            took_ns: 0,
            status: TrialStatus::Valid,
            warnings: Vec::new(),
            observation: None,
        }
    }

    /// Notes what the target had to set up for the trials that come next.
    pub(super) fn note_set_up(
        &mut self,
        slot: TrialSlot,
        treatment: &Treatment,
        started: &str,
        fault: Option<&str>,
    ) {
        while let Some(set_up) = set_up::recorded(self.target, fault) {
            let line = Trial {
                took_ns: set_up.took_ns,
                status: set_up.status,
                observation: Some(set_up.seen),
                ..self.line(slot, treatment, started)
            };
            self.set_ups.push(line);
        }
    }

    /// Makes the target ready, and measures its machines without load.
    fn make_ready(&mut self, pairs: &[Ends], treatment: &Treatment) -> Faults {
        let site = self.target.site_of(treatment);
        let ends = pairs.iter().flat_map(|&pair| ends_of(treatment, pair));
        let nodes: BTreeSet<usize> = ends.collect();
        let mut of_node = BTreeMap::new();
        for &node in &nodes {
            of_node.extend(self.rest.given_up(&site, node).map(|fault| (node, fault)));
        }
        let asked: Vec<usize> = nodes
            .into_iter()
            .filter(|node| !of_node.contains_key(node))
            .collect();
        let ready = self.target.ready(treatment, &asked);
        let asked = asked.into_iter().collect();
        let silent = self
            .rest
            .measure(&*self.target, treatment, &asked, self.settings);
        of_node.extend(silent);
        Faults {
            of_all: ready.err().map(|error| error.to_string()),
            of_node,
        }
    }

    /// What fails when the user wants to stop is no failure of the network: Ctrl-C
    /// in a terminal reaches the whole foreground group.
    pub(super) fn is_interrupted(
        &self,
        results: &[Result<CheckedObservation, TrialError>],
    ) -> bool {
        let stop = self.interrupted.load(Ordering::SeqCst);
        results.iter().any(|result| match result {
            Ok(_) => false,
            Err(TrialError::Interrupted) => true,
            Err(_) => stop,
        })
    }

    /// All at the same time, each in a thread of its own. A trial with a node that
    /// is known not to work is not waited for.
    fn run_all(
        &self,
        slot: TrialSlot,
        pairs: &[Ends],
        treatment: &Treatment,
        faults: &Faults,
    ) -> Vec<Result<CheckedObservation, TrialError>> {
        let start = Start::of(pairs.len());
        let one = |pair: Ends, ticket: Ticket<'_>| {
            let ends = ends_of(treatment, pair);
            if let Some(fault) = faults.of(ends) {
                return Err(TargetError::Failed(fault.clone()).into());
            }
            let result = self.run_one(treatment, ends, self.seed_of(slot, pair), ticket);
            result.map_err(|error| behind(faults.of_all.as_deref(), error))
        };
        thread::scope(|scope| {
            let trials = pairs.iter().map(|&pair| {
                let ticket = start.ticket();
                let one = &one;
                scope.spawn(move || one(pair, ticket))
            });
            // All are started before the first is waited for.
            let trials: Vec<_> = trials.collect();
            trials.into_iter().map(joined).collect()
        })
    }

    fn run_one(
        &self,
        treatment: &Treatment,
        ends: Ends,
        seed: u64,
        ticket: Ticket<'_>,
    ) -> Result<CheckedObservation, TrialError> {
        let path = self.target.stage(treatment, ends)?;
        let idle: IdleSample = self.rest.of(&*self.target, treatment, ends);
        trial::run(
            &*path,
            &*exercise::of(treatment),
            TrialOrder {
                seed,
                idle,
                settings: self.settings,
                interrupted: self.interrupted,
                others: Some(ticket),
                slices: None,
                neighbour: exercise::beside(treatment),
            },
        )
    }

    /// Seed of the arrivals: the same for all treatments of a block on one pair, so
    /// that they are paired in this too, and another in each block and attempt. On
    /// each of several pairs it is another, lest all of them send at the same
    /// moments.
    pub(super) fn seed_of(&self, slot: TrialSlot, [client, server]: Ends) -> u64 {
        let step = (slot.block as u64) << 8 | u64::from(slot.attempt);
        let seed = self.plan.seed ^ spread(step.wrapping_add(1));
        if self.plan.pairing.is_none() {
            return seed;
        }
        let pair = (client as u64) << 32 | server as u64;
        seed ^ spread(spread(pair.wrapping_add(1)))
    }

    /// Where pairs share a kernel, the CPU of each is in the machine of the others.
    fn with_companions(
        &self,
        treatment: &Treatment,
        mut results: Vec<Result<CheckedObservation, TrialError>>,
    ) -> Vec<Result<CheckedObservation, TrialError>> {
        if results.len() < 2 || !self.target.is_one_kernel() {
            return results;
        }
        let exercise = exercise::of(treatment);
        let own = results.iter().map(|result| match result {
            Ok((seen, _)) => exercise.own_cpu(seen),
            Err(_) => ProcessCpu::default(),
        });
        let own: Vec<ProcessCpu> = own.collect();
        for (number, result) in results.iter_mut().enumerate() {
            if let Ok((seen, _)) = result {
                seen.common.companions_cpu = all_but(&own, number);
            }
        }
        results
    }

    /// D2 in a window of its own; in turns it is among the gates already. What comes later is
    /// held to a trial that is otherwise sound.
    fn late(
        &mut self,
        treatment: &Treatment,
        ends: Ends,
        seen: &Observation,
        gates: &[GateFailure],
    ) -> Option<GateFailure> {
        let (pair, limits) = (self.pair_of(ends), &self.settings.thresholds);
        let late = match seen.common.rotation {
            Some(_) => None,
            None => self.lateness.judge(treatment, pair, seen, limits),
        };
        let is_late = |it: &GateFailure| matches!(it, GateFailure::SendLag { .. });
        if gates.iter().all(is_late) {
            self.lateness.note(treatment, pair, seen, limits);
        }
        late
    }

    /// The number of these ends in the plan, where it has pairs.
    fn pair_of(&self, ends: Ends) -> Option<usize> {
        let pairing = self.plan.pairing.as_ref();
        pairing.and_then(|it| it.number(ends))
    }

    fn judged(
        &mut self,
        treatment: &Treatment,
        ends: Ends,
        result: Result<CheckedObservation, TrialError>,
    ) -> (TrialStatus, Option<Observation>) {
        match result {
            Ok((seen, mut gates)) => {
                gates.extend(exercise::of(treatment).judge(&seen, self.settings));
                gates.extend(self.late(treatment, ends, &seen, &gates));
                let status = if gates.is_empty() {
                    TrialStatus::Valid
                } else {
                    TrialStatus::Invalid { gates }
                };
                (status, Some(seen))
            }
            Err(TrialError::NotEnforced(detail)) => {
                let gates = vec![GateFailure::NotEnforced { detail }];
                (TrialStatus::Invalid { gates }, None)
            }
            Err(error) => {
                let error = plain(&error.to_string()).into_owned();
                (TrialStatus::Failed { error }, None)
            }
        }
    }
}

/// Sets neighbouring numbers far apart, by the constant of SplitMix64 (Steele,
/// Lea, Flood 2014).
pub(super) fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn all_but(company: &[ProcessCpu], number: usize) -> ProcessCpu {
    let others = company.iter().enumerate().filter(|(at, _)| *at != number);
    others.map(|(_, one)| *one).sum()
}
