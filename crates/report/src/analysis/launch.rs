//! How long pods took until they had their network: over pods, and over trials.

use std::iter;

use plumbline_record::{
    LaunchObservation, LimiterWait, Observation, PodLaunch, READY, SANDBOX, Trial,
};
use plumbline_stats::order::{MedianOfRuns, median_of_runs, percentile_ranks};

use super::LEVEL;

/// What is told of the pods of all trials.
const SHARES: [f64; 3] = [0.5, 0.9, 0.99];

/// What the pods of a treatment showed, over its valid trials.
#[derive(Clone, Debug)]
pub struct LaunchSummary {
    /// Pods that were launched.
    pub pods: usize,
    /// Those of them that had their network.
    pub up: usize,
    /// Those that a cluster showed as ready.
    pub ready: usize,
    /// Those of which all is there: packets had passed both ways, nothing of the pod was left at
    /// its end, where a cluster placed it, that showed it as ready, and it has each phase that
    /// another pod was seen to have: accepted, scheduled, its namespace, its sandbox, running.
    pub whole: usize,
    /// Why it was not seen when a cluster's nodes called their network's plugins.
    pub calls_unseen: Option<String>,
    /// What requests waited in the rate limiters of the network's agents, by their kind.
    pub limiter: Vec<LimiterWait>,
    /// The stretches of their lives, in order, and the whole until the network was up.
    pub times: Vec<LaunchTimes>,
    /// The steps by which a cluster placed them, the network attached them, and a cluster
    /// showed them, in order.
    pub steps: Vec<LaunchTimes>,
    /// The steps by which they ended, in order.
    pub release_steps: Vec<LaunchTimes>,
    /// The pod that half of them were no slower than.
    pub middle: Option<NotedPod>,
    /// The slowest of those that had their network.
    pub slowest: Option<NotedPod>,
}

/// How long one stretch took.
#[derive(Clone, Debug)]
pub struct LaunchTimes {
    /// Which: a stretch, or a step of the network.
    pub name: String,
    /// One for each share of the pods that is told.
    pub quantiles: Vec<LaunchQuantile>,
    /// The longest, nanoseconds.
    pub longest_ns: Option<f64>,
}

/// What a share of the pods does not exceed, nanoseconds. Pods that did not reach it count
/// as slower than all others.
#[derive(Clone, Copy, Debug)]
pub struct LaunchQuantile {
    /// The share.
    pub share: f64,
    /// The value over the pods of all trials.
    pub ns: Option<f64>,
    /// Where it lies at 95 % by these pods, as if each were independent of the others: it
    /// is an interval within the run.
    pub low_ns: Option<f64>,
    /// The other end.
    pub high_ns: Option<f64>,
    /// The median over trials of each trial's own value, with its interval.
    pub over_trials: Option<MedianOfRuns>,
}

/// One pod, and where it is found.
#[derive(Clone, Debug)]
pub struct NotedPod {
    /// Block of its trial.
    pub block: u32,
    /// Its position in the launch, from 0.
    pub position: usize,
    /// What was seen of it.
    pub pod: PodLaunch,
}

type Time = fn(&PodLaunch) -> Option<u64>;

/// Steps of a pod in order, and how long each took, nanoseconds.
type Steps = fn(&PodLaunch) -> Vec<(&str, u64)>;

/// The stretches of a pod's life, and what is made of them.
const TIMES: [(&str, Time); 11] = [
    ("network_up", PodLaunch::up_ns),
    ("lag", |pod| Some(pod.begun_ns)),
    ("namespace", |pod| {
        Some(pod.namespace_ns?.saturating_sub(pod.placed_ns()))
    }),
    ("attach", PodLaunch::attach_ns),
    ("add", PodLaunch::add_ns),
    ("program", |pod| {
        Some(pod.probed_ns?.saturating_sub(pod.attached_ns()?))
    }),
    ("first_out", |pod| {
        Some(pod.first_out_ns?.saturating_sub(pod.probed_ns?))
    }),
    ("first_in", |pod| {
        Some(pod.first_in_ns?.saturating_sub(pod.probed_ns?))
    }),
    ("ready", PodLaunch::ready_ns),
    ("release", PodLaunch::release_ns),
    ("watches_apart", |pod| pod.watches_apart_ns),
];

