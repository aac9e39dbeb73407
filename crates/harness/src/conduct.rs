//! The one loop that runs a plan: blocks, trials, repetitions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumbline_experiment::{Plan, Server, Treatment, Workload};
use plumbline_record::{
    GateFailure, IdleSample, Observation, ServeResult, Trial, TrialStatus, Warning,
};

use crate::agent::TrialError;
use crate::{Cpus, Target, TargetError, Thresholds, gate, self_check, trial};

/// How trials are run, beside what the plan says.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the endpoints run.
    pub cpus: Cpus,
    /// What the validity gates allow.
    pub thresholds: Thresholds,
    /// Length of the idle sample at the head of each block.
    pub idle: Duration,
    /// Gives the time for records, RFC 3339.
    pub now: fn() -> String,
}

impl Settings {
    /// On any CPU, for a look that is not recorded.
    pub(crate) fn anywhere() -> Self {
        Self {
            cpus: Cpus::default(),
            thresholds: Thresholds::default(),
            idle: Duration::ZERO,
            now: String::new,
        }
    }
}

/// Whatever kept a trial from being kept.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a run could not go on. Trials kept so far are safe.
#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
    /// A finished trial could not be kept.
    #[error("a finished trial could not be written")]
    Keep(#[source] Cause),
    /// The machine could not be read.
    #[error("the machine at rest, with which every block begins, could not be measured")]
    Idle(#[source] TargetError),
}

/// Where a run is.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Block, from 0.
    pub block: usize,
    /// Trials of the plan that are finished.
    pub finished: usize,
    /// Trials of the plan.
    pub trials: usize,
    /// What runs now.
    pub treatment: &'a Treatment,
    /// 0, or the how-many-eth repetition.
    pub attempt: u32,
}

/// Who wants to know where a run is.
pub trait Progress {
    /// A trial starts.
    fn starts(&mut self, step: &Step<'_>);
    /// A trial has ended and is kept.
    fn ended(&mut self, step: &Step<'_>, trial: &Trial);
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Trials of the plan that are finished, those of an earlier part included.
    pub finished: usize,
    /// Whether it was interrupted.
    pub interrupted: bool,
}

/// Runs every trial of a plan that is not in `done`, and hands each to `keep`
/// as soon as it has ended. A trial that fails a gate is kept, marked, and
/// repeated as often as the plan allows (C-14). The target is not torn down.
pub fn conduct(
    plan: &Plan,
    done: &[Trial],
    target: &mut dyn Target,
    keep: &mut dyn FnMut(&Trial) -> Result<(), Cause>,
    progress: &mut dyn Progress,
    settings: &Settings,
    interrupted: &AtomicBool,
) -> Result<Outcome, HarnessError> {
    let mut run = Running {
        plan,
        done,
        spare: repetitions_left(plan, done),
        session: done.iter().map(|t| t.session + 1).max().unwrap_or(0),
        target,
        keep,
        progress,
        settings,
        interrupted,
        outcome: Outcome::default(),
    };
    for (block, order) in plan.blocks.iter().enumerate() {
        run.target.begin_block(block);
        let mut idle = IdleSamples::new();
        for (position, &id) in order.iter().enumerate() {
            run.place(block, position, &plan.treatments[id], &mut idle)?;
            if run.outcome.interrupted {
                return Ok(run.outcome);
            }
        }
    }
    Ok(run.outcome)
}

/// Repetitions that a whole run may spend: a quarter of its trials, or twice
/// each treatment for short plans. A machine that disturbs everything gives a
/// report that says so, not a run without end (C-14).
pub(crate) fn repetitions_left(plan: &Plan, done: &[Trial]) -> usize {
    let allowed = (plan.trials() / 4).max(plan.treatments.len() * 2);
    allowed.saturating_sub(done.iter().filter(|t| t.attempt > 0).count())
}

/// The idle samples of a block, by the name of the machines.
type IdleSamples = BTreeMap<String, IdleSample>;

/// A run under way.
struct Running<'a> {
    plan: &'a Plan,
    done: &'a [Trial],
    spare: usize,
    session: u32,
    target: &'a mut dyn Target,
    keep: &'a mut dyn FnMut(&Trial) -> Result<(), Cause>,
    progress: &'a mut dyn Progress,
    settings: &'a Settings,
    interrupted: &'a AtomicBool,
    outcome: Outcome,
}

impl Running<'_> {
    /// Runs the treatment of one place of the plan until it counts, is given
    /// up, or is interrupted.
    fn place(
        &mut self,
        block: usize,
        position: usize,
        treatment: &Treatment,
        idle: &mut IdleSamples,
    ) -> Result<(), HarnessError> {
        let Resume::Attempt(mut attempt) = resume_at(self.plan, self.done, block, position) else {
            self.outcome.finished += 1;
            return Ok(());
        };
        loop {
            let step = Step {
                block,
                finished: self.outcome.finished,
                trials: self.plan.trials(),
                treatment,
                attempt,
            };
            self.progress.starts(&step);
            let idle = quiet(idle, treatment, self.target, self.settings);
            let idle = idle.map_err(HarnessError::Idle)?;
            let place = Place {
                block,
                position,
                attempt,
                seed: self.plan.seed,
                session: self.session,
            };
            let trial = run_one(
                &place,
                treatment,
                self.target,
                idle,
                self.settings,
                self.interrupted,
            );
            let Some(trial) = trial else {
                self.outcome.interrupted = true;
                return Ok(());
            };
            (self.keep)(&trial).map_err(HarnessError::Keep)?;
            self.progress.ended(&step, &trial);
            let again = trial.status != TrialStatus::Valid
                && attempt < self.plan.retries
                && self.spare > 0
                && self.target.may_try_again(treatment);
            if !again {
                self.outcome.finished += 1;
                return Ok(());
            }
            self.spare -= 1;
            attempt += 1;
        }
    }
}

