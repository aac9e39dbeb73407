//! A run that is ready for its next trial.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use plumbline_experiment::{Experiment, Layout};
use plumbline_harness::{Ending, Target, conduct};
use plumbline_record::{Run, Trial, spent};

use crate::prepared::Prepared;
use crate::undo::{take_down, with_undoing};
use crate::{LeftBehind, News, RunOptions, SessionError, Watch, begin, precision, resume};

/// A run with its directory, on a target where everything stands.
pub struct Session<'a> {
    target: &'a mut dyn Target,
    prepared: Prepared,
    interrupted: &'a AtomicBool,
}

impl<'a> Session<'a> {
    /// Starts a run of an experiment. Where that fails, the target is taken down.
    ///
    /// # Errors
    ///
    /// Whatever keeps the run from its first trial.
    pub fn begin(
        experiment: Experiment,
        target: &'a mut dyn Target,
        options: &RunOptions<'a>,
        watch: &mut dyn Watch,
    ) -> Result<Self, SessionError> {
        let begun = begin::begin(experiment, target, options, watch);
        Self::open(begun, target, options)
    }

    /// Goes on with a run that was cut off. Where that fails, the target is taken
    /// down.
    ///
    /// # Errors
    ///
    /// A directory that holds no run or is in use, another target, environment or
    /// build than the run began with, and whatever keeps it from its next trial.
    pub fn resume(
        path: &Path,
        target: &'a mut dyn Target,
        options: &RunOptions<'a>,
    ) -> Result<Self, SessionError> {
        let resumed = resume::resume(path, target, options);
        Self::open(resumed, target, options)
    }

    fn open(
        prepared: Result<Prepared, SessionError>,
        target: &'a mut dyn Target,
        options: &RunOptions<'a>,
    ) -> Result<Self, SessionError> {
        let ready = prepared.and_then(|prepared| {
            // What a target keeps there is full of names.
            let kept = match &prepared.anonymous {
                Some(_) => Ok(()),
                None => target.run_directory(prepared.directory.path()),
            };
            kept.map(|()| prepared).map_err(SessionError::Logs)
        });
        match ready {
            Ok(prepared) => Ok(Self {
                target,
                prepared,
                interrupted: options.interrupted,
            }),
            // What stands already goes too.
            Err(error) => with_undoing(Err(error), take_down(target)),
        }
    }

    /// Where the run is kept.
    pub fn directory(&self) -> &Path {
        self.prepared.directory.path()
    }

    /// The plan, and everything else that is known before the first trial, as recorded.
    pub fn run(&self) -> &Run {
        let anonymous = self.prepared.anonymous.as_ref();
        anonymous.map_or(&self.prepared.run, |it| &it.run)
    }

    /// All trials that were kept so far, those of earlier parts included, as recorded.
    pub fn trials(&self) -> &[Trial] {
        let anonymous = self.prepared.anonymous.as_ref();
        anonymous.map_or(&self.prepared.trials, |it| &it.trials)
    }

    /// Runs every trial that is left, keeps each as it ends, and takes the target
    /// down, whatever happened before.
    ///
    /// # Errors
    ///
    /// What kept the run from going on; the trials until then are kept.
    pub fn conduct(&mut self, watch: &mut dyn Watch) -> Result<Conducted, SessionError> {
        self.announce(watch);
        let conducted = self.run_blocks(watch);
        match (conducted, take_down(self.target)) {
            (Ok(ending), undone) => Ok(Conducted {
                interrupted: ending.interrupted,
                left_behind: undone.err(),
            }),
            (Err(error), undone) => with_undoing(Err(error), undone),
        }
    }

    /// Runs the blocks of the plan: where it asks for precision, or for limits to be decided,
    /// as many as that takes.
    fn run_blocks(&mut self, watch: &mut dyn Watch) -> Result<Ending, SessionError> {
        let Prepared {
            directory,
            anonymous,
            run,
            trials,
            build,
            settings,
        } = &mut self.prepared;
        let mut blocks = precision::begun(trials);
        let (before, clock) = (spent(trials), Instant::now());
        loop {
            let plan = run.plan.clone().as_begun(blocks);
            let earlier = trials.clone();
            let mut keep = |trial: &Trial| {
                let trial = Trial {
                    build: build.clone(),
                    ..trial.clone()
                };
                match anonymous {
                    Some(anonymous) => directory.append(anonymous.hide(&trial)?)?,
                    None => directory.append(&trial)?,
                }
                trials.push(trial);
                Ok(())
            };
            let ending = conduct(
                &plan,
                &earlier,
                self.target,
                &mut keep,
                watch,
                settings,
                self.interrupted,
            )?;
            blocks = plan.blocks.len();
            let more = precision::more_blocks(run, trials, blocks, before + clock.elapsed());
            if ending.interrupted || more == 0 {
                return Ok(ending);
            }
            blocks += more;
        }
    }

    /// Reports how much there is to do: it grows with the square of the nodes.
    fn announce(&self, watch: &mut dyn Watch) {
        let plan = &self.prepared.run.plan.clone().as_begun(0);
        let Some(pairing) = &plan.pairing else { return };
        let at_once = !(self.target.is_one_kernel() && pairing.layout == Layout::Mesh);
        let rounds = if at_once {
            pairing.rounds()
        } else {
            pairing.pairs()
        };
        watch.hears(&News::Pairs {
            pairing,
            at_once,
            blocks: plan.blocks.len(),
            estimate: plan.duration_estimate(BESIDE_PHASES) * rounds as u32,
        });
    }
}

/// How a run came to its end.
#[derive(Debug)]
pub struct Conducted {
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// What of the target could not be taken down: an error, but none of what was measured.
    pub left_behind: Option<LeftBehind>,
}

/// What a trial takes beside its phases: agents are started, counters read.
const BESIDE_PHASES: Duration = Duration::from_millis(400);
