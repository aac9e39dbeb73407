//! Trials that run side by side on pairs which share no node.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use plumbline_experiment::{Ends, Treatment};
use plumbline_record::{
    GateFailure, IdleSample, NodePair, Observation, ProcessCpu, Trial, TrialStatus,
};

use crate::agent::TrialError;
use crate::conduct::{spread, status, warnings};
use crate::together::{Start, Ticket};
use crate::{Fleet, Settings, TargetError, gate, trial};

/// The place of a trial in the plan, but for its pair.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub(super) block: usize,
    pub(super) position: usize,
    pub(super) attempt: u32,
}

/// What went wrong before the trials of a round.
struct Faults {
    /// With the place. Pairs that work nevertheless do.
    of_all: Option<String>,
    /// With single nodes.
    of_node: BTreeMap<usize, String>,
}

impl Faults {
    fn of(&self, ends: Ends) -> Option<&String> {
        ends.iter().find_map(|end| self.of_node.get(end))
    }

    /// The reason why a trial failed, where it is one of before.
    fn behind(&self, error: TrialError) -> TrialError {
        match (&self.of_all, error) {
            (Some(fault), TrialError::Target(_)) => TargetError::Failed(fault.clone()).into(),
            (_, error) => error,
        }
    }
}

/// What the trials of all pairs need.
pub(super) struct Group<'a> {
    pub(super) names: &'a [String],
    pub(super) one_kernel: bool,
    pub(super) session: u32,
    pub(super) seed: u64,
    pub(super) fleet: &'a dyn Fleet,
    pub(super) settings: &'a Settings,
    pub(super) interrupted: &'a AtomicBool,
}

/// Machines at rest, by node.
type Idle = BTreeMap<usize, IdleSample>;

/// How often in a row a node may not answer: to ask a pod that does not start
/// again in every round would take a minute of each.
const SILENCES: usize = 2;

/// What is known of the nodes in a block.
#[derive(Default)]
pub(super) struct Known {
    /// In this round.
    idle: Idle,
    /// How often in a row a node has not answered, and what was said of it.
    silent: BTreeMap<usize, (usize, String)>,
}

impl Known {
    /// Before another round.
    pub(super) fn forget_rest(&mut self) {
        self.idle.clear();
    }

    /// Why a node is not asked any more.
    fn given_up(&self, node: usize) -> Option<&String> {
        let (times, fault) = self.silent.get(&node)?;
        (*times >= SILENCES).then_some(fault)
    }
}

