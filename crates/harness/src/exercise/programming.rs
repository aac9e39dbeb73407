//! A change of what a cluster programs: new connections are tried before, while and after
//! it is made.

use std::thread;
use std::time::{Duration, Instant};

use plumbline_experiment::{ObjectChange, Programming, Timing};
use plumbline_protocol::Probed;
use plumbline_record::{
    Common, GateFailure, Observation, ProcessCpu, ProgrammingObservation, Warning, What,
};
use plumbline_sys::clock::now_ns;

use super::order::{Done, Exercise, TrialOrder};
use super::probing::{ProbingAgents, SETTLES, STEADY};
use crate::agent::TrialError;
use crate::clock::ClockAnswer;
use crate::error::TargetError;
use crate::path::{Path, Programmable};
use crate::proof::Least;
use crate::settings::Settings;
use crate::together::joined;

/// Longest wait for the answer to a change; the probe goes on so long.
const DECIDED: Duration = Duration::from_secs(60);

/// How often the controller looks whether a change is decided.
const LOOK: Duration = Duration::from_millis(20);

/// The tail of the probe's own lateness that is judged, and how many gaps it may be late.
const LAG_QUANTILE: f64 = 0.99;
const LATE_GAPS: f64 = 10.0;

/// A change, and the probe that sees when it acts.
pub(crate) struct ProgrammingExercise {
    pub(crate) task: Programming,
    pub(crate) timing: Timing,
}

/// When a change was asked for and decided, by this machine's clock.
struct Decided {
    asked_ns: u64,
    answered_ns: u64,
}

impl Exercise for ProgrammingExercise {
    /// What comes together with it does not wait for it.
    fn run(&self, path: &dyn Path, mut order: TrialOrder<'_>) -> Result<Done, TrialError> {
        drop(order.others.take());
        let probing = (self.task.rate, 0);
        let mut agents = ProbingAgents::start(path, probing, order.settings, order.interrupted)?;
        let object = path.programmable(self.task.object, agents.listening)?;
        self.settle(&*object, &mut agents)?;
        let seen = self.probe(&*object, &mut agents)?;
        let protocol = agents.end()?;
        let least = Least::both_ways(seen.probe.opened());
        let common = Common {
            protocols: vec![protocol],
            ..Common::default()
        };
        Ok(Done {
            seen: Observation {
                common,
                what: What::Programming(Box::new(seen)),
            },
            least,
            counted: None,
        })
    }

    fn judge(&self, seen: &Observation, _: &Settings) -> Vec<GateFailure> {
        let Some(seen) = seen.programming() else {
            return Vec::new();
        };
        let late = self.sent_late(seen);
        late.into_iter().chain(no_change(seen)).collect()
    }

    fn distrust(&self, _: &Observation, _: &Settings) -> Vec<Warning> {
        Vec::new()
    }

    fn own_cpu(&self, _: &Observation) -> ProcessCpu {
        ProcessCpu::default()
    }
}

/// Makes a change, and tells the agents meanwhile that the controller lives.
fn make(
    change: ObjectChange,
    object: &dyn Programmable,
    agents: &mut ProbingAgents<'_>,
) -> Result<Decided, TrialError> {
    thread::scope(|scope| {
        let decided = scope.spawn(move || -> Result<Decided, TargetError> {
            let asked_ns = now_ns();
            object.change(change)?;
            Ok(Decided {
                asked_ns,
                answered_ns: now_ns(),
            })
        });
        while !decided.is_finished() {
            agents.let_pass(LOOK)?;
        }
        Ok(joined(decided)?)
    })
}

impl ProgrammingExercise {
    /// Brings about what is there before the change, and waits until it acts and nothing
    /// else does.
    fn settle(
        &self,
        object: &dyn Programmable,
        agents: &mut ProbingAgents<'_>,
    ) -> Result<(), TrialError> {
        let before = self.task.change.reverse();
        make(before, object, agents)?;
        let since = Instant::now();
        loop {
            let probed = agents.probe(object.address(), STEADY, &mut [])?;
            let series = probed.series;
            let opened = series.opened();
            let is_steady = match before {
                ObjectChange::Add => opened == series.sent,
                ObjectChange::Remove => opened == 0,
            };
            if is_steady {
                return Ok(());
            }
            if since.elapsed() > SETTLES {
                let wanted = match before {
                    ObjectChange::Add => "with",
                    ObjectChange::Remove => "without",
                };
                return Err(TargetError::Failed(format!(
                    "{opened} of {} connections succeeded {} s after the cluster was to be {wanted} \
                     the {}; does its network enforce policies, and does its proxy run?",
                    series.sent,
                    SETTLES.as_secs(),
                    self.task.object.as_str(),
                ))
                .into());
            }
        }
    }

    /// Makes the change while connections are tried.
    fn probe(
        &self,
        object: &dyn Programmable,
        agents: &mut ProbingAgents<'_>,
    ) -> Result<ProgrammingObservation, TrialError> {
        let [before, after] =
            [self.timing.warm_up_ns, self.timing.measure_ns].map(Duration::from_nanos);
        let early = agents.clock()?;
        agents.begin(object.address(), before + DECIDED + after)?;
        agents.let_pass(before)?;
        let decided = make(self.task.change, object, agents)?;
        agents.let_pass(after)?;
        let probed = agents.stop()?;
        let late = agents.clock()?;
        Ok(observation(&self.task, &decided, [early, late], *probed))
    }

    /// A probe that was sent late shows a later moment than was wanted, and none at all in
    /// between (D2).
    fn sent_late(&self, seen: &ProgrammingObservation) -> Option<GateFailure> {
        let lag_ns = seen.probe.lag.value_at(LAG_QUANTILE);
        let limit_ns = (LATE_GAPS * 1e9 / self.task.rate) as u64;
        (lag_ns > limit_ns).then_some(GateFailure::SendLag {
            quantile: LAG_QUANTILE,
            lag_ns,
            limit_ns,
        })
    }
}

/// What was seen, all of it by the sender's clock: of two answers about that, by the one
/// that leaves less open.
fn observation(
    task: &Programming,
    decided: &Decided,
    clocks: [ClockAnswer; 2],
    probed: Probed,
) -> ProgrammingObservation {
    let [early, late] = clocks;
    let (clock, clock_error_ns) = ClockAnswer::nearer(early, late, decided.answered_ns);
    let in_trial = |ns| clock.translated(ns).saturating_sub(probed.begun_ns);
    ProgrammingObservation {
        opens: task.change == ObjectChange::Add,
        asked_ns: in_trial(decided.asked_ns),
        answered_ns: in_trial(decided.answered_ns),
        clock_error_ns,
        probe: probed.series,
    }
}

fn no_change(seen: &ProgrammingObservation) -> Option<GateFailure> {
    let ms = |ns: i64| ns as f64 / 1e6;
    let detail = if let Some(ns) = seen.premature_ns() {
        format!(
            "a connection ended as after the change {:.1} ms before its answer, when nobody had \
             asked for it",
            -ms(ns)
        )
    } else if seen.last_wrong_ns().is_none() {
        let sent = seen.probe.sent;
        match seen.first_right_ns() {
            None => format!("none of {sent} connections ended as it should after the change"),
            Some(ns) => format!(
                "connections ended as before the change until the last, though one did not {:.1} ms \
                 after its answer",
                ms(ns)
            ),
        }
    } else {
        return None;
    };
    Some(GateFailure::NoChange { detail })
}

#[cfg(test)]
mod tests;
