//! Whether a path leads to its receiver at all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use plumbline_experiment::{
    Arrival, Ends, Protocol, Timing, Treatment, TreatmentId, Workload, WorkloadKind,
};

use crate::agent::TrialError;
use crate::error::TargetError;
use crate::exercise::{LoadExercise, TrialOrder};
use crate::path::Path;
use crate::settings::Settings;
use crate::target::{Target, ends_of};
use crate::together::joined;
use crate::trial;

/// Paths that are tried at the same time, where a target can carry loads side by side.
const AT_ONCE: usize = 8;

/// Requests per second over UDP, where nothing is sent again: of some twenty one is
/// answered even where most are lost.
const UDP_RATE: f64 = 1_000.0;

/// The windows of a try, nanoseconds: a sender that got no CPU within one has asked
/// nothing yet, and says nothing of the path.
const WINDOWS_NS: [u64; 3] = [20_000_000, 200_000_000, 2_000_000_000];

/// Sends a few requests over a path, to see that it leads to the receiver
/// before anything is measured on it. Where there are several receivers, enough
/// connections are made that hardly one of them is left out.
///
/// # Errors
///
/// [`TargetError::Unreached`] with what the agents say: refused, timed out, not answered;
/// [`TargetError::Failed`] when one of them ended.
pub fn reach(
    path: &dyn Path,
    protocol: Protocol,
    interrupted: &AtomicBool,
) -> Result<(), TargetError> {
    let connections = match path.further_servers().len() as u32 {
        0 => 1,
        further => 8 * (further + 1),
    };
    let workload = Workload {
        protocol,
        connections,
        arrival: match protocol {
            Protocol::Tcp => Arrival::Closed,
            Protocol::Udp => Arrival::Constant { rate: UDP_RATE },
        },
        ..Workload::of_kind(WorkloadKind::Rr)
    };
    for measure_ns in WINDOWS_NS {
        let few = LoadExercise {
            workload: workload.clone(),
            timing: Timing {
                warm_up_ns: 0,
                measure_ns,
                // No longer than answers are missing: those of a long way come late.
                drain_ns: 5_000_000_000,
            },
        };
        let settings = Settings::anywhere();
        let order = TrialOrder::alone(1, &settings, interrupted);
        match trial::run(path, &few, order) {
            Ok((seen, _)) => match seen.load().map(|it| (it.load.sent, it.load.completed)) {
                Some((_, 1..)) => return Ok(()),
                Some((0, _)) if !interrupted.load(Ordering::SeqCst) => {}
                _ => break,
            },
            Err(TrialError::Target(error)) => return Err(error),
            // Nothing of the path: agents are killed, and ways to them are cut, anywhere.
            Err(error @ TrialError::Ended { .. }) => {
                return Err(TargetError::Failed(error.to_string()));
            }
            Err(error) => return Err(TargetError::Unreached(error.to_string())),
        }
    }
    Err(TargetError::Unreached("no request was answered".to_owned()))
}

/// Tries every scene of a plan once on these pairs of nodes, which share none, and gives
/// the treatments whose packets get through on no pair, each with the reason. What else
/// goes wrong is left to the trials. Empty when it was interrupted.
pub fn unreached(
    treatments: &[Treatment],
    pairs: &[Ends],
    target: &dyn Target,
    interrupted: &AtomicBool,
) -> Vec<(TreatmentId, String)> {
    let mut ways: Vec<(&Treatment, Option<String>)> = Vec::new();
    for treatment in treatments {
        if !ways.iter().any(|(known, _)| is_one_way(known, treatment)) {
            ways.push((treatment, None));
        }
    }
    let together = |(one, _): &(&Treatment, _)| target.can_rotate(ways[0].0, one);
    let at_once = if ways.iter().all(together) {
        AT_ONCE
    } else {
        1
    };
    for some in ways.chunks_mut(at_once) {
        thread::scope(|scope| {
            let tries = some.iter().map(|(treatment, _)| {
                let treatment = *treatment;
                scope.spawn(move || why_unreached(treatment, pairs, target, interrupted))
            });
            let tries: Vec<_> = tries.collect();
            for ((_, why), tried) in some.iter_mut().zip(tries) {
                *why = joined(tried);
            }
        });
    }
    if interrupted.load(Ordering::SeqCst) {
        return Vec::new();
    }
    let why = |treatment: &Treatment| {
        let way = ways.iter().find(|(known, _)| is_one_way(known, treatment));
        Some((treatment.id, way?.1.clone()?))
    };
    treatments.iter().filter_map(why).collect()
}

