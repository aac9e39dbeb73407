//! A search on a path of a target: what shares of a maximum are shares of.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumbline_experiment::{Sought, Timing, Treatment, WorkloadKind};
use plumbline_record::{LoadObservation as Seen, LoadResult, Maximum, SearchOutcome, SearchRecord};

use super::{FindMaxError, SearchPlan, SearchStep, Searched, SearchedLoad, at_rate, find_max};
use crate::agent::TrialError;
use crate::exercise::LoadExercise;
use crate::gate;
use crate::settings::Settings;
use crate::target::{Target, ends_of};
use crate::trial;

/// Warm-up of a trial of a search, nanoseconds: connections are opened before
/// it, so it only has to fill the path.
const WARM_UP_NS: u64 = 100_000_000;

/// Trials of a search that may end without a result, as when an agent is killed,
/// before the search does.
const FAILED_TRIALS: usize = 3;

/// Why a maximum was not found.
#[derive(Debug, thiserror::Error)]
pub enum SearchFailure {
    /// A trial could not be run, or the search contradicts itself.
    #[error("the maximum of `{workload}` on {network} could not be searched: {problem}")]
    NotSearched {
        /// Which workload.
        workload: String,
        /// On which network.
        network: String,
        /// What went wrong.
        problem: String,
    },
    /// There is none to be had.
    #[error(
        "`{workload}` has no maximum with {limit} on {network}: {why}; give a `rate` instead of a `load`"
    )]
    NoMaximum {
        /// Which workload.
        workload: String,
        /// On which network.
        network: String,
        /// What it had to hold.
        limit: String,
        /// What was found.
        why: &'static str,
    },
    /// Somebody ended the search before its time.
    #[error("the search for the maximum of `{workload}` on {network} was interrupted")]
    Interrupted {
        /// Which workload.
        workload: String,
        /// On which network.
        network: String,
    },
}

/// Searches the maximum of a workload on the baseline's path, with fresh
/// agents in each trial. Gives what the search saw, however it ended: a search
/// without a maximum is what one wants to look at. [`maximum`] tells what
/// came of it. `seen` is told of each trial that has ended.
///
/// # Errors
///
/// When the search contradicts itself, so that no trial was run.
pub fn search_path(
    sought: &Sought,
    plan: &SearchPlan,
    target: &mut dyn Target,
    seed: u64,
    settings: &Settings,
    interrupted: &AtomicBool,
    seen: &mut dyn FnMut(&plumbline_record::SearchTrial),
) -> Result<SearchRecord, SearchFailure> {
    let Sought {
        treatment,
        workload,
        ..
    } = sought;
    let mut failed = Vec::new();
    let mut measure = |step: &SearchStep| {
        let load = LoadExercise {
            workload: at_rate(workload, step.rate),
            timing: Timing {
                warm_up_ns: WARM_UP_NS,
                measure_ns: step.measure.as_nanos() as u64,
                drain_ns: step.drain.as_nanos() as u64,
            },
        };
        let seed = seed.wrapping_add(step.index as u64);
        loop {
            match one(treatment, &load, target, seed, settings, interrupted) {
                Err(error @ (TrialError::Agent { .. } | TrialError::Ended { .. }))
                    if failed.len() < FAILED_TRIALS =>
                {
                    failed.push(error.to_string());
                }
                result => return result,
            }
        }
    };
    let searched = find_max(plan, &settings.thresholds, &mut measure, seen);
    let (outcome, trials) = match searched {
        Ok(Searched { outcome, trials }) => (outcome, trials),
        Err(FindMaxError::Trial { error, trials }) => {
            failed.push(error.to_string());
            (SearchOutcome::Failed, trials)
        }
        Err(FindMaxError::Search(error)) => {
            return Err(not_searched(
                &workload.name,
                &treatment.scene.name(),
                &error.to_string(),
            ));
        }
    };
    Ok(SearchRecord {
        workload: workload.name.clone(),
        scene: treatment.scene.clone(),
        limit: sought.limit,
        goal: plan.recorded_goal(),
        outcome,
        trials,
        failed,
    })
}

