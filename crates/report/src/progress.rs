//! What a run says while it runs.

use std::path::Path;
use std::time::Duration;

use plumbline_experiment::{Limit, Pairing, Sought, Treatment};
use plumbline_record::{GateFailure, Run, SearchTrial, Trial, TrialStatus};

use crate::analysis::account;
use crate::{describe, number};

/// `maximum of rr with p99<1ms on vxlan: searching, about a minute`.
pub fn searching(sought: &Sought) -> String {
    format!("{}: searching, about a minute", maximum(sought))
}

/// The maximum, in requests per second.
pub fn found(sought: &Sought, rate: f64) -> String {
    format!("{}: {}", maximum(sought), number::rate(rate.round()))
}

fn maximum(sought: &Sought) -> String {
    let (workload, limit) = (&sought.workload.name, sought.limit);
    let network = sought.treatment.scene.name();
    format!("maximum of {workload} with {limit} on {network}")
}

/// `  1,667/s missed: p99 12.3 ms, 0.4 % not answered in time`, to show where a
/// low maximum comes from.
pub fn tried(limit: Limit, trial: &SearchTrial) -> String {
    let verdict = if trial.held { "held" } else { "missed" };
    let disturbed = if trial.disturbed.is_empty() {
        ""
    } else {
        ", disturbed"
    };
    let latency = match limit {
        Limit::Latency { quantile, .. } => format!(
            ": {} {}",
            number::percentile_name(quantile),
            number::duration(trial.load.latency.value_at(quantile) as f64)
        ),
        Limit::Loss { .. } => String::new(),
    };
    let lost = if trial.loss_ratio > 0.0 {
        let share = number::percent(trial.loss_ratio);
        format!(", {share} not answered in time")
    } else {
        String::new()
    };
    let rate = number::rate(trial.rate.round());
    format!("  {rate} {verdict}{disturbed}{latency}{lost}")
}

/// `3 pairs of 3 nodes in 3 rounds, 10 blocks: about 2 min`.
pub fn pairs(pairing: &Pairing, at_once: bool, blocks: usize, estimate: Duration) -> String {
    let how = match (pairing.rounds(), at_once) {
        (_, false) if pairing.pairs() > 1 => {
            "one after the other, because they share a kernel".to_owned()
        }
        (..=1, _) => "all at once".to_owned(),
        (rounds, _) => format!("in {rounds} rounds"),
    };
    let some = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        several => format!("{several} {what}s"),
    };
    format!(
        "{} of {} {how}, {}: about {}",
        some(pairing.pairs(), "pair"),
        some(pairing.nodes.len(), "node"),
        some(blocks, "block"),
        number::long_duration(estimate)
    )
}

/// `making paths with up to 30,000 services, which can take minutes`.
pub fn services(most: u32) -> String {
    let most = number::count(most.into());
    format!("making paths with up to {most} services, which can take minutes")
}

/// `To go on: plumbline run --resume runs/tour-1`, by the command that holds the run against
/// the same again, with the target where it has to be named.
pub fn to_go_on(command: &str, target: Option<&str>, run: &Run, directory: &Path) -> String {
    let directory = directory.display();
    let allowed = match run.plan.foreign_commands().is_empty() {
        true => "",
        false => " --allow-commands",
    };
    match target {
        None => format!("To go on: {command} --resume {directory}{allowed}"),
        Some(target) => format!(
            "To go on: {command} --target {target} --resume {directory}{allowed}, with the \
             target's other flags"
        ),
    }
}

/// `vxlan rr, block 3: failed, no such device`; `None` of a trial that counts.
pub fn ended(treatment: &Treatment, of: &Trial) -> Option<String> {
    let what = trial(treatment, of);
    match &of.status {
        TrialStatus::Valid => None,
        TrialStatus::Invalid { gates } => {
            let why: Vec<String> = gates.iter().map(gate).collect();
            Some(format!("{what}: not counted, {}", why.join("; ")))
        }
        TrialStatus::Failed { error } => Some(format!("{what}: failed, {error}")),
    }
}

/// `vxlan rr from a to b, block 3`.
fn trial(treatment: &Treatment, trial: &Trial) -> String {
    let between = trial.pair.as_ref();
    let between = between.map(|pair| format!(" from {} to {}", pair.client, pair.server));
    format!(
        "{} {}{}, block {}",
        treatment.label,
        treatment.task.name(),
        between.unwrap_or_default(),
        trial.block + 1
    )
}

