//! A search for the highest rate that holds a limit, as it goes and as it ends.

use std::net::SocketAddr;

use plumbline_experiment::{Limit, Workload};
use plumbline_record::{Floor, SearchGoal, SearchOutcome, SearchPurpose, SearchTrial};
use serde_json::{Value, json};

use super::json::floor_json;
use crate::latency::latency_json;
use crate::number;

/// What is searched for.
#[derive(Clone, Debug)]
pub struct Search {
    /// What the rate has to hold.
    pub limit: Limit,
    /// How sure that has to be.
    pub goal: SearchGoal,
    /// The first rate, per second.
    pub least_rate: f64,
    /// When the search gives up, seconds of trials.
    pub time_limit_s: f64,
    /// Seed of the first trial's arrivals; each further one has the next.
    pub seed: u64,
    /// What the generator measures where there is no network (L-13).
    pub floor: Option<Floor>,
}

impl Search {
    /// The head of the table.
    pub fn heading(&self, workload: &Workload, target: SocketAddr) -> String {
        format!(
            "{} to {}: the highest rate with {}, trials of {} s\n{:<7}{:>12}{:>8}{:>11}{:>12}\n",
            workload.name,
            target,
            self.limit,
            self.goal.final_trial_ns as f64 / 1e9,
            "",
            "rate",
            "length",
            "lost",
            percentile(self.limit),
        )
    }

    /// One trial as a line of the table.
    pub fn line(&self, trial: &SearchTrial) -> String {
        let latency = number::duration(trial.load.latency.value_at(quantile(self.limit)) as f64);
        let verdict = match (trial.held, trial.generator.is_empty()) {
            (true, _) => "held",
            (false, true) => "missed",
            (false, false) => "missed, by the generator",
        };
        format!(
            "{:<7}{:>10}/s{:>6.1} s{:>9.4} %{:>12}  {verdict}\n",
            purpose(trial.purpose),
            number::count(trial.rate.round()),
            trial.duration_ns as f64 / 1e9,
            trial.loss_ratio * 100.0,
            number::plain(&latency),
        )
    }

    /// What came out, in sentences, with the remedy where there is no number.
    pub fn conclusion(&self, outcome: SearchOutcome, trials: &[SearchTrial]) -> String {
        let limit = self.limit;
        let rate = |value: f64| number::count(value.round());
        match outcome {
            SearchOutcome::Interrupted => {
                format!("interrupted after {} trials: no number", trials.len())
            }
            SearchOutcome::Failed => format!(
                "no number: after {} trials the next one could not be run",
                trials.len()
            ),
            SearchOutcome::Found {
                lower_bound,
                upper_bound,
                conditional_throughput,
                generator_limited,
            } => {
                let bounds = match upper_bound {
                    Some(upper) => format!("{} held, {} did not", rate(lower_bound), rate(upper)),
                    None => format!(
                        "{} held, and more was not offered: raise --up-to",
                        rate(lower_bound)
                    ),
                };
                let whose = if generator_limited {
                    "\nthe generator was the limit, not the network: more --threads or --spin may go higher"
                } else {
                    ""
                };
                format!(
                    "maximum with {limit}: {}/s ({bounds}; {} trials){whose}",
                    rate(conditional_throughput),
                    trials.len()
                )
            }
            SearchOutcome::BrokenPath if is_ours(trials) => format!(
                "no number: {limit} does not hold even at {}/s, because the generator itself was late; \
                 quieten the machine, or try --spin",
                rate(self.least_rate)
            ),
            SearchOutcome::BrokenPath => format!(
                "no number: {limit} does not hold even at {}/s; the path is broken, the limit out of reach, \
                 or the rate too high to begin with: longer --trial begins lower",
                rate(self.least_rate)
            ),
            SearchOutcome::Unfit { rate: low } => format!(
                "no number: at {}/s, a small part of what the path carries, not every request was answered within {limit}; \
                 such a path has no lossless rate, look for the loss first",
                rate(low)
            ),
            SearchOutcome::OutOfTime => format!(
                "no number: after {:.0} s of trials the bounds are not within {} %; \
                 quieten the machine, or allow a larger --width",
                self.time_limit_s,
                self.goal.width * 100.0
            ),
        }
    }

    /// What scripts rely on.
    pub fn json(&self, outcome: SearchOutcome, trials: &[SearchTrial]) -> Value {
        let mut value = json!({
            "limit": self.limit,
            "goal": self.goal,
            "seed": self.seed,
            "floor_ns": self.floor.map(floor_json),
            "lower_bound": null,
            "upper_bound": null,
            "conditional_throughput": null,
            "generator_limited": null,
            "verdict": self.conclusion(outcome, trials),
            "trials": trials.iter().map(trial_json).collect::<Vec<_>>(),
        });
        if let Value::Object(fields) = json!(outcome) {
            for (key, field) in fields {
                value[key] = field;
            }
        }
        value
    }
}

fn purpose(purpose: SearchPurpose) -> &'static str {
    match purpose {
        SearchPurpose::Path => "path",
        SearchPurpose::Ramp => "ramp",
        SearchPurpose::Floor => "floor",
        SearchPurpose::Search => "search",
    }
}

/// The percentile that is limited; the 99th where losses are.
fn quantile(limit: Limit) -> f64 {
    match limit {
        Limit::Latency { quantile, .. } => quantile,
        Limit::Loss { .. } => 0.99,
    }
}

fn percentile(limit: Limit) -> String {
    number::percentile_name(quantile(limit))
}

/// Whether most misses are the generator's.
fn is_ours(trials: &[SearchTrial]) -> bool {
    let misses = trials.iter().filter(|trial| !trial.held);
    let ours = misses.clone().filter(|trial| !trial.generator.is_empty());
    ours.count() * 2 > misses.count()
}

fn trial_json(trial: &SearchTrial) -> Value {
    let load = &trial.load;
    json!({
        "purpose": trial.purpose,
        "offered_rate": trial.rate,
        "seconds": trial.duration_ns as f64 / 1e9,
        "held": trial.held,
        "loss_ratio": trial.loss_ratio,
        "generator_limited": !trial.generator.is_empty(),
        "generator_checks_failed": trial.generator,
        "planned": load.planned,
        "sent": load.sent,
        "requests": load.completed,
        "errors": load.errors.total(),
        "latency_ns": latency_json(&load.latency),
        "send_lag_ns": latency_json(&load.send_lag),
        "cpu_seconds": (load.cpu.user_ns + load.cpu.system_ns) as f64 / 1e9,
        "seed": load.seed,
    })
}