/// The maximum that a search found.
///
/// # Errors
///
/// When there is none; the error says why.
pub fn maximum(record: &SearchRecord) -> Result<Maximum, SearchFailure> {
    let none = |why| {
        Err(SearchFailure::NoMaximum {
            workload: record.workload.clone(),
            network: record.scene.name().into_owned(),
            limit: record.limit.to_string(),
            why,
        })
    };
    match record.outcome {
        SearchOutcome::Found {
            lower_bound,
            upper_bound,
            conditional_throughput,
            generator_limited,
        } => Ok(Maximum {
            workload: record.workload.clone(),
            scene: record.scene.clone(),
            limit: record.limit,
            rate: conditional_throughput,
            lower_bound,
            upper_bound,
            generator_limited,
            trials: record.trials.len() as u32,
        }),
        SearchOutcome::BrokenPath => none("even the least load does not hold it"),
        SearchOutcome::Unfit { .. } => none("a low load is not carried without loss"),
        SearchOutcome::OutOfTime => none("the bounds did not come close enough in time"),
        SearchOutcome::Interrupted => Err(SearchFailure::Interrupted {
            workload: record.workload.clone(),
            network: record.scene.name().into_owned(),
        }),
        SearchOutcome::Failed => {
            let problem = record.failed.last().map_or("a trial failed", |it| it);
            Err(not_searched(
                &record.workload,
                &record.scene.name(),
                problem,
            ))
        }
    }
}

/// One trial with fresh agents; what the path's own checks say ends the search.
fn one(
    treatment: &Treatment,
    load: &LoadExercise,
    target: &mut dyn Target,
    seed: u64,
    settings: &Settings,
    interrupted: &AtomicBool,
) -> Result<Option<SearchedLoad>, TrialError> {
    let ends = ends_of(treatment, [0, 1]);
    target.ready(treatment, &ends)?;
    let path = target.stage(treatment, ends)?;
    // What loads are shares of is what the path carries alone.
    let Some(seen) = trial::run_alone(&*path, load, seed, settings, interrupted)? else {
        return Ok(None);
    };
    let Some(both) = seen.load() else {
        unreachable!("a load saw something else")
    };
    let disturbed = gate::disturbed(&seen.common, both, &settings.thresholds);
    let load = delivered(load.workload.kind, both, seen.common.softnet.dropped);
    Ok(Some(SearchedLoad { load, disturbed }))
}

/// Of messages without answers, those count that the receiver saw (N-13). Of requests, a
/// packet that a full backlog dropped is one that was not answered in time.
fn delivered(kind: WorkloadKind, seen: &Seen, dropped: u64) -> LoadResult {
    let received = seen.serve.datagrams.map(|d| d.received);
    let mut load = seen.load.clone();
    if let (WorkloadKind::Datagram, Some(received)) = (kind, received) {
        load.completed = received.min(load.planned);
    }
    if kind.is_answered() {
        load.completed = load.completed.saturating_sub(dropped);
    }
    load
}

fn not_searched(workload: &str, network: &str, problem: &str) -> SearchFailure {
    SearchFailure::NotSearched {
        workload: workload.to_owned(),
        network: network.to_owned(),
        problem: problem.to_owned(),
    }
}

impl SearchPlan {
    /// A search for a maximum that loads are shares of: known to 5 %, from
    /// five trials at each bound, in at most ten minutes. They are as long as
    /// those of the run, but from half a second to one. All treatments carry
    /// the same share, so an error of the maximum moves all of them.
    pub fn for_shares(sought: &Sought, most: f64) -> Self {
        let trial = sought.treatment.timing.measure_ns as f64 / 1e9;
        let mut plan = Self::new(sought.limit, most).with_trials_of(trial.clamp(0.5, 1.0));
        plan.goal.duration_sum = 5.0 * plan.goal.final_trial;
        plan.goal.width = plan.goal.loss_ratio.max(0.05);
        plan.bounds.time_limit = Duration::from_secs(600).as_secs_f64();
        plan
    }
}

#[cfg(test)]
mod tests {
    use plumbline_experiment::{Arrival, Experiment, Scene};

    use super::*;
    use crate::planted::{Act, MS, PlantedTarget, healthy};

    const MOST: f64 = 3_000.0;

    fn sought() -> Sought {
        let text = "name = \"t\"\n[factors]\nnetwork = \"host\"\n[[workload]]\nkind = \"rr\"\n\
                    load = \"50%\"\nlimit = \"p99<1ms\"\n";
        let experiment = Experiment::parse(text, "t.toml").unwrap();
        let draft = experiment.draft(1, &|asked| Ok(vec![Scene::of(asked.network.word())]));
        draft.unwrap().sought[0].clone()
    }