impl LaunchSummary {
    /// `None` where no pods were launched.
    pub(crate) fn new(trials: &[(&Trial, &Observation)]) -> Option<Self> {
        let launches: Vec<(u32, &LaunchObservation)> = trials
            .iter()
            .filter_map(|(trial, seen)| Some((trial.block, seen.pods()?)))
            .collect();
        if launches.is_empty() {
            return None;
        }
        let times = TIMES.map(|(name, time)| LaunchTimes::new(name, &launches, time));
        let mut up: Vec<(u64, NotedPod)> = launches.iter().flat_map(|it| pods_up(*it)).collect();
        up.sort_by_key(|(ns, _)| *ns);
        let count = |is_one: fn(&PodLaunch) -> bool| {
            let pods = launches.iter().flat_map(|(_, seen)| &seen.pods);
            pods.filter(|pod| is_one(pod)).count()
        };
        let phases = seen_phases(&launches);
        let pods = launches.iter().flat_map(|(_, seen)| &seen.pods);
        let whole = pods.filter(|pod| is_whole(pod, &phases)).count();
        let noted = |at: usize| up.get(at).map(|(_, pod)| pod.clone());
        Some(Self {
            pods: launches.iter().map(|(_, seen)| seen.pods.len()).sum(),
            up: up.len(),
            ready: count(|pod| pod.ready_ns().is_some()),
            whole,
            calls_unseen: launches.iter().find_map(|it| it.1.calls_unseen.clone()),
            limiter: limiter(&launches),
            times: times.into(),
            steps: steps(&launches, steps_of_start),
            release_steps: steps(&launches, steps_of_end),
            middle: noted(up.len().div_ceil(2).saturating_sub(1)),
            slowest: noted(up.len().saturating_sub(1)),
        })
    }

    /// One of its times.
    pub fn time(&self, name: &str) -> Option<&LaunchTimes> {
        self.times.iter().find(|one| one.name == name)
    }
}

/// The phases of a start that a cluster shows, or its nodes: not all of them do.
const PHASES: [&str; 6] = [
    "accepted",
    "scheduled",
    "namespace",
    SANDBOX,
    "running",
    READY,
];

fn has_phase(pod: &PodLaunch, phase: &str) -> bool {
    let mut steps = pod.placed.iter().chain(&pod.steps).chain(&pod.shown);
    match phase {
        "namespace" => pod.namespace_ns.is_some(),
        _ => steps.any(|it| it.step == phase),
    }
}

/// Those that some pod was seen to have.
fn seen_phases(launches: &[(u32, &LaunchObservation)]) -> Vec<&'static str> {
    let has = |phase: &&str| {
        let mut pods = launches.iter().flat_map(|(_, seen)| &seen.pods);
        pods.any(|pod| has_phase(pod, phase))
    };
    PHASES.into_iter().filter(has).collect()
}

fn is_whole(pod: &PodLaunch, phases: &[&str]) -> bool {
    let is_shown = pod.placed.is_empty() || pod.ready_ns().is_some();
    let is_over = pod.up_ns().is_some() && is_shown && pod.release_ns().is_some();
    is_over && phases.iter().all(|phase| has_phase(pod, phase))
}

/// The sums over all trials.
fn limiter(launches: &[(u32, &LaunchObservation)]) -> Vec<LimiterWait> {
    let mut sums: Vec<LimiterWait> = Vec::new();
    for wait in launches.iter().flat_map(|(_, seen)| &seen.limiter) {
        match sums.iter_mut().find(|it| it.call == wait.call) {
            Some(sum) => {
                sum.requests += wait.requests;
                sum.waited_ns += wait.waited_ns;
            }
            None => sums.push(wait.clone()),
        }
    }
    sums
}

/// The pods of a trial that had their network, and after how long.
fn pods_up((block, seen): (u32, &LaunchObservation)) -> impl Iterator<Item = (u64, NotedPod)> {
    let pods = seen.pods.iter().enumerate();
    pods.filter_map(move |(position, pod)| {
        let noted = NotedPod {
            block,
            position,
            pod: pod.clone(),
        };
        Some((pod.up_ns()?, noted))
    })
}

/// Each step, in the order of a pod that has most of them. A plugin that is called twice has
/// two.
fn steps(launches: &[(u32, &LaunchObservation)], steps_of: Steps) -> Vec<LaunchTimes> {
    let pods = launches.iter().flat_map(|(_, seen)| &seen.pods);
    let names = |pod| steps_of(pod).iter().map(|it| it.0.to_owned()).collect();
    let Some(longest) = pods.map(names).max_by_key(Vec::<String>::len) else {
        return Vec::new();
    };
    let step = |(at, name): (usize, &String)| {
        let before = longest[..at].iter().filter(|it| *it == name).count();
        let took = |pod: &PodLaunch| {
            let mut found = steps_of(pod).into_iter().filter(|it| it.0 == *name);
            Some(found.nth(before)?.1)
        };
        LaunchTimes::new(name, launches, took)
    };
    longest.iter().enumerate().map(step).collect()
}