/// Whether two treatments need one try.
fn is_one_way(one: &Treatment, other: &Treatment) -> bool {
    one.scene == other.scene && one.copy == other.copy && protocol(one) == protocol(other)
}

fn protocol(treatment: &Treatment) -> Protocol {
    let load = treatment.task.load();
    load.map_or(Protocol::Tcp, |load| load.protocol)
}

/// Tries one way on all pairs at the same time; `None` when packets get through on one
/// of them, or the reason is another.
fn why_unreached(
    treatment: &Treatment,
    pairs: &[Ends],
    target: &dyn Target,
    interrupted: &AtomicBool,
) -> Option<String> {
    let try_one = |pair: Ends| -> Option<String> {
        let path = target.stage(treatment, ends_of(treatment, pair));
        let tried = path.and_then(|path| match target.has_tried(treatment) {
            true => Ok(()),
            false => reach(&*path, protocol(treatment), interrupted),
        });
        match tried {
            Err(TargetError::Unreached(why)) => Some(why),
            _ => None,
        }
    };
    thread::scope(|scope| {
        let try_one = &try_one;
        let tries = pairs.iter().map(|pair| scope.spawn(move || try_one(*pair)));
        // All are started before the first is waited for.
        let tries: Vec<_> = tries.collect();
        let reasons: Vec<Option<String>> = tries.into_iter().map(joined).collect();
        reasons.into_iter().collect::<Option<Vec<_>>>()?.pop()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted::{Act, PlantedTarget, healthy, plan};

    static NEVER: AtomicBool = AtomicBool::new(false);
    const PAIR: &[Ends] = &[[0, 1]];

    /// Two workloads on each of `host` and `vxlan`.
    fn treatments() -> Vec<Treatment> {
        let once = plan(1, 0).treatments;
        let twice = once.iter().chain(&once).cloned().enumerate();
        twice.map(|(id, it)| Treatment { id, ..it }).collect()
    }

    fn drops_everything() -> Act {
        let mut silent = healthy();
        silent.load.load.completed = 0;
        Act::Measure(Box::new(silent))
    }

    #[test]
    fn what_carries_nothing_is_known_after_one_try_of_its_scene() {
        let mut target = PlantedTarget::new([]);
        // The second act would be that of another try.
        let acts = [drops_everything(), Act::Fail("another try")];
        target.second = Some(Box::new(PlantedTarget::new(acts)));
        let found = unreached(&treatments(), PAIR, &target, &NEVER);
        let silent = "no request was answered".to_owned();
        assert_eq!(found, [(1, silent.clone()), (3, silent)]);
        assert_eq!(target.second.map(|it| it.left()), Some(1));
    }

    #[test]
    fn a_sender_that_could_not_send_yet_is_given_another_window() {
        let mut idle = healthy();
        (idle.load.load.sent, idle.load.load.completed) = (0, 0);
        let late = [
            Act::Measure(Box::new(idle)),
            Act::Measure(Box::new(healthy())),
        ];
        let target = PlantedTarget::new(late);
        let found = unreached(&treatments()[..1], PAIR, &target, &NEVER);
        assert_eq!((found, target.left()), (Vec::new(), 0));
    }

    #[test]
    fn the_reason_is_what_the_sender_says() {
        let target = PlantedTarget::new([Act::Fail("no route to host")]);
        let found = unreached(&treatments()[..1], PAIR, &target, &NEVER);
        assert!(
            matches!(&found[..], [(0, why)] if why.contains("no route to host")),
            "{found:?}"
        );
    }

    #[test]
    fn an_agent_that_ends_says_nothing_of_the_path() {
        let target = PlantedTarget::new([Act::Vanish]);
        let found = unreached(&treatments()[..1], PAIR, &target, &NEVER);
        assert_eq!((found, target.left()), (Vec::new(), 0));
    }

    #[test]
    fn one_pair_that_works_is_enough() {
        let target = PlantedTarget::new([drops_everything()]);
        let pairs = &[[0, 1], [2, 3]];
        let found = unreached(&treatments()[..1], pairs, &target, &NEVER);
        assert_eq!((found, target.left()), (Vec::new(), 0));
    }

    #[test]
    fn an_interrupted_try_blames_nobody() {
        let target = PlantedTarget::new([Act::Hang]);
        let stop = AtomicBool::new(true);
        assert!(unreached(&treatments(), PAIR, &target, &stop).is_empty());
    }
}