/// The idle sample of a block. One that caught somebody else's load is taken
/// again before the next trial, so that a short disturbance costs one trial
/// and not the block.
fn quiet(
    samples: &mut IdleSamples,
    treatment: &Treatment,
    target: &mut dyn Target,
    settings: &Settings,
) -> Result<IdleSample, TargetError> {
    let usable = |sample: &IdleSample| gate::idle_load(sample, &settings.thresholds).is_none();
    let machines = target.machines(treatment).to_owned();
    match samples.get(&machines) {
        Some(taken) if usable(taken) => Ok(*taken),
        _ => {
            let sample = target.idle_sample(treatment, settings.idle)?;
            samples.insert(machines, sample);
            Ok(sample)
        }
    }
}

/// Where a resumed run goes on with one place of the plan.
enum Resume {
    Done,
    Attempt(u32),
}

fn resume_at(plan: &Plan, done: &[Trial], block: usize, position: usize) -> Resume {
    let here = done
        .iter()
        .filter(|t| (t.block as usize, t.position as usize) == (block, position));
    match here.max_by_key(|trial| trial.attempt) {
        None => Resume::Attempt(0),
        Some(last) if last.status == TrialStatus::Valid || last.attempt >= plan.retries => {
            Resume::Done
        }
        Some(last) => Resume::Attempt(last.attempt + 1),
    }
}

/// The place of a trial in the plan.
struct Place {
    block: usize,
    position: usize,
    attempt: u32,
    seed: u64,
    session: u32,
}

impl Place {
    /// Seed of the arrivals: the same for all treatments of a block, so that
    /// they are paired in this too, and another in each block and attempt.
    fn arrival_seed(&self) -> u64 {
        let step = (self.block as u64) << 8 | u64::from(self.attempt);
        self.seed ^ spread(step.wrapping_add(1))
    }
}

/// Sets neighbouring numbers far apart, by the constant of SplitMix64 (Steele,
/// Lea, Flood 2014).
pub(crate) fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Runs one trial and judges it; `None` when it was interrupted.
fn run_one(
    place: &Place,
    treatment: &Treatment,
    target: &mut dyn Target,
    idle: IdleSample,
    settings: &Settings,
    interrupted: &AtomicBool,
) -> Option<Trial> {
    let started = (settings.now)();
    let clock = Instant::now();
    let result = target
        .path(treatment)
        .map_err(TrialError::from)
        .and_then(|path| {
            trial::run(
                path,
                treatment,
                place.arrival_seed(),
                idle,
                settings,
                interrupted,
            )
        });
    let (status, observation) = match result {
        Ok((observation, mut gates)) => {
            gates.extend(gate::judge(
                &treatment.workload,
                &observation,
                &settings.thresholds,
            ));
            (status(gates), Some(observation))
        }
        Err(TrialError::Interrupted) => return None,
        // Ctrl-C in a terminal reaches the whole foreground group; what fails
        // then is the interruption, not the trial.
        Err(_) if interrupted.load(Ordering::SeqCst) => return None,
        Err(error) => (
            TrialStatus::Failed {
                error: error.to_string(),
            },
            None,
        ),
    };
    let warnings = observation
        .as_ref()
        .map(|o| warnings(treatment, o, settings))
        .unwrap_or_default();
    Some(Trial {
        block: place.block as u32,
        position: place.position as u32,
        treatment: treatment.id,
        pair: None,
        attempt: place.attempt,
        session: place.session,
        started,
        took_ns: clock.elapsed().as_nanos() as u64,
        status,
        warnings,
        observation,
        set_up: target.set_up().map(Box::new),
    })
}

pub(crate) fn status(gates: Vec<GateFailure>) -> TrialStatus {
    if gates.is_empty() {
        TrialStatus::Valid
    } else {
        TrialStatus::Invalid { gates }
    }
}

/// Share of the machine above which a held rate queues for CPU (N-12).
const NEAR_SATURATION: f64 = 0.80;

pub(crate) fn warnings(
    treatment: &Treatment,
    observation: &Observation,
    settings: &Settings,
) -> Vec<Warning> {
    let workload = &treatment.workload;
    let limits = &settings.thresholds;
    let marks = [
        gate::tail_lag(workload, observation, limits),
        gate::other_load(observation, limits),
    ];
    let mut warnings: Vec<Warning> = marks.into_iter().flatten().collect();
    warnings.extend(self_check::warnings(workload, &observation.load, limits));
    // Where others had the machine, that is the reason, and is told already.
    if gate::disturbed(workload, observation, limits).is_empty() {
        warnings.extend(self_check::was_the_limit(
            workload,
            &observation.load,
            limits,
        ));
    }
    warnings.extend(other_server(workload, &observation.serve));
    for machine in &observation.machines {
        let share = machine.busy_ns as f64 / machine.capacity_ns.max(1) as f64;
        if workload.arrival.rate().is_some() && share > NEAR_SATURATION {
            warnings.push(Warning::NearSaturation { share });
        }
    }
    warnings
}

/// Whether another server answered than the workload asks for.
fn other_server(workload: &Workload, serve: &ServeResult) -> Option<Warning> {
    let wanted = match workload.server {
        Server::Plumbline => return None,
        Server::Nginx => "nginx",
    };
    (!serve.server.starts_with(wanted)).then(|| Warning::OtherServer {
        wanted: wanted.to_owned(),
        answered: serve.server.clone(),
    })
}

#[cfg(test)]
mod tests;