fn steps_of_start(pod: &PodLaunch) -> Vec<(&str, u64)> {
    let steps = pod.parts().into_iter().filter(|it| it.kind.is_step());
    steps.map(|it| (it.name, it.to_ns - it.from_ns)).collect()
}

fn steps_of_end(pod: &PodLaunch) -> Vec<(&str, u64)> {
    let Some(release) = &pod.release else {
        return Vec::new();
    };
    let ends = release.steps.iter().map(|it| it.ended_ns);
    let begins = iter::once(release.begun_ns).chain(ends);
    let steps = release.steps.iter().zip(begins);
    let took = steps.map(|(it, from_ns)| (&*it.step, it.ended_ns.saturating_sub(from_ns)));
    took.collect()
}

impl LaunchTimes {
    fn new(
        name: &str,
        launches: &[(u32, &LaunchObservation)],
        time: impl Fn(&PodLaunch) -> Option<u64>,
    ) -> Self {
        let of_trial = |(_, seen): &(u32, &LaunchObservation)| in_order(seen, &time);
        let by_trial: Vec<Vec<f64>> = launches.iter().map(of_trial).collect();
        let mut all: Vec<f64> = by_trial.concat();
        all.sort_unstable_by(f64::total_cmp);
        let quantile = |share: f64| {
            let ranks = percentile_ranks(all.len() as u64, share, LEVEL);
            let ranked = |rank: Option<u64>| reached(*all.get(rank? as usize - 1)?);
            let of_trials: Vec<f64> = by_trial.iter().filter_map(|one| at(one, share)).collect();
            LaunchQuantile {
                share,
                ns: at(&all, share),
                low_ns: ranked(ranks.low),
                high_ns: ranked(ranks.high),
                over_trials: median_of_runs(&of_trials, LEVEL),
            }
        };
        Self {
            name: name.to_owned(),
            quantiles: SHARES.map(quantile).into(),
            longest_ns: all.iter().copied().rfind(|ns| ns.is_finite()),
        }
    }

    /// What half of the pods do not exceed.
    pub fn middle_ns(&self) -> Option<f64> {
        self.quantiles.first()?.ns
    }
}

/// One time of all pods of a trial, by rising length.
fn in_order(seen: &LaunchObservation, time: &impl Fn(&PodLaunch) -> Option<u64>) -> Vec<f64> {
    let of_pod = |pod: &PodLaunch| time(pod).map_or(f64::INFINITY, |ns| ns as f64);
    let mut all: Vec<f64> = seen.pods.iter().map(of_pod).collect();
    all.sort_unstable_by(f64::total_cmp);
    all
}

/// The smallest of some sorted values that a share of them does not exceed.
fn at(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    reached(*sorted.get(rank.max(1) - 1)?)
}

fn reached(ns: f64) -> Option<f64> {
    ns.is_finite().then_some(ns)
}

fn middle_of(observation: &Observation, time: Time) -> Option<f64> {
    at(&in_order(observation.launch()?, &time), 0.5)
}

/// From the intended start of a pod until packets had passed both ways, of the pods of a
/// trial the median, nanoseconds.
pub(crate) fn network_up_ns(observation: &Observation) -> Option<f64> {
    middle_of(observation, PodLaunch::up_ns)
}

/// The same of the slowest pod; of one that never had its network, how long it was waited
/// for.
pub(crate) fn slowest_up_ns(observation: &Observation) -> Option<f64> {
    let seen = observation.launch()?;
    let up = |pod: &PodLaunch| pod.up_ns().unwrap_or(seen.limit_ns);
    seen.pods.iter().map(up).max().map(|ns| ns as f64)
}

/// How long the network took to attach a pod.
pub(crate) fn attach_ns(observation: &Observation) -> Option<f64> {
    middle_of(observation, PodLaunch::attach_ns)
}

/// From there until packets had passed both ways.
pub(crate) fn first_packets_ns(observation: &Observation) -> Option<f64> {
    middle_of(observation, PodLaunch::first_packets_ns)
}

/// From the intended end of a pod until nothing of it was left.
pub(crate) fn release_ns(observation: &Observation) -> Option<f64> {
    middle_of(observation, PodLaunch::release_ns)
}