/// `rr in turns, block 3: not counted, disturbed by steal: 2 %, allowed 0.5 %`, of
/// treatments that took turns; `None` when all count. What not all of them failed with
/// is said with their names, and with figures where these are the same.
pub fn turns(members: &[(&Treatment, &Trial)]) -> Option<String> {
    // By kind, who failed so, and in which words.
    let mut reasons: Vec<(String, Vec<(String, &str)>)> = Vec::new();
    for (treatment, trial) in members {
        let own = match &trial.status {
            TrialStatus::Valid => Vec::new(),
            TrialStatus::Invalid { gates } => {
                let both = |it| (account::reason_of(it).0, gate(it));
                gates.iter().map(both).collect()
            }
            TrialStatus::Failed { error } => {
                let said = format!("failed, {error}");
                vec![(said.clone(), said)]
            }
        };
        for (kind, words) in own {
            let one = (words, treatment.label.as_str());
            match reasons.iter_mut().find(|it| it.0 == kind) {
                Some((_, found)) => found.push(one),
                None => reasons.push((kind, vec![one])),
            }
        }
    }
    let (treatment, trial) = members.first().filter(|_| !reasons.is_empty())?;
    let said = reasons.into_iter().map(|(kind, found)| {
        let (words, labels): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        let is_same = words.iter().all(|it| *it == words[0]);
        let reason = if is_same { &words[0] } else { &kind };
        if labels.len() == members.len() {
            return reason.clone();
        }
        format!("{}: {reason}", describe::some(labels))
    });
    let said: Vec<String> = said.collect();
    Some(format!(
        "{} in turns, block {}: not counted, {}",
        treatment.task.name(),
        trial.block + 1,
        said.join("; ")
    ))
}

/// A gate that a trial failed, in words with its figures.
pub fn gate(failure: &GateFailure) -> String {
    let duration = |ns: &u64| number::duration(*ns as f64);
    let count = |count: &u64| number::count(*count as f64);
    match failure {
        GateFailure::SendLag {
            quantile,
            lag_ns,
            limit_ns,
        } => format!(
            "sent {} late at {}, allowed {}",
            duration(lag_ns),
            number::percentile_name(*quantile),
            duration(limit_ns)
        ),
        GateFailure::AchievedRate { planned, achieved } => {
            let (achieved, planned) = (count(achieved), count(planned));
            format!("sent {achieved} of {planned} planned requests in time")
        }
        GateFailure::Disturbed { by, amount, limit } => {
            let by = describe::clean(by);
            match *limit > 0.0 {
                true => {
                    let (amount, limit) = (number::percent(*amount), number::percent(*limit));
                    format!("disturbed by {by}: {amount}, allowed {limit}")
                }
                false => format!("disturbed by {by} ({amount:.0})"),
            }
        }
        GateFailure::WrongPath { detail } => format!("wrong path: {}", describe::clean(detail)),
        GateFailure::NotEnforced { detail } => {
            format!("policies not enforced: {}", describe::clean(detail))
        }
        GateFailure::NoChange { detail } => {
            format!("change not seen: {}", describe::clean(detail))
        }
        GateFailure::NoNetwork {
            pods,
            launched,
            detail,
        } => format!(
            "{} of {} pods without network: {}",
            count(pods),
            count(launched),
            describe::clean(detail)
        ),
        GateFailure::Unwell { detail } => {
            format!("not well before the command: {}", describe::clean(detail))
        }
        GateFailure::PathFault { detail } => format!("path fault: {}", describe::clean(detail)),
        GateFailure::ConntrackFull {
            namespace,
            dropped,
            connections,
            max,
        } => format!(
            "{} tracked {} of at most {} connections and dropped {}",
            describe::clean(namespace),
            count(connections),
            count(max),
            count(dropped)
        ),
        GateFailure::IdleNeighbour => "the neighbour did nothing".to_owned(),
        GateFailure::NoSteadyState {
            at,
            before_ns,
            after_ns,
        } => format!(
            "no steady state: {} before and {} after {} of the window",
            duration(before_ns),
            duration(after_ns),
            number::percent(*at)
        ),
        GateFailure::GeneratorBusy { share, limit } => format!(
            "sender {} busy, allowed {}",
            number::percent(*share),
            number::percent(*limit)
        ),
        GateFailure::Errors { failed, planned } => {
            let (failed, planned) = (count(failed), count(planned));
            format!("{failed} of {planned} requests failed or unanswered")
        }
    }
}