impl Group<'_> {
    /// Runs a treatment once on each pair of a group, at the same time; `None`
    /// when it was interrupted.
    pub(super) fn run(
        &self,
        slot: Slot,
        group: &[Ends],
        treatment: &Treatment,
        known: &mut Known,
    ) -> Option<Vec<(Ends, Trial)>> {
        let is_asked = |node: &usize| known.given_up(*node).is_none();
        let nodes = group.as_flattened().iter().copied();
        let (asked, others): (Vec<usize>, Vec<usize>) = nodes.partition(is_asked);
        let ready = self.fleet.ready(&asked);
        let mut of_node = self.quiet(known, &asked);
        of_node.extend(others.into_iter().filter_map(|node| {
            let fault = known.given_up(node)?;
            let more = "it is not asked again in this block";
            Some((node, format!("{fault}; {more}")))
        }));
        let faults = Faults {
            of_all: ready.err().map(|error| error.to_string()),
            of_node,
        };
        let started = (self.settings.now)();
        let clock = Instant::now();
        let results = self.run_all(slot, group, treatment, &known.idle, &faults);
        let stopped =
            |result: &Result<_, TrialError>| matches!(result, Err(TrialError::Interrupted));
        // What fails when the user wants to stop is no failure of the network.
        if results.iter().any(stopped) || self.interrupted.load(Ordering::SeqCst) {
            return None;
        }
        let took_ns = clock.elapsed().as_nanos() as u64;
        let company: Vec<ProcessCpu> = results.iter().map(own_cpu).collect();
        let trials = group.iter().zip(results).enumerate();
        let trials = trials.map(|(number, (&ends, result))| {
            let others = if self.one_kernel {
                all_but(&company, number)
            } else {
                ProcessCpu::default()
            };
            let (status, observation) = self.judged(treatment, result, others);
            let warnings = observation
                .as_ref()
                .map(|one| warnings(treatment, one, self.settings));
            let trial = Trial {
                block: slot.block as u32,
                position: slot.position as u32,
                treatment: treatment.id,
                pair: Some(self.named(ends)),
                attempt: slot.attempt,
                session: self.session,
                started: started.clone(),
                took_ns,
                status,
                warnings: warnings.unwrap_or_default(),
                observation,
                // Many nodes are those of a cluster that stands.
                set_up: None,
            };
            (ends, trial)
        });
        Some(trials.collect())
    }

    /// All at the same time, each in a thread of its own. Whoever has a node that
    /// is known not to work is not waited for.
    fn run_all(
        &self,
        slot: Slot,
        group: &[Ends],
        treatment: &Treatment,
        idle: &Idle,
        faults: &Faults,
    ) -> Vec<Result<Seen, TrialError>> {
        let start = Start::of(group.len());
        thread::scope(|scope| {
            let trials = group.iter().map(|&ends| {
                let ticket = start.ticket();
                let seed = self.seed_of(slot, ends);
                let idle = self.idle_of(idle, ends);
                scope.spawn(move || match faults.of(ends) {
                    Some(fault) => Err(TargetError::Failed(fault.clone()).into()),
                    None => self
                        .run_one(treatment, ends, seed, idle, ticket)
                        .map_err(|error| faults.behind(error)),
                })
            });
            // All are started before the first is waited for.
            let trials: Vec<_> = trials.collect();
            trials.into_iter().map(joined).collect()
        })
    }

    /// Measures the machines of a round without load, all of them at once. A
    /// sample that caught somebody else's load is taken again before the next
    /// trial. Gives what is wrong with nodes that could not be measured.
    fn quiet(&self, known: &mut Known, nodes: &[usize]) -> BTreeMap<usize, String> {
        let Known { idle, silent } = known;
        let limits = &self.settings.thresholds;
        let is_usable = |sample: &IdleSample| gate::idle_load(sample, limits).is_none();
        let is_wanted = |node: &usize| !idle.get(node).is_some_and(is_usable);
        let wanted: Vec<usize> = nodes.iter().copied().filter(is_wanted).collect();
        let (fleet, length) = (self.fleet, self.settings.idle);
        let samples: Vec<Result<IdleSample, TargetError>> = thread::scope(|scope| {
            let rest = |&node| scope.spawn(move || fleet.rest(node, length));
            let threads: Vec<_> = wanted.iter().map(rest).collect();
            threads.into_iter().map(joined).collect()
        });
        let mut faults = BTreeMap::new();
        for (node, sample) in wanted.into_iter().zip(samples) {
            match sample {
                Ok(sample) => {
                    idle.insert(node, sample);
                    silent.remove(&node);
                }
                Err(error) => {
                    let name = &self.names[node];
                    let fault = format!("{name} could not be measured without load: {error}");
                    let (times, said) = silent.entry(node).or_default();
                    *times += 1;
                    said.clone_from(&fault);
                    faults.insert(node, fault);
                }
            }
        }
        faults
    }

    /// The sample of the machines of a pair: of both, or of the only one.
    fn idle_of(&self, idle: &Idle, ends: Ends) -> IdleSample {
        let ends = if self.one_kernel {
            &ends[..1]
        } else {
            &ends[..]
        };
        let samples = ends.iter().filter_map(|end| idle.get(end));
        samples.fold(IdleSample::default(), |sum, one| IdleSample {
            busy_ns: sum.busy_ns + one.busy_ns,
            capacity_ns: sum.capacity_ns + one.capacity_ns,
        })
    }

    fn run_one(
        &self,
        treatment: &Treatment,
        ends: Ends,
        seed: u64,
        idle: IdleSample,
        ticket: Ticket<'_>,
    ) -> Result<Seen, TrialError> {
        let mut path = self.fleet.path_between(treatment, ends)?;
        let (settings, stop) = (self.settings, self.interrupted);
        trial::run_among(
            &mut *path,
            treatment,
            seed,
            idle,
            settings,
            stop,
            Some(ticket),
        )
    }

    /// Seed of the arrivals: the same for all treatments of a block on one pair,
    /// and another on each pair, lest all of them send at the same moments.
    fn seed_of(&self, slot: Slot, [client, server]: Ends) -> u64 {
        let step = (slot.block as u64) << 8 | u64::from(slot.attempt);
        let pair = (client as u64) << 32 | server as u64;
        self.seed ^ spread(step.wrapping_add(1)) ^ spread(spread(pair.wrapping_add(1)))
    }

    pub(super) fn named(&self, [client, server]: Ends) -> NodePair {
        NodePair {
            client: self.names[client].clone(),
            server: self.names[server].clone(),
        }
    }

    fn judged(
        &self,
        treatment: &Treatment,
        result: Result<Seen, TrialError>,
        others: ProcessCpu,
    ) -> (TrialStatus, Option<Observation>) {
        match result {
            Ok((mut seen, mut gates)) => {
                seen.companions_cpu = others;
                let limits = &self.settings.thresholds;
                gates.extend(gate::judge(&treatment.workload, &seen, limits));
                (status(gates), Some(seen))
            }
            Err(error) => {
                let error = error.to_string();
                (TrialStatus::Failed { error }, None)
            }
        }
    }
}

/// What was seen, and what the path's own checks say.
type Seen = (Observation, Vec<GateFailure>);

/// CPU of both agents of a trial over its window.
fn own_cpu(result: &Result<Seen, TrialError>) -> ProcessCpu {
    let Ok((seen, _)) = result else {
        return ProcessCpu::default();
    };
    let share = seen.window_share().unwrap_or(1.0);
    let scaled = |ns: u64| (ns as f64 * share) as u64;
    ProcessCpu {
        user_ns: seen.load.cpu.user_ns + scaled(seen.server_cpu.user_ns),
        system_ns: seen.load.cpu.system_ns + scaled(seen.server_cpu.system_ns),
    }
}

fn all_but(company: &[ProcessCpu], number: usize) -> ProcessCpu {
    let others = company.iter().enumerate().filter(|(at, _)| *at != number);
    others.fold(ProcessCpu::default(), |sum, (_, one)| ProcessCpu {
        user_ns: sum.user_ns + one.user_ns,
        system_ns: sum.system_ns + one.system_ns,
    })
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    let result = thread.join();
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