    fn search(target: &mut PlantedTarget, stop: bool) -> Result<SearchRecord, SearchFailure> {
        let sought = sought();
        let settings = Settings {
            now: || "2026-01-31T23:59:59Z".to_owned(),
            ..Settings::anywhere()
        };
        let plan = SearchPlan::for_shares(&sought, MOST);
        let stop = AtomicBool::new(stop);
        search_path(&sought, &plan, target, 7, &settings, &stop, &mut |_| ())
    }

    #[test]
    fn each_trial_has_agents_of_its_own_and_is_kept() {
        let mut noisy = healthy();
        noisy.common.machines[0].steal_ns = 400 * MS;
        let mut target = PlantedTarget::new([Act::Measure(Box::new(noisy))]);
        let record = search(&mut target, false).unwrap();
        assert_eq!(target.left(), 0);
        // The one that was disturbed decided nothing.
        assert_eq!(record.trials[0].disturbed.len(), 1);
        assert_eq!(record.trials[0].purpose, record.trials[1].purpose);
        assert_eq!(record.trials[0].rate, record.trials[1].rate);
        assert!(record.trials[1..].iter().all(|trial| trial.held));
        let maximum = maximum(&record).unwrap();
        assert_eq!(
            (maximum.rate, maximum.generator_limited, maximum.upper_bound),
            (MOST, false, None)
        );
        assert_eq!(maximum.trials as usize, record.trials.len());
        assert_eq!(
            (record.workload.as_str(), &*record.scene.name()),
            ("rr", "host")
        );
    }

    #[test]
    fn a_path_that_is_not_the_networks_gives_no_maximum() {
        let mut target = PlantedTarget::new([]);
        target.wrong_path = Some("no packet on vxlan1".to_owned());
        let record = search(&mut target, false).unwrap();
        assert_eq!(record.outcome, SearchOutcome::Failed);
        let error = maximum(&record).unwrap_err().to_string();
        assert!(error.contains("no packet on vxlan1"), "{error}");
    }

    #[test]
    fn a_failed_trial_is_told_and_run_again_until_they_are_too_many() {
        let fails = |times| PlantedTarget::new((0..times).map(|_| Act::Fail("out of files")));
        let record = search(&mut fails(FAILED_TRIALS), false).unwrap();
        assert_eq!(record.failed.len(), FAILED_TRIALS);
        assert!(record.failed[0].contains("out of files"), "{record:?}");
        assert!(maximum(&record).is_ok());
        let record = search(&mut fails(FAILED_TRIALS + 1), false).unwrap();
        let error = maximum(&record).unwrap_err();
        assert!(error.to_string().contains("out of files"), "{error}");
    }

    #[test]
    fn an_interrupted_search_gives_no_maximum() {
        let record = search(&mut PlantedTarget::new([]), true).unwrap();
        assert_eq!(record.outcome, SearchOutcome::Interrupted);
        let error = maximum(&record).unwrap_err().to_string();
        assert!(error.contains("was interrupted"), "{error}");
    }

    #[test]
    fn a_limit_out_of_reach_says_what_to_do() {
        let slow = || {
            let mut slow = healthy();
            slow.load.load.latency = crate::planted::histogram([5 * MS; 5000]);
            slow.load.load.arrival = Arrival::Poisson { rate: 1_000.0 };
            Act::Measure(Box::new(slow))
        };
        let record = search(&mut PlantedTarget::new([slow(), slow(), slow()]), false).unwrap();
        let error = maximum(&record).unwrap_err().to_string();
        assert!(
            error.contains("even the least load") && error.contains("`rate`"),
            "{error}"
        );
    }

    #[test]
    fn of_messages_those_count_that_arrived() {
        let mut seen = healthy().load;
        seen.serve.datagrams = Some(plumbline_record::DatagramCounts {
            received: 4_000,
            ..Default::default()
        });
        let completed = |kind, dropped| delivered(kind, &seen, dropped).completed;
        assert_eq!(completed(WorkloadKind::Rr, 0), 5_000);
        assert_eq!(completed(WorkloadKind::Rr, 7), 4_993);
        assert_eq!(completed(WorkloadKind::Datagram, 7), 4_000);
    }
}
